//! Messages on standard error during cleanup; they must not block if stderr is not read.

use std::io::Write;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use crate::process::process_tree::Ended;

/// The most names in one message.
const NAMES: usize = 8;

/// Writes a line, if the pipe has room for it.
pub(super) fn say(text: &str) {
    let stderr = rustix::stdio::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
        let _ = std::io::stderr().write_all(format!("hostler: {text}\n").as_bytes());
    }
}

/// A description of what was killed; `None` if nothing was.
pub(super) fn summary(ended: &Ended) -> Option<String> {
    let list = |names: Vec<String>| {
        let more = names.len().saturating_sub(NAMES);
        let shown = names.into_iter().take(NAMES).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    let killed: Vec<String> = ended.killed.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
    let left: Vec<String> = ended.left.iter().map(Pid::to_string).collect();
    let killed = (!killed.is_empty()).then(|| format!("killed remaining processes: {}", list(killed)));
    let left = (!left.is_empty()).then(|| format!("could not kill: {}", list(left)));
    let parts: Vec<String> = killed.into_iter().chain(left).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn killed_processes_are_listed_briefly() {
        let pid = |number| Pid::from_raw(number).unwrap();
        assert_eq!(summary(&Ended::default()), None);
        let one = Ended { killed: vec![(pid(7), "sleep".to_owned())], left: vec![pid(9)] };
        assert_eq!(summary(&one).unwrap(), "killed remaining processes: sleep (7); could not kill: 9");
        let many = Ended { killed: (1..=10).map(|number| (pid(number), "x".to_owned())).collect(), left: Vec::new() };
        assert!(summary(&many).unwrap().ends_with("x (8) and 2 more"), "{:?}", summary(&many));
    }
}
