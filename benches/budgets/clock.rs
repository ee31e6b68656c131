//! Time limits for what is measured.

use std::process::exit;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Ends the whole program if it is not dropped in time. The peers see their pipes close and leave.
pub fn watchdog(name: &str, patience: Duration) -> Sender<()> {
    let (alive, ended) = channel::<()>();
    let name = name.to_owned();
    std::thread::spawn(move || {
        if ended.recv_timeout(patience) == Err(RecvTimeoutError::Timeout) {
            eprintln!("budgets: {name} hung for {} s; the bench ends here", patience.as_secs());
            exit(1);
        }
    });
    alive
}
