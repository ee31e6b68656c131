//! What an environment is built from, and the name that follows from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::pep723::Metadata;

/// Raised when the layout of a built environment changes; older ones are then no longer found.
const FORMAT: &str = "1";

/// What one environment is built from.
#[derive(Debug, Clone)]
pub struct EnvironmentSpec {
    /// For messages: the pack.
    pub name: String,
    /// The tool file; its lock is beside it.
    pub file: PathBuf,
    /// A script header with just what uv needs: requires-python, dependencies, `[tool.uv]`.
    pub header: String,
    /// Whether the header names paths relative to the tool file.
    pub relative_sources: bool,
    /// Whether nothing may be built: a package's build runs code of its own, without the walls of the tool.
    pub wheels_only: bool,
    /// The header as its author wrote it, for messages.
    pub written: Option<Arc<Metadata>>,
}

impl EnvironmentSpec {
    /// The environment of a tool file with a header. Keys that uv does not read are left out, so that a new timeout
    /// in the header does not make a new environment.
    pub fn from_header(name: &str, file: &Path, header: &Metadata) -> Self {
        let mut table = toml::Table::new();
        if let Some(python) = &header.requires_python {
            table.insert("requires-python".to_owned(), python.clone().into());
        }
        table.insert("dependencies".to_owned(), header.dependencies.clone().into());
        if let Some(uv) = header.other_tools.get("uv") {
            let tool: toml::Table = [("uv".to_owned(), uv.clone())].into_iter().collect();
            table.insert("tool".to_owned(), tool.into());
        }
        let header_text = as_comment(&table.to_string());
        Self {
            name: name.to_owned(),
            file: file.to_owned(),
            header: header_text,
            relative_sources: header.relative_sources,
            wheels_only: false,
            written: Some(Arc::new(header.clone())),
        }
    }

    /// The house environment, for internal tool files: an interpreter and the standard library.
    pub fn house(name: &str, file: &Path) -> Self {
        let header = as_comment("requires-python = \">=3.9\"\ndependencies = []\n");
        Self {
            name: name.to_owned(),
            file: file.to_owned(),
            header,
            relative_sources: false,
            wheels_only: false,
            written: None,
        }
    }

    /// The lock that the author keeps beside the file, if any.
    pub fn lock_file(&self) -> PathBuf {
        lock_file(&self.file)
    }

    /// The environment's name: two tool files with the same needs share one.
    pub fn key(&self, lock: Option<&[u8]>, python: Option<&str>) -> String {
        let mut hash = Sha256::new();
        let path = self.file.to_string_lossy();
        let place = if self.relative_sources { path.as_bytes() } else { b"" };
        let platform = concat!(env!("CARGO_PKG_NAME"), "-").to_owned() + std::env::consts::OS + std::env::consts::ARCH;
        let parts = [FORMAT.as_bytes(), self.header.as_bytes(), lock.unwrap_or(b""), place, platform.as_bytes()];
        let wheels: Option<&[u8]> = self.wheels_only.then_some(b"wheels");
        for part in parts.into_iter().chain([python.unwrap_or_default().as_bytes()]).chain(wheels) {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let digest = hash.finalize();
        format!("{:032x}", u128::from_be_bytes(digest[..16].try_into().unwrap_or_default()))
    }
}

/// TOML as a PEP 723 block.
fn as_comment(toml: &str) -> String {
    let mut block = "# /// script\n".to_owned();
    for line in toml.lines() {
        block.push('#');
        if !line.is_empty() {
            block.push(' ');
        }
        block.push_str(line);
        block.push('\n');
    }
    block + "# ///\n"
}

/// Where the lock of a tool file is, if it has one.
pub fn lock_file(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    file.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_follows_from_what_is_installed_and_from_nothing_else() {
        let one = EnvironmentSpec::house("a", Path::new("/t/a.py"));
        let other = EnvironmentSpec::house("b", Path::new("/t/b.py"));
        assert_eq!(one.key(None, None), other.key(None, None));
        assert_ne!(one.key(None, None), one.key(Some(b"lock"), None));
        assert_ne!(one.key(None, None), one.key(None, Some("3.12")));
        let bound = EnvironmentSpec { relative_sources: true, ..one.clone() };
        let moved = EnvironmentSpec { relative_sources: true, ..other };
        assert_ne!(bound.key(None, None), moved.key(None, None));
    }

    #[test]
    fn the_staged_header_is_a_header() {
        let spec = EnvironmentSpec::house("a", Path::new("/t/a.py"));
        assert_eq!(spec.header, "# /// script\n# requires-python = \">=3.9\"\n# dependencies = []\n# ///\n");
        assert_eq!(spec.lock_file(), Path::new("/t/a.py.lock"));
    }
}
