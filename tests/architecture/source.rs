//! Rust sources as the rules read them: line by line, without comments and without what is for tests only.
//!
//! This leans on rustfmt: an item ends with a brace that stands as far in as the item began.

use std::collections::BTreeSet;
use std::path::Path;

/// One file.
#[derive(Debug, Clone)]
pub struct Source {
    pub path: String,
    /// The module on whose floor it stands: `pool` for `src/pool/seat.rs`.
    pub module: String,
    /// How many `super::` lead from it to the root of the crate.
    pub depth: usize,
    /// What counts, with line numbers.
    pub lines: Vec<(usize, String)>,
    /// Modules in files of their own that are for tests only.
    tests: Vec<String>,
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
        let steps: Vec<&str> = inner.split('/').filter(|step| *step != "mod").collect();
        let (lines, tests) = without_tests(text);
        Self { path: path.to_owned(), module: steps[0].to_owned(), depth: steps.len(), lines, tests }
    }

    pub fn is_empty(&self) -> bool {
        self.lines.iter().all(|(_, text)| text.trim().is_empty())
    }

    /// Every line that names one of these words, as a whole word.
    pub fn naming(&self, words: &[&str]) -> Vec<String> {
        let names = |text: &str| words.iter().find(|word| has_word(text, word)).copied();
        let found = self.lines.iter().filter_map(|(line, text)| Some((line, names(text)?, text)));
        found.map(|(line, word, text)| format!("{}:{line}: {word} in `{}`", self.path, text.trim())).collect()
    }

    /// Where a module in a file of its own may stand.
    fn test_files(&self) -> Vec<String> {
        let folder = self.path.trim_end_matches("/mod.rs").trim_end_matches(".rs").to_owned();
        let folder = if folder == "src/lib" { "src".to_owned() } else { folder };
        self.tests.iter().flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/")]).collect()
    }
}

/// Every source of the program that is not for tests only.
pub fn tree() -> Vec<Source> {
    let mut sources = Vec::new();
    read(Path::new("src"), &mut sources);
    let tests: BTreeSet<String> = sources.iter().flat_map(Source::test_files).collect();
    sources.retain(|source| !tests.iter().any(|test| source.path.starts_with(test.as_str())));
    assert!(sources.len() > 50, "this is to be run where the sources are");
    sources
}

fn read(folder: &Path, into: &mut Vec<Source>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            into.push(Source::new(&path.to_string_lossy(), &text));
        }
    }
}

fn without_tests(text: &str) -> (Vec<(usize, String)>, Vec<String>) {
    let (mut kept, mut tests) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        if !line.trim_start().starts_with("#[cfg(test)]") {
            kept.push((number + 1, without_comment(line)));
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        for (_, item) in lines.by_ref() {
            let name =
                item.trim().trim_start_matches("pub ").strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'));
            tests.extend(name.map(str::to_owned));
            let attribute = item.trim_start().starts_with("#[");
            let one_line =
                item.starts_with(indent) && !item[indent.len()..].starts_with(' ') && item.ends_with([';', '}']);
            if !attribute && one_line {
                break;
            }
        }
    }
    (kept, tests)
}

fn without_comment(line: &str) -> String {
    let code = if line.trim_start().starts_with("//") { "" } else { line };
    code.split(" // ").next().unwrap_or_default().to_owned()
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |character: Option<char>| character.is_some_and(|one| one.is_alphanumeric() || one == '_');
    text.match_indices(word).any(|(at, _)| {
        let after = text[at + word.len()..].chars().next();
        !part(text[..at].chars().next_back()) && (!part(after) || word.ends_with(['!', ')', '{', ':']))
    })
}

/// The modules of the crate that a line names by `crate::` or by as many `super::` as lead to the root.
pub fn named(text: &str, depth: usize) -> Vec<String> {
    let root = "super::".repeat(depth);
    let by_crate = text.match_indices("crate::").map(|(at, word)| &text[at + word.len()..]);
    let by_super = text.match_indices(root.as_str()).filter(|(at, _)| !text[..*at].ends_with("super::"));
    let by_super = by_super.map(|(at, word)| &text[at + word.len()..]);
    by_crate.chain(by_super).flat_map(first_names).collect()
}

/// `a::b` names a; `{a::{x, y}, b}` names a and b.
fn first_names(path: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|one| one.is_alphanumeric() || *one == '_').collect()
    };
    let Some(group) = path.strip_prefix('{') else { return vec![name(path)] };
    let (mut names, mut deep) = (vec![name(group)], 0);
    for (at, character) in group.char_indices() {
        match character {
            '{' => deep += 1,
            '}' if deep == 0 => break,
            '}' => deep -= 1,
            ',' if deep == 0 => names.push(name(&group[at + 1..])),
            _ => {}
        }
    }
    names
}
