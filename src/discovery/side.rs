//! On which side of a function a hint stands: the same type is read from one form of JSON and written in another.

use serde::{Deserialize, Serialize};

/// Where a value comes from or goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// An argument, converted by the worker.
    Given,
    /// A part of an argument that pydantic converts, which has rules of its own (bytes are text, unknown keys pass).
    Validated,
    /// A result, as the worker writes it.
    Returned,
    /// A part of a result that pydantic writes.
    Dumped,
}

impl Side {
    pub(super) fn is_input(self) -> bool {
        matches!(self, Self::Given | Self::Validated)
    }

    pub(super) fn is_in_model(self) -> bool {
        matches!(self, Self::Validated | Self::Dumped)
    }

    /// The same direction, inside a pydantic model.
    pub(super) fn in_model(self) -> Self {
        if self.is_input() { Self::Validated } else { Self::Dumped }
    }
}
