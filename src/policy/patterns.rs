//! Patterns of paths. Most are a folder and all beneath it, which is looked up; the others are matched together.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use globset::{GlobMatcher, GlobSet, GlobSetBuilder};

use crate::config::rules::{escape, glob, whole};

/// The patterns of one setting. The folder that a pattern begins with is inside as well: `/srv/**` has `/srv`.
#[derive(Debug, Clone)]
pub(super) struct PathPatterns {
    /// `/srv` of `/srv/**`; nothing for `/`.
    below: HashSet<Box<[u8]>>,
    /// Paths without a pattern.
    exact: HashSet<Box<[u8]>>,
    /// Patterns within a folder, each behind the text that it begins with.
    within: Vec<(Box<[u8]>, GlobMatcher)>,
    /// The others.
    anywhere: Option<GlobSet>,
    /// Whether all patterns are among them: a folder that they begin at may have a name that is no text.
    pub is_whole: bool,
}

impl PathPatterns {
    /// Each pattern as it is written, and with the links of its first folders followed.
    pub fn new(patterns: &[String], home: &Path, folder: &Path, real: &impl Fn(&Path) -> PathBuf) -> Self {
        let mut found =
            Self { below: HashSet::new(), exact: HashSet::new(), within: Vec::new(), anywhere: None, is_whole: true };
        let mut anywhere = GlobSetBuilder::new();
        for text in patterns.iter().filter_map(|pattern| whole(pattern, home, folder)) {
            for text in both(&text, real) {
                let (start, is_below) = text.strip_suffix("/**").map_or((&*text, false), |start| (start, true));
                if !start.contains(MEANINGFUL) {
                    let folders = if is_below { &mut found.below } else { &mut found.exact };
                    folders.insert(start.trim_end_matches('/').as_bytes().into());
                    continue;
                }
                let plain = start.find(MEANINGFUL).and_then(|at| start[..at].rfind('/')).map_or("", |at| &start[..at]);
                for glob in [Some(&*text), is_below.then_some(start)].into_iter().flatten().filter_map(glob) {
                    if plain.is_empty() {
                        anywhere.add(glob);
                    } else {
                        found.within.push((plain.as_bytes().into(), glob.compile_matcher()));
                    }
                }
            }
        }
        found.is_whole = patterns.iter().all(|pattern| whole(pattern, home, folder).is_some());
        found.anywhere = anywhere.build().ok().filter(|globs| !globs.is_empty());
        found
    }

    /// Whether a whole path without dots matches one of them.
    pub fn has(&self, path: &Path) -> bool {
        let text = path.as_os_str().as_bytes();
        let text = if text == b"/" { b"" } else { text };
        let is_below = || {
            // Each folder above it, and itself.
            let mut ends = (0..=text.len()).filter(|at| text.get(*at).is_none_or(|byte| *byte == b'/'));
            !self.below.is_empty() && ends.any(|at| self.below.contains(&text[..at]))
        };
        let is_within = || self.within.iter().any(|(start, glob)| text.starts_with(start) && glob.is_match(path));
        self.exact.contains(text)
            || is_below()
            || is_within()
            || self.anywhere.as_ref().is_some_and(|globs| globs.is_match(path))
    }
}

const MEANINGFUL: [char; 8] = ['*', '?', '[', ']', '{', '}', '\\', '!'];

/// What a part of a pattern matches, if that is one name.
fn literal(part: &str) -> Option<String> {
    let (mut name, mut rest) = (String::new(), part.chars());
    while let Some(c) = rest.next() {
        name.push(match c {
            '[' => {
                let only = rest.next()?;
                rest.next().filter(|end| *end == ']').map(|_| only)?
            }
            '\\' => rest.next()?,
            '*' | '?' | ']' | '{' | '}' => return None,
            plain => plain,
        });
    }
    Some(name)
}

/// A pattern as it is, and with the links of the folders that it begins with followed.
fn both(text: &str, real: &impl Fn(&Path) -> PathBuf) -> Vec<String> {
    let parts: Vec<&str> = text.split('/').collect();
    let plain: Vec<String> = parts.iter().map_while(|part| literal(part)).collect();
    let (start, plain) = (plain.join("/"), plain.len());
    let start = real(Path::new(if start.is_empty() { "/" } else { &start }));
    let mut found = vec![text.to_owned()];
    if let Some(start) = start.to_str() {
        let start = start.trim_end_matches('/');
        let start = escape(start);
        let followed = std::iter::once(&*start).chain(parts[plain..].iter().copied()).collect::<Vec<_>>().join("/");
        found.extend((followed != text).then_some(followed));
    }
    found
}
