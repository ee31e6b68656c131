//! A path as it can be typed into a shell.

/// One word of a command line, in quotes where a shell would take it for something else. Messages tell commands that are
/// copied as they stand.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_./-+=:,@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_take_apart_stands_in_quotes() {
        for plain in ["/t/a.py", "a-b_c.py", "/t/größe.py"] {
            assert_eq!(shell_word(plain), plain);
        }
        assert_eq!(shell_word("/my tools/a.py"), "'/my tools/a.py'");
        assert_eq!(shell_word("a(1)&b.py"), "'a(1)&b.py'");
        assert_eq!(shell_word("it's.py"), r"'it'\''s.py'");
        assert_eq!(shell_word(""), "''");
    }
}
