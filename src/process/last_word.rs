//! The line of what a program said before it ended that tells why.

/// Its last line; of Node, which signs with its version below a stack, the one above that.
pub fn last_word(said: &str) -> Option<&str> {
    let mut lines = said.lines().rev().filter(|line| !line.trim().is_empty());
    let last = lines.next()?;
    let is_reason = |line: &&str| !line.starts_with([' ', '\t', '}', '(']);
    let mut reason = || lines.find(is_reason).unwrap_or(last);
    Some(if last.starts_with("Node.js v") { reason() } else { last }.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_program_is_told_and_not_who_ran_it() {
        assert_eq!(last_word("Traceback\n  File\nValueError: no bridge\n\n"), Some("ValueError: no bridge"));
        assert_eq!(last_word(" \n"), None);
        let node = "file:///t/a.mjs:6\nthrow 1\n^\n\nError [ERR_X]: no bridge\n    at a.mjs:6 {\n  code: 'ERR_X'\n}\n\nNode.js v20.20.2\n";
        assert_eq!(last_word(node), Some("Error [ERR_X]: no bridge"));
        assert_eq!(last_word("no bridge\n(Use `node --trace-uncaught ...`)\n\nNode.js v20.20.2\n"), Some("no bridge"));
        assert_eq!(last_word("Node.js v20.20.2\n"), Some("Node.js v20.20.2"));
    }
}
