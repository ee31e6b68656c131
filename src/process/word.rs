//! A path as it can be typed into a shell.

/// One word of a command line, quoted if a shell needs it. Messages show commands to copy.
pub fn shell_word(text: &str) -> String {
    // Only a NUL cannot be quoted, and no path holds one.
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}
