//! Numbers with their nouns, and summaries, as people read them.

use std::fmt::Display;

/// A count and what is counted: "1 file", "2 files". Only for nouns with a regular plural.
pub fn plural<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let end = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{end}")
}

/// The first paragraph of a text, on one line.
pub fn first_paragraph(text: &str) -> String {
    on_one_line(text.trim_start().split("\n\n").next().unwrap_or_default())
}

/// A text with one space for each run of white space.
pub fn on_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_line() {
        assert_eq!(first_paragraph("\n Adds\n  two numbers.\n\nThen more."), "Adds two numbers.");
        assert_eq!(first_paragraph(""), "");
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|count| plural(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}
