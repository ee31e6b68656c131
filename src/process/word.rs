//! Shell quoting of paths.

/// A word of a command line, quoted if needed, for commands that users copy from messages.
pub fn shell_word(text: &str) -> String {
    // Only a NUL cannot be quoted, and no path contains one.
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}
