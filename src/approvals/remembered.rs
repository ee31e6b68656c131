//! Approvals that outlive hostler, each a file of its own: a person allowed a version of a tool for good, with certain arguments or any.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::desk::Asked;
use crate::config::environment::{Environment, state};
use crate::config::private_file::replace;
use crate::telemetry::unix_ms;

/// An approval that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The configuration file whose rules asked; empty for sessions without one.
    pub project: String,
    /// The full name of the tool.
    pub tool: String,
    /// The version of its file: a changed file asks again.
    pub version: String,
    /// The arguments that it is good for; `None` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Their digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was given, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Kept {
    fn of(asked: &Asked, with_arguments: bool) -> Self {
        Self {
            project: asked.project.clone(),
            tool: asked.tool.clone(),
            version: asked.version.clone(),
            arguments: with_arguments.then(|| asked.arguments.to_string()),
            digest: with_arguments.then(|| asked.digest.clone()),
            since_ms: unix_ms(),
        }
    }

    /// Its id: the name of its file.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        for part in [&self.project, &self.tool, &self.version, self.digest.as_ref().unwrap_or(&String::new())] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        data_encoding::HEXLOWER.encode(&hash.finalize()[..16])
    }
}

/// The approvals of a person.
#[derive(Debug)]
pub struct Remembered {
    folder: PathBuf,
}

impl Remembered {
    /// A person's.
    pub fn of(environment: &Environment) -> Self {
        Self { folder: state(environment).join("approvals") }
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// Whether a call was allowed for good. Blocks for a moment.
    pub fn allow(&self, asked: &Asked) -> bool {
        [true, false].into_iter().any(|with_arguments| {
            let wanted = Kept::of(asked, with_arguments);
            let found = read(&self.file(&wanted.id()));
            // A file that was copied to another name is none.
            found.is_some_and(|kept| kept.id() == wanted.id())
        })
    }

    /// Allows calls like this one for good. When this returns, that outlives a loss of power.
    pub fn keep(&self, asked: &Asked, with_arguments: bool) -> io::Result<()> {
        let kept = Kept::of(asked, with_arguments);
        replace(&self.file(&kept.id()), &serde_json::to_vec(&kept)?)
    }

    /// All that are kept, the newest first.
    pub fn list(&self) -> io::Result<Vec<Kept>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut kept: Vec<Kept> = entries.flatten().filter_map(|entry| read(&entry.path())).collect();
        kept.sort_by_key(|one| std::cmp::Reverse(one.since_ms));
        Ok(kept)
    }

    /// Takes approvals back. Returns how many those were.
    pub fn forget(&self, forgotten: impl Fn(&Kept) -> bool) -> io::Result<usize> {
        let gone: Vec<Kept> = self.list()?.into_iter().filter(forgotten).collect();
        for one in &gone {
            std::fs::remove_file(self.file(&one.id()))?;
        }
        Ok(gone.len())
    }
}

fn read(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&std::fs::read(file).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(version: &str, digest: &str) -> Asked {
        Asked {
            call: "1".into(),
            tool: "a.b".into(),
            version: version.into(),
            arguments: format!("{{\"x\":\"{digest}\"}}").into(),
            digest: digest.into(),
            why: String::new(),
            session: 1,
            client: None,
            project: String::new(),
        }
    }

    #[test]
    fn what_was_allowed_for_good_is_until_the_file_or_the_arguments_change() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered { folder: folder.path().join("approvals") };
        assert!(!remembered.allow(&asked("1", "x")) && remembered.list().unwrap().is_empty());
        remembered.keep(&asked("1", "x"), true).unwrap();
        let again = Remembered { folder: folder.path().join("approvals") };
        assert!(again.allow(&asked("1", "x")));
        assert!(!again.allow(&asked("1", "y")) && !again.allow(&asked("2", "x")));
        again.keep(&asked("1", "z"), false).unwrap();
        assert!(again.allow(&asked("1", "y")) && !again.allow(&asked("2", "y")));
        assert_eq!(again.list().unwrap().len(), 2);
        assert_eq!(again.forget(|kept| kept.digest.is_none()).unwrap(), 1);
        assert!(again.allow(&asked("1", "x")) && !again.allow(&asked("1", "y")));
    }

    #[test]
    fn a_file_under_another_name_allows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered { folder: folder.path().to_owned() };
        remembered.keep(&asked("1", "x"), true).unwrap();
        let from = remembered.file(&Kept::of(&asked("1", "x"), true).id());
        std::fs::copy(&from, remembered.file(&Kept::of(&asked("2", "x"), true).id())).unwrap();
        assert!(!remembered.allow(&asked("2", "x")));
    }
}
