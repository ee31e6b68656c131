//! How much may be made of one file. Aliases are copied where they stand and classes go with every function that mentions
//! them, so that a few lines could become gigabytes. What is beyond the measure is left open.

use std::cell::Cell;

use serde_json::Value;

use super::schema::Schema;

/// More than any person's types become, for one function or class; direct hints are counted elsewhere.
pub(super) const MOST_COPIED: usize = 20_000;

/// Enough for a hundred functions that each mention fifty classes of ten fields.
const MOST_IN_FILE: usize = 500_000;

/// Characters of text that weigh as much as one value.
const TEXT: usize = 64;

/// What is left for one file. Behind a cell: readers of hints share the module.
pub(super) struct Budget(Cell<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(MOST_IN_FILE))
    }
}

impl Budget {
    /// Takes a part of what is left; says whether there was so much.
    pub(super) fn spend(&self, size: usize) -> bool {
        let left = self.0.get().checked_sub(size);
        left.inspect(|left| self.0.set(*left)).is_some()
    }
}

/// How many values a schema is made of.
pub(super) fn size_of(schema: &Schema) -> usize {
    schema.values().map(size_of_value).sum::<usize>() + 1
}

fn size_of_value(value: &Value) -> usize {
    match value {
        Value::Object(members) => size_of(members),
        Value::Array(items) => items.iter().map(size_of_value).sum::<usize>() + 1,
        Value::String(text) => 1 + text.len() / TEXT,
        _ => 1,
    }
}
