//! A word on standard error from those who clean up. Nobody may be listening, and that must not hold them.

use std::io::Write;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;

use crate::process::process_tree::Ended;

/// More names than this tell nobody more.
const NAMES: usize = 8;

/// Says a line, if there is room for it.
pub(super) fn say(text: &str) {
    let stderr = rustix::stdio::stderr();
    let mut asked = [PollFd::new(&stderr, PollFlags::OUT)];
    if poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0) {
        let _ = std::io::stderr().write_all(format!("hostler: {text}\n").as_bytes());
    }
}

/// What ending a descendants came to, in words; none when there was nobody.
pub(super) fn told(ended: &Ended) -> Option<String> {
    let list = |names: Vec<String>| {
        let more = names.len().saturating_sub(NAMES);
        let shown = names.into_iter().take(NAMES).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{shown} and {more} more") } else { shown }
    };
    let killed: Vec<String> = ended.killed.iter().map(|(pid, name)| format!("{name} ({pid})")).collect();
    let left: Vec<String> = ended.left.iter().map(Pid::to_string).collect();
    let killed = (!killed.is_empty()).then(|| format!("killed what was left: {}", list(killed)));
    let left = (!left.is_empty()).then(|| format!("these would not die and are left: {}", list(left)));
    let parts: Vec<String> = killed.into_iter().chain(left).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_killed_is_told_briefly() {
        let pid = |number| Pid::from_raw(number).unwrap();
        assert_eq!(told(&Ended::default()), None);
        let one = Ended { killed: vec![(pid(7), "sleep".to_owned())], left: vec![pid(9)] };
        assert_eq!(told(&one).unwrap(), "killed what was left: sleep (7); these would not die and are left: 9");
        let many = Ended { killed: (1..=10).map(|number| (pid(number), "x".to_owned())).collect(), left: Vec::new() };
        assert!(told(&many).unwrap().ends_with("x (8) and 2 more"), "{:?}", told(&many));
    }
}
