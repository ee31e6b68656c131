//! Word to the client that its list of tools has become another one.

use rmcp::model::ProtocolVersion;
use rmcp::service::{Peer, RoleServer};
use tokio::sync::watch;

use super::outbox::Outbox;

/// A client that has more bytes than this to read yet hears of changes once it has read them.
const MOST_UNREAD: usize = 64 << 10;

/// The changes that one listener is to hear of.
pub(super) struct Changes {
    announced: watch::Receiver<u64>,
    outbox: Outbox,
    /// Whether the session is over.
    over: watch::Receiver<bool>,
}

impl Changes {
    /// Those that the receiver has not seen.
    pub fn new(announced: watch::Receiver<u64>, outbox: Outbox, over: watch::Receiver<bool>) -> Self {
        Self { announced, outbox, over }
    }

    /// Waits until there is something to tell, and a client that reads. However many changes that are, they are one.
    /// `None` once the session is over.
    pub async fn next(&mut self) -> Option<()> {
        let Self { announced, outbox, over } = self;
        let heard = async {
            announced.changed().await.ok()?;
            if outbox.waiting() > MOST_UNREAD {
                // Not heard yet, should nobody wait so long.
                announced.mark_changed();
                outbox.caught_up().await;
            }
            announced.mark_unchanged();
            Some(())
        };
        tokio::select! {
            heard = heard => heard,
            _ = over.wait_for(|over| *over) => None,
        }
    }
}

/// Tells a client of changes for as long as its session lasts. Since 2026-07-28 a client asks for that; before, everyone
/// is told who said `initialize`.
pub(super) fn tell_unasked(peer: Peer<RoleServer>, mut changes: Changes) {
    let is_told = |version: &ProtocolVersion| version.as_str() < ProtocolVersion::V_2026_07_28.as_str();
    if !peer.peer_info().is_some_and(|info| is_told(&info.protocol_version)) {
        return;
    }
    tokio::spawn(
        async move { while changes.next().await.is_some() && peer.notify_tool_list_changed().await.is_ok() {} },
    );
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;
    use tokio::time::{Duration, timeout};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_hears_once_of_all_that_changed_when_it_does() {
        let (ours, mut client) = tokio::io::duplex(16);
        let outbox = Outbox::new(ours);
        let (counter, (over, is_over)) = (watch::Sender::new(0_u64), watch::channel(false));
        let mut changes = Changes::new(counter.subscribe(), outbox.clone(), is_over);
        outbox.send(vec![b'x'; MOST_UNREAD + 1]).unwrap();
        let a_while = Duration::from_hours(1);
        for _ in 0..1000 {
            counter.send_modify(|count| *count += 1);
            assert!(timeout(a_while, changes.next()).await.is_err(), "nothing is added to what it does not read");
        }
        let mut read = vec![0; MOST_UNREAD + 1];
        let (heard, read) = tokio::join!(changes.next(), client.read_exact(&mut read));
        assert!(heard.is_some() && read.is_ok());
        assert!(timeout(a_while, changes.next()).await.is_err(), "it was all of them");
        over.send_replace(true);
        assert!(changes.next().await.is_none());
    }
}
