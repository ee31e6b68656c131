//! Comments that begin as the opening of a header does. Most are openings; some only speak of one, and uv runs their files.

use super::SCRIPT;
use super::likeness::is_of_header;

/// `^#\s*///\s*script`, with either case of the word, and the word a whole one.
pub(super) fn begins_like_one(line: &str) -> bool {
    words_after(line).is_some()
}

/// What stands behind the word `script`.
fn words_after(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('#')?.trim_start().strip_prefix("///")?.trim_start();
    let (word, after) = rest.split_at_checked(SCRIPT.len())?;
    let is_whole = !after.starts_with(|c: char| c.is_alphanumeric() || "_-".contains(c));
    (is_whole && word.eq_ignore_ascii_case(SCRIPT)).then(|| after.trim())
}

/// Whether a line that begins like an opening is meant as one: by what stands below it, since a comment may begin with
/// those words as well. What has more words is a sentence unless TOML or a closing follows it at once.
pub(super) fn is_meant(source: &str, number: usize) -> bool {
    let mut lines = source.split('\n').skip(number - 1);
    let Some(words) = lines.next().and_then(words_after) else { return false };
    let mut below = lines.take_while(|line| line.starts_with('#')).filter(|line| !bare(line).is_empty());
    words.is_empty() || below.next().is_some_and(is_of_block)
}

fn bare(line: &str) -> &str {
    line.trim().trim_start_matches('#').trim()
}

fn is_of_block(line: &str) -> bool {
    let words = bare(line);
    let key = words.split_once(['=', ':']).map_or("", |(key, _)| key.trim());
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"".contains(c));
    let is_setting = is_key && (words.contains('=') || is_of_header(line));
    words == "///" || is_setting || words.starts_with('[') && words.ends_with(']')
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::super::{doubtful, read};

    const HEADER: &str = "# /// script\n# dependencies = []\n# ///\n\n";

    #[test]
    fn a_comment_that_speaks_of_headers_breaks_no_file() {
        for comment in [
            "# /// script is the opening line of PEP 723",
            "# /// script blocks: see PEP 723",
            "# /// scriptwriter: bob",
            "#/// script section",
            "# /// Script that greets ///",
            "# /// script section\n# what it is for: greeting",
            "# /// script-like\n# x = 1",
        ] {
            for text in [format!("{comment}\nx = 1\n"), format!("{HEADER}{comment}\nx = 1\n")] {
                let header = read(&text, &Arc::new(PathBuf::from("a.py")));
                assert_eq!(header.unwrap().is_some(), text.starts_with(HEADER), "{text}");
                assert_eq!(doubtful(&text), None, "{text}");
            }
        }
    }

    #[test]
    fn a_file_with_a_header_may_hold_another_opening() {
        let text = format!("{HEADER}# /// script\nx = 1\n");
        assert!(read(&text, &Arc::new(PathBuf::from("a.py"))).unwrap().is_some());
    }

    #[test]
    fn the_bare_word_or_toml_below_it_is_meant_as_an_opening() {
        for text in [
            "# /// script 3.11\n# dependencies = []\nx = 1\n",
            "#/// script\n#\n# [tool.x]\nx = 1\n",
            "# /// script\n\nx = 1\n",
            "# /// script (uv)\n# ///\n",
            "# /// script\n\n# dependencies = []\nimport os\n",
            "# /// script\ndependencies = []\n# ///\n",
        ] {
            assert!(read(text, &Arc::new(PathBuf::from("a.py"))).is_err(), "{text}");
        }
    }
}
