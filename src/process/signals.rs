//! Counts termination signals: the first requests an orderly shutdown, the second an immediate one.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use signal_hook::consts::{SIGUSR1, SIGXFSZ};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use super::{exit, keeper};

/// Installs no-op handlers for USR1, which requests the status and may arrive before a handler exists, and for XFSZ,
/// which the failing write reports itself. Call it first. Handlers, unlike ignored signals, are not inherited by
/// started programs.
pub fn survive_notices() {
    static HEARD: AtomicBool = AtomicBool::new(false);
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for signal in [SIGUSR1, SIGXFSZ] {
            if let Err(error) = signal_hook::flag::register(signal, &HEARD) {
                tracing::warn!(%error, signal, "cannot handle this signal; it ends hostler");
            }
        }
    });
}

/// How a signal arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Way {
    /// Sent to this process.
    Straight,
    /// Sent to its keeper.
    Keeper,
}

/// How often each signal arrived each way.
#[derive(Debug, Default)]
struct Tally(BTreeMap<(i32, Way), u32>);

impl Tally {
    /// Counts a signal; returns the number of termination requests. A terminal, or a kill by name, sends one signal to
    /// both keeper and supervisor: that counts once.
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

/// The requests so far.
#[derive(Debug, Clone, Default)]
struct Asked {
    times: u32,
    last: String,
}

/// Termination requests: TERM, INT, HUP and QUIT, to hostler or to its keeper.
#[derive(Debug, Clone)]
pub struct Signals {
    asked: watch::Receiver<Asked>,
}

impl Signals {
    /// Handles signals from now on. Until then they end the process, as by default.
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
        // First: a process that sees this handler, which the system shows, may rely on the keeper's too.
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

    /// Requests that another process received and passed on.
    pub fn relayed() -> (SignalRelay, Self) {
        let (sender, asked) = watch::channel(Asked::default());
        (SignalRelay(Arc::new(sender)), Self { asked })
    }

    /// Waits for the first request; returns the signal's name.
    pub async fn first(&self) -> String {
        self.times(1).await
    }

    /// Waits for the second request.
    pub async fn second(&self) -> String {
        self.times(2).await
    }

    async fn times(&self, times: u32) -> String {
        let mut asked = self.asked.clone();
        let name = asked.wait_for(|asked| asked.times >= times).await.map(|asked| asked.last.clone());
        match name {
            Ok(name) => name,
            // The counting task has ended, so no request will follow.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Passes requests on to the holder of its [`Signals`].
#[derive(Debug, Clone)]
pub struct SignalRelay(Arc<watch::Sender<Asked>>);

impl SignalRelay {
    /// A termination request.
    pub fn end(&self, why: impl Into<String>) {
        self.0.send_modify(|asked| *asked = Asked { times: asked.times + 1, last: why.into() });
    }

    /// A request that leaves no time to running calls.
    pub fn end_now(&self, why: impl Into<String>) {
        self.0.send_modify(|asked| *asked = Asked { times: asked.times.max(1) + 1, last: why.into() });
    }
}

/// The name of a signal.
pub fn signal_name(number: i32) -> String {
    exit::Exit::Signal(number).to_string()
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
    fn a_signal_to_both_counts_once() {
        use Way::{Keeper, Straight};
        assert_eq!(counted(&[(INT, Straight), (INT, Keeper)]), 1, "Ctrl-C at a terminal");
        assert_eq!(counted(&[(TERM, Keeper), (TERM, Straight)]), 1, "a signal to every process of a name");
        assert_eq!(counted(&[(INT, Straight), (INT, Keeper), (INT, Keeper), (INT, Straight)]), 2, "Ctrl-C twice");
        assert_eq!(counted(&[(TERM, Keeper), (TERM, Keeper)]), 2);
        assert_eq!(counted(&[(TERM, Straight), (TERM, Straight)]), 2);
        assert_eq!(counted(&[(TERM, Keeper), (INT, Keeper)]), 2, "two signals are two requests");
        assert_eq!(counted(&[(INT, Keeper), (INT, Straight), (TERM, Keeper)]), 2);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn started_programs_have_the_default_usr1() {
        survive_notices();
        let launch = crate::process::Launch::new("/bin/grep").args(["SigIgn", "/proc/self/status"]);
        let done = crate::process::run(&launch, std::time::Duration::from_secs(20), |_| {}).await.unwrap();
        let ignored = u64::from_str_radix(done.stdout.trim_start_matches("SigIgn:").trim(), 16).unwrap();
        assert_eq!(ignored >> (SIGUSR1 - 1) & 1, 0, "{}", done.stdout);
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::USR1).unwrap();
    }
}
