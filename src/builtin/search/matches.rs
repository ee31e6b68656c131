//! The matches of a search. Only those are kept that will be shown: of the files that come first by path, whichever thread found
//! them.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use grep_searcher::{Searcher, Sink, SinkContext, SinkFinish, SinkMatch};

/// The most that is shown of a line, in bytes.
const LONGEST: usize = 500;
/// The most that is shown in all, in bytes.
const MOST: usize = 1 << 20;

/// How much may still be shown.
struct Room {
    matches: usize,
    bytes: usize,
}

/// The lines of one file.
#[derive(Debug)]
pub(super) struct Lines {
    /// The number of matching lines.
    pub count: usize,
    /// Matching lines with their context.
    shown: Vec<Shown>,
    limit: usize,
    /// Their size.
    bytes: usize,
    is_binary: bool,
}

#[derive(Debug)]
struct Shown {
    text: String,
    matches: bool,
}

impl Lines {
    pub fn up_to(limit: usize) -> Self {
        Self { count: 0, shown: Vec::new(), limit, bytes: 0, is_binary: false }
    }

    fn show(&mut self, number: Option<u64>, mark: char, line: &[u8]) {
        if self.bytes > MOST {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let text = text.trim_end_matches(['\n', '\r']);
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let left_out = text.len() - end;
        let rest = if left_out > 0 { format!(" … ({left_out} bytes more)") } else { String::new() };
        let text = format!("{}{mark} {}{rest}", number.unwrap_or_default(), &text[..end]);
        self.bytes += text.len();
        self.shown.push(Shown { text, matches: mark == ':' });
    }

    /// The lines that fit into the room, which shrinks.
    fn into_shown(self, room: &mut Room) -> Vec<String> {
        let fits = |line: &Shown| {
            let fits = (!line.matches || room.matches > 0) && line.text.len() <= room.bytes;
            room.matches -= usize::from(fits && line.matches);
            // After a line that does not fit, no shorter one follows.
            room.bytes = if fits { room.bytes - line.text.len() } else { 0 };
            fits
        };
        self.shown.into_iter().take_while(fits).map(|line| line.text).collect()
    }
}

impl Sink for Lines {
    type Error = io::Error;

    fn matched(&mut self, _searcher: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.count += 1;
        if self.count <= self.limit {
            self.show(found.line_number(), ':', found.bytes());
        }
        Ok(true)
    }

    fn context(&mut self, _searcher: &Searcher, around: &SinkContext<'_>) -> io::Result<bool> {
        if self.count <= self.limit {
            self.show(around.line_number(), '-', around.bytes());
        }
        Ok(true)
    }

    fn context_break(&mut self, _searcher: &Searcher) -> io::Result<bool> {
        if self.count < self.limit {
            self.shown.push(Shown { text: "--".to_owned(), matches: false });
        }
        Ok(true)
    }

    fn finish(&mut self, _searcher: &Searcher, end: &SinkFinish) -> io::Result<()> {
        self.is_binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

/// All matches.
#[derive(Debug)]
pub(super) struct Hits {
    /// The number of matching lines.
    pub total: usize,
    /// The number of files with matches.
    pub total_files: usize,
    /// The files that are shown.
    kept: BTreeMap<PathBuf, Lines>,
    /// The number of kept lines, or of kept files where only those are shown.
    size: usize,
    limit: usize,
    by_lines: bool,
}

impl Hits {
    /// Keeps up to this many lines, or files.
    pub fn up_to(limit: usize, by_lines: bool) -> Self {
        Self { total: 0, total_files: 0, kept: BTreeMap::new(), size: 0, limit, by_lines }
    }

    /// Adds a file.
    pub fn add(&mut self, path: &Path, lines: Lines) {
        if lines.is_binary {
            return;
        }
        self.total += lines.count;
        self.total_files += 1;
        self.size += self.size_of(&lines);
        self.kept.insert(path.to_owned(), lines);
        // The last files are dropped while enough remain.
        while let Some(last) = self.kept.last_key_value().map(|(_, lines)| self.size_of(lines))
            && self.size - last >= self.limit
        {
            self.kept.pop_last();
            self.size -= last;
        }
    }

    /// The files by path, each with its number of matching lines and the lines to show.
    pub fn into_files(self) -> impl Iterator<Item = (PathBuf, usize, Vec<String>)> {
        let mut room = Room { matches: self.limit, bytes: MOST };
        self.kept.into_iter().map(move |(path, lines)| (path, lines.count, lines.into_shown(&mut room)))
    }

    fn size_of(&self, lines: &Lines) -> usize {
        if self.by_lines { lines.count.min(lines.limit) } else { 1 }
    }
}
