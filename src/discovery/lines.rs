//! From byte offsets to lines.

use ruff_text_size::Ranged;

/// Where the lines of a text begin.
#[derive(Debug, Clone)]
pub struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    /// Counts the lines of a text.
    pub fn of(source: &str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The 1-based line on which a node begins.
    pub(super) fn of_node(&self, node: &impl Ranged) -> usize {
        self.at(node.range().start().to_usize())
    }

    /// The 1-based line of a byte.
    pub fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }

    /// Where a 1-based line begins; nothing for one that is not there.
    pub fn start_of(&self, line: usize) -> Option<usize> {
        self.starts.get(line.saturating_sub(1)).copied()
    }
}
