//! What the operator says that a Python file needs, in force over its header.

use std::sync::Arc;

use super::{Kind, ToolFile};
use crate::config::needs::Needs;
use crate::config::origin::{Diagnosis, Setting};
use crate::pep723::Metadata;

impl ToolFile {
    /// Puts what the operator says in place of what the header says. A file without a header then has an environment of its own.
    pub fn require(&mut self, needs: &Needs) {
        let is_python = matches!(self.kind, Kind::Python | Kind::Internal);
        if !is_python || !needs.replace_the_header() {
            return;
        }
        match self.needing(needs) {
            Ok(header) => {
                self.kind = Kind::Python;
                self.header = Some(header);
            }
            Err(reason) => self.break_with(None, reason),
        }
    }

    fn needing(&self, needs: &Needs) -> Result<Metadata, Diagnosis> {
        let made = || Metadata::from_toml("dependencies = []\n", 1, &Arc::new(self.path.clone()));
        let mut header = self.header.clone().map_or_else(made, Ok).map_err(|error| error.diagnosis())?;
        if let Some(set) = &needs.dependencies {
            header = header.with_dependencies(&set.value, place(set))?;
        }
        if let Some(set) = &needs.requires_python {
            header = header.with_python(&set.value, &place(set))?;
        }
        Ok(header)
    }
}

fn place<T>(setting: &Setting<T>) -> String {
    setting.origin.to_string()
}
