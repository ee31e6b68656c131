//! Signals that ask hostler to end, counted: the first asks for an end in order, the second for one at once.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use signal_hook::consts::{SIGUSR1, SIGXFSZ};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{exit, keeper};

/// Has USR1, which asks how hostler stands, end nothing: it may come before anybody listens, or to a command that has
/// nothing to tell. Nor does a file that grows over the limit on sizes, which the write itself tells. To be called first of
/// all. It sets handlers that do nothing and does not ignore the signals, because whatever hostler starts would inherit that,
/// and begins with what is usual instead.
pub fn survive_notices() {
    static HEARD: AtomicBool = AtomicBool::new(false);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGUSR1, SIGXFSZ] {
            if let Err(error) = signal_hook::flag::register(signal, &HEARD) {
                tracing::warn!(%error, signal, "this signal ends hostler unless it serves");
            }
        }
    });
}

/// By which way a signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Sent to this process.
    Straight,
    /// Sent to its keeper.
    Keeper,
}

/// How often each signal came by each way.
#[derive(Debug, Default)]
struct Tally(BTreeMap<(i32, Way), u32>);

impl Tally {
    /// Counts a signal; gives how often hostler has been asked to end. A terminal, or somebody who signals every process
    /// of a name, sends the same signal to keeper and supervisor: that is one wish.
    fn count(&mut self, number: i32, way: Way) -> u32 {
        *self.0.entry((number, way)).or_default() += 1;
        let mut wishes = BTreeMap::<i32, u32>::new();
        for ((number, _), count) in &self.0 {
            let most = wishes.entry(*number).or_default();
            *most = (*most).max(*count);
        }
        wishes.values().sum()
    }
}

/// What was asked so far.
#[derive(Debug, Clone, Default)]
struct Asked {
    times: u32,
    last: String,
}

/// Every wish that hostler end: TERM, INT, HUP and QUIT, to itself or to its keeper.
#[derive(Debug, Clone)]
pub struct Signals {
    asked: watch::Receiver<Asked>,
}

impl Signals {
    /// Listens from now on. Until then such a signal ends the process, as it does by default.
    pub fn listen() -> io::Result<Self> {
        let (sender, asked) = watch::channel(Asked::default());
        let tally = Mutex::<Tally>::default();
        let count = Arc::new(move |number: i32, way: Way| {
            let times = tally.lock().count(number, way);
            sender.send_if_modified(|asked| {
                let is_new = times > asked.times;
                if is_new {
                    *asked = Asked { times, last: exit::Exit::Signal(number).to_string() };
                }
                is_new
            });
        });
        let by_keeper = Arc::clone(&count);
        // First: who sees that this process listens, which the system tells, may count on the keeper's word too.
        keeper::listen(Box::new(move |number| by_keeper(number, Way::Keeper)));
        for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
            let mut signals = signal(kind)?;
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                while signals.recv().await.is_some() {
                    count(kind.as_raw_value(), Way::Straight);
                }
            });
        }
        Ok(Self { asked })
    }

    /// Waits until hostler was asked to end, once; gives the name of the signal.
    pub async fn first(&self) -> String {
        self.times(1).await
    }

    /// Waits until it was asked a second time.
    pub async fn second(&self) -> String {
        self.times(2).await
    }

    async fn times(&self, times: u32) -> String {
        let mut asked = self.asked.clone();
        match asked.wait_for(|asked| asked.times >= times).await {
            Ok(asked) => asked.last.clone(),
            // Nobody counts any more, so nobody will ask.
            Err(_) => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: i32 = 2;
    const TERM: i32 = 15;

    fn counted(signals: &[(i32, Way)]) -> u32 {
        let mut tally = Tally::default();
        signals.iter().map(|(number, way)| tally.count(*number, *way)).last().unwrap_or_default()
    }

    #[test]
    fn what_reached_both_counts_once() {
        use Way::{Keeper, Straight};
        assert_eq!(counted(&[(INT, Straight), (INT, Keeper)]), 1, "Ctrl-C at a terminal");
        assert_eq!(counted(&[(TERM, Keeper), (TERM, Straight)]), 1, "a signal to every process of a name");
        assert_eq!(counted(&[(INT, Straight), (INT, Keeper), (INT, Keeper), (INT, Straight)]), 2, "Ctrl-C twice");
        assert_eq!(counted(&[(TERM, Keeper), (TERM, Keeper)]), 2);
        assert_eq!(counted(&[(TERM, Straight), (TERM, Straight)]), 2);
        assert_eq!(counted(&[(TERM, Keeper), (INT, Keeper)]), 2, "two kinds are two wishes");
        assert_eq!(counted(&[(INT, Keeper), (INT, Straight), (TERM, Keeper)]), 2);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn what_is_started_does_with_usr1_what_is_usual() {
        survive_notices();
        let launch = crate::process::Launch::new("/bin/grep").args(["SigIgn", "/proc/self/status"]);
        let done = crate::process::run(&launch, std::time::Duration::from_secs(20), |_| {}).await.unwrap();
        let ignored = u64::from_str_radix(done.stdout.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        assert_eq!(ignored >> (SIGUSR1 - 1) & 1, 0, "{}", done.stdout);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR1).unwrap();
    }
}
