//! Comments that are like a header and that the PEP passes over in silence: what can only be a slip of the pen is an error,
//! and what may be meant otherwise is a doubt, which harms nobody.
//!
//! Only the beginning of a file is looked at, outside of its docstring: further down, and within texts, a header that is
//! written otherwise may be an example of one.

use super::block::Block;
use super::mistake::rest_of_header;
use super::{CLOSING, HeaderError, OPENING, SCRIPT};

type Line<'s> = (usize, &'s str);

/// A comment that can only be meant to open a header.
pub(super) fn slip(source: &str) -> Option<HeaderError> {
    runs(source).iter().find_map(|run| {
        let (at, (number, reason)) =
            run.iter().enumerate().find_map(|(at, line)| Some((at, (line.0, wrong_with(line.1, &run[at + 1..])?))))?;
        Some(HeaderError::new(number, format!("this looks like a header and {reason}"), write_instead(&run[at..])))
    })
}

/// What holds words of a header and is none that hostler reads.
pub(super) fn doubt(source: &str, blocks: &[Block<'_>]) -> Option<HeaderError> {
    if let Some(block) = blocks.iter().find(|block| block.content.lines().any(is_of_hostler)) {
        let reason = format!("hostler reads no block of the type `{}`, so what it asks for does nothing", block.kind);
        let fix = format!("if it was meant as the file's header, write exactly `{OPENING}`");
        return Some(HeaderError::new(block.opening_line, reason, fix));
    }
    let run = runs(source).into_iter().find(|run| run.iter().any(|line| is_of_hostler(line.1)))?;
    let in_block =
        |line: &Line<'_>| blocks.iter().any(|block| (block.opening_line..=block.closing_line).contains(&line.0));
    let first = run.iter().find(|line| is_of_hostler(line.1) && !in_block(line))?;
    let reason = "this looks like a part of a header and stands in none, so it does nothing";
    let fix =
        format!("if it was meant as one, write `{OPENING}` on a line before it and `{CLOSING}` after its last line");
    Some(HeaderError::new(first.0, reason, fix))
}

/// The comments before the first code but imports, each run of lines by itself. A docstring is passed over.
fn runs(source: &str) -> Vec<Vec<Line<'_>>> {
    let mut found: Vec<Vec<Line<'_>>> = vec![Vec::new()];
    let mut docstring: Option<&str> = None;
    for (index, line) in source.split('\n').enumerate() {
        let words = line.trim();
        if let Some(mark) = docstring {
            docstring = docstring.filter(|_| !words.contains(mark));
        } else if words.starts_with('#') {
            found.extend(found.last().is_none().then(Vec::new));
            found.iter_mut().last().into_iter().for_each(|run| run.push((index + 1, line)));
        } else if words.is_empty() || line.starts_with("import ") || line.starts_with("from ") {
            found.push(Vec::new());
        } else {
            let text = words.trim_start_matches(['r', 'R']);
            let Some(mark) = ["\"\"\"", "'''"].into_iter().find(|mark| text.starts_with(mark)) else { break };
            docstring = Some(mark).filter(|mark| !text[mark.len()..].contains(mark));
            found.push(Vec::new());
        }
    }
    found
}

