//! What live types added to the schemas of a file, kept for the next run by what the file holds.

use std::path::PathBuf;

use data_encoding::HEXLOWER;

use super::cache::{Cache, check, read_regular};
use super::unsaved::Unsaved;
use super::{Function, ToolFile};

impl Cache {
    /// The functions of a version of a file, as live types completed them in an earlier run.
    pub fn refined(&self, version: &[u8; 32]) -> Option<Vec<Function>> {
        let text = read_regular(&self.place_of_refined(version)).ok()?;
        let (sum, functions) = text.strip_prefix(&self.first_line())?.split_once('\n')?;
        (sum == check(functions)).then(|| serde_json::from_str(functions).ok()).flatten()
    }

    /// What is to be written down of them.
    pub fn unsaved_refined(&self, version: &[u8; 32], functions: &[Function]) -> Option<Unsaved> {
        let functions = serde_json::to_string(functions).ok()?;
        let text = format!("{}{}\n{functions}", self.first_line(), check(&functions));
        Some(Unsaved::new(self.place_of_refined(version), text))
    }

    fn place_of_refined(&self, version: &[u8; 32]) -> PathBuf {
        self.folder().join(format!("refined-{}", HEXLOWER.encode(&version[..12])))
    }
}

impl ToolFile {
    /// Takes over functions that live types completed. Only schemas may differ; anything else is of another file.
    pub fn refine(&mut self, functions: &[Function]) -> bool {
        let is_same = |(own, other): (&Function, &Function)| own.name == other.name && own.line == other.line;
        let fits = functions.len() == self.functions.len() && self.functions.iter().zip(functions).all(is_same);
        if fits {
            functions.clone_into(&mut self.functions);
        }
        fits
    }
}
