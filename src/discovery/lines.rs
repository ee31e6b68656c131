//! From byte offsets to lines.

use ruff_text_size::Ranged;

/// Where the lines of a text begin.
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(source: &str) -> Self {
        let ends = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self { starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// The 1-based line on which a node begins.
    pub(super) fn of_node(&self, node: &impl Ranged) -> usize {
        self.at(node.range().start().to_usize())
    }

    /// The 1-based line of a byte.
    pub(super) fn at(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset)
    }
}