/// What keeps a line from opening the header that it and those after it were meant to be.
fn wrong_with(line: &str, after: &[Line<'_>]) -> Option<String> {
    let words = line.trim().strip_prefix('#')?;
    let has_more_marks = words.starts_with('#');
    let words = words.trim_start_matches('#').trim_start();
    let word = words.trim_start_matches('/');
    let slashes = words.len() - word.len();
    let word = word.trim();
    let is_script = word.eq_ignore_ascii_case(SCRIPT);
    if is_script && slashes == 3 && has_more_marks {
        return after
            .iter()
            .any(|line| is_of_header(line.1))
            .then(|| "its lines begin with more than one `#`".to_owned());
    }
    if is_script && slashes == 3 {
        let is_indented = line.starts_with(char::is_whitespace) && after.iter().any(|line| is_of_header(line.1));
        return is_indented.then(|| "is indented".to_owned());
    }
    // A comment may begin with slashes. With a header's words below it, it is one.
    if has_more_marks || slashes < 2 || !after.iter().any(|line| is_of_header(line.1)) {
        return None;
    }
    let distance = strsim::damerau_levenshtein(&word.to_ascii_lowercase(), SCRIPT);
    match word {
        _ if is_script => Some(format!("has {slashes} slashes where there must be 3")),
        "" => Some(format!("lacks the word `{SCRIPT}`")),
        _ if distance <= 2 => Some(format!("its word is `{word}`")),
        _ => None,
    }
}

/// The opening as it must be, and the closing if it is wrong as well.
fn write_instead(run: &[Line<'_>]) -> String {
    let indented = run[0].1.starts_with(char::is_whitespace);
    if indented && run.len() > 1 {
        let (first, last) = (run[0].0, run[run.len() - 1].0);
        return format!(
            "write exactly `{OPENING}`, and take the blanks away before the `#` of lines {first} to {last}"
        );
    }
    if run[0].1.starts_with("##") {
        let (first, last) = (run[0].0, run[run.len() - 1].0);
        return format!("write one `#` at the beginning of each of the lines {first} to {last}: `{OPENING}`");
    }
    format!("write exactly `{OPENING}`{}", rest_of_header(&run[1..]))
}

/// Whether a comment is a line of a header, and little else.
pub(super) fn is_of_header(line: &str) -> bool {
    is_of_hostler(line) || line.trim().trim_start_matches('#').trim().starts_with("[tool.")
}

/// A line that hostler itself would act on.
fn is_of_hostler(line: &str) -> bool {
    let words = line.trim().trim_start_matches('#').trim();
    let is_list =
        |rest: &str| rest.trim_start().strip_prefix(['=', ':']).is_some_and(|rest| rest.trim().starts_with('['));
    let is_text = |rest: &str| {
        rest.trim_start().strip_prefix(['=', ':']).is_some_and(|rest| rest.trim().starts_with(['"', '\'']))
    };
    words == "[tool.hostler]"
        || words.strip_prefix("dependencies").is_some_and(is_list)
        || words.strip_prefix("requires-python").is_some_and(is_text)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::super::{doubtful, read};

    fn error(source: &str) -> Option<String> {
        read(source, &Arc::new(PathBuf::from("a.py"))).err().map(|error| error.to_string())
    }

    const REST: &str = "# requires-python = \">=3.13\"\n# ///\ndef f(): ...\n";

    #[test]
    fn what_can_only_be_a_slip_is_told_with_the_right_line() {
        for (opening, what) in [
            ("# // script", "has 2 slashes where there must be 3"),
            ("# //// script", "has 4 slashes where there must be 3"),
            ("# /// scripts", "its word is `scripts`"),
            ("# /// scirpt", "its word is `scirpt`"),
            ("# ///", "lacks the word `script`"),
        ] {
            let told = format!("line 2: this looks like a header and {what}; write exactly `# /// script`");
            assert_eq!(error(&format!("#!/usr/bin/env python\n{opening}\n{REST}")), Some(told), "{opening}");
            assert!(error(&format!("\"\"\"Doc.\n\"\"\"\n\n{opening}\n{REST}")).is_some(), "{opening}");
        }
        let indented = "  # /// script\n  # dependencies = []\n  # ///\nx = 1\n";
        let told = "line 1: this looks like a header and is indented; write exactly `# /// script`, and take the blanks \
                    away before the `#` of lines 1 to 3";
        assert_eq!(error(indented).as_deref(), Some(told));
        let below = "import os\n# // script\n# dependencies = []\n# ///\n";
        assert!(error(below).unwrap().starts_with("line 2: "));
        let both = "# // script\n# dependencies = []\n# //\nx = 1\n";
        assert!(error(both).unwrap().ends_with("write exactly `# /// script`, and line 3 as `# ///`"));
    }

    #[test]
    fn more_marks_than_one_are_told() {
        let told = "line 1: this looks like a header and its lines begin with more than one `#`; write one `#` at the \
                    beginning of each of the lines 1 to 3: `# /// script`";
        assert_eq!(error("## /// script\n## dependencies = []\n## ///\nx = 1\n").as_deref(), Some(told));
        assert_eq!(error("## /// script\n## what it does\nx = 1\n"), None);
        assert_eq!(error("    # /// script\n    # what it does\n"), None);
    }

    #[test]
    fn comments_and_examples_break_nothing() {
        for harmless in [
            "\"\"\"Doc.\n\n    # /// script\n    # dependencies = []\n    # ///\n\"\"\"\n",
            "x = '''\n    # /// script\n    # dependencies = []\n    # ///\n'''\n",
            "r'''\n  # // script\n  # dependencies = []\n'''\n",
            "# // script\n# what it is for\n",
            "# /// scripts\n# build = \"make\"\n# ///\n",
            "# /////////\n# The script.\n# /////////\n",
            "def f():\n    # /// script\n    # dependencies = []\n    # ///\n    return 1\n",
            "# Dependencies: none. See [tool.hostler].\n",
            "# dependencies are in pyproject.toml\n",
        ] {
            assert_eq!(error(harmless), None, "{harmless}");
            assert_eq!(doubtful(harmless), None, "{harmless}");
        }
    }

    #[test]
    fn what_may_be_meant_otherwise_is_a_doubt() {
        let told = |source: &str| {
            assert_eq!(error(source), None, "{source}");
            doubtful(source).unwrap().to_string()
        };
        let block = told("# /// pyproject\n# dependencies = [\"six\"]\n# ///\n");
        assert!(block.starts_with("line 1: hostler reads no block of the type `pyproject`"), "{block}");
        let bare = told("#!/usr/bin/env python\n# [tool.hostler]\n# timeout = \"3s\"\nx = 1\n");
        assert!(bare.starts_with("line 2: this looks like a part of a header and stands in none"), "{bare}");
        assert!(bare.contains("write `# /// script` on a line before it and `# ///` after its last line"), "{bare}");
        let well = "# /// script\n# dependencies = []\n# ///\n\n# [tool.hostler]\n";
        assert_eq!(doubtful(well), None, "there is a header");
    }
}
