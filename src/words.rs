//! Numbers and their nouns, as people read them.

use std::fmt::Display;

/// A count and what is counted: "1 file", "2 files". Only for nouns with a regular plural.
pub fn plural<N: Copy + Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    let end = if count == N::from(1) { "" } else { "s" };
    format!("{count} {noun}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0_u64, 1, 2].map(|count| plural(count, "file")), ["0 files", "1 file", "2 files"]);
    }
}
