//! What executables answered in this run.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::ToolFile;
use super::executable::{self, Answer};
use super::stamp::Stamp;

/// Answers, each with what the file looked like when it was asked.
#[derive(Debug, Default)]
pub struct Asked {
    answers: HashMap<PathBuf, (Stamp, Answer)>,
    /// Whether what earlier runs were told counts for nothing.
    anew: bool,
}

impl Asked {
    /// Notes an answer.
    pub fn note(&mut self, path: PathBuf, stamp: Stamp, answer: Answer) {
        self.answers.insert(path, (stamp, answer));
    }

    /// Forgets all answers, of earlier runs too.
    pub fn forget(&mut self) {
        self.answers.clear();
        self.anew = true;
    }

    pub(super) fn is_anew(&self) -> bool {
        self.anew
    }

    /// The file with its answer, as long as it looks as it did.
    pub(super) fn told(&self, path: &Path, stamp: Stamp) -> Option<ToolFile> {
        let (seen, answer) = self.answers.get(path)?;
        (*seen == stamp).then(|| executable::told(path, answer))
    }
}
