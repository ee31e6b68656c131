//! Approvals that outlive hostler, each a file of its own: a person allowed a version of a tool for good, with certain arguments or any.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::pending::ApprovalRequest;
use crate::config::environment::{Environment, state};
use crate::config::private_file::{read, replace};
use crate::telemetry::unix_ms;

/// The longest file: one with the longest arguments.
const LONGEST: u64 = 1 << 20;

/// An approval that is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// What it is bound to: the tool, its version and rights, the mode, the configuration file, the folder.
    pub identity: String,
    /// The configuration file whose rules asked; empty for sessions without one.
    pub project: String,
    /// The folder of the session: what a path in the arguments means.
    pub folder: String,
    /// The full name of the tool.
    pub tool: String,
    /// The version of its file: a changed file asks again.
    pub version: String,
    /// The arguments that it covers, unless they may hold secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// Their digest; `None` if it covers all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// When it was given, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Kept {
    fn of(request: &ApprovalRequest, with_arguments: bool) -> Self {
        Self {
            identity: request.identity.clone(),
            project: request.project.clone(),
            folder: request.folder.clone(),
            tool: request.tool.clone(),
            version: request.version.clone(),
            arguments: (with_arguments && !request.is_secret).then(|| request.arguments.to_string()),
            digest: with_arguments.then(|| request.digest.clone()),
            since_ms: unix_ms(),
        }
    }

    /// Its id: the name of its file.
    pub fn id(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.identity.as_str(), self.digest.as_deref().unwrap_or_default()] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        data_encoding::HEXLOWER.encode(&hash.finalize()[..16])
    }

    /// Whether it was for an earlier version of the tool's file.
    fn is_replaced_by(&self, other: &Self) -> bool {
        let place = |kept: &Self| [&kept.project, &kept.folder, &kept.tool].map(String::clone);
        place(self) == place(other) && self.version != other.version
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
        Self::in_folder(state(environment).join("approvals"))
    }

    /// Those in a folder.
    pub(super) fn in_folder(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn file(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// Whether a call was allowed for good. Blocks for a moment.
    pub fn allows(&self, request: &ApprovalRequest) -> bool {
        [true, false].into_iter().any(|with_arguments| {
            let wanted = Kept::of(request, with_arguments).id();
            // A file that was copied to another name allows nothing.
            kept_in(&self.file(&wanted)).is_some_and(|kept| kept.id() == wanted)
        })
    }

    /// Allows calls like this one for good, and removes what was kept for earlier versions. When this returns, that outlives a loss of
    /// power. Returns the id if it was not kept before.
    pub fn keep(&self, request: &ApprovalRequest, with_arguments: bool) -> io::Result<Option<String>> {
        let kept = Kept::of(request, with_arguments);
        let (id, is_new) = (kept.id(), kept_in(&self.file(&kept.id())).is_none());
        replace(&self.file(&id), &serde_json::to_vec(&kept)?)?;
        self.forget(|other| other.is_replaced_by(&kept))?;
        Ok(is_new.then_some(id))
    }

    /// All that are kept, the newest first.
    pub fn list(&self) -> io::Result<Vec<Kept>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let is_in_its_place = |path: &Path, kept: &Kept| path == self.file(&kept.id());
        let mut kept: Vec<Kept> = entries
            .flatten()
            .filter_map(|entry| kept_in(&entry.path()).filter(|kept| is_in_its_place(&entry.path(), kept)))
            .collect();
        kept.sort_by_key(|one| std::cmp::Reverse(one.since_ms));
        Ok(kept)
    }

    /// Takes approvals back. Returns how many those were.
    pub fn forget(&self, forgotten: impl Fn(&Kept) -> bool) -> io::Result<usize> {
        let gone: Vec<Kept> = self.list()?.into_iter().filter(forgotten).collect();
        for one in &gone {
            match std::fs::remove_file(self.file(&one.id())) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(gone.len())
    }
}

fn kept_in(file: &Path) -> Option<Kept> {
    serde_json::from_slice(&read(file, LONGEST).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(version: &str, digest: &str) -> ApprovalRequest {
        ApprovalRequest {
            call: "1".into(),
            tool: "a.b".into(),
            version: version.into(),
            identity: format!("a.b {version}"),
            arguments: format!("{{\"x\":\"{digest}\"}}").into(),
            digest: digest.into(),
            is_secret: false,
            reason: String::new(),
            session: 1,
            number: Some(1),
            client: None,
            project: String::new(),
            folder: String::new(),
        }
    }

    #[test]
    fn what_was_allowed_for_good_is_until_the_identity_or_the_arguments_change() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered { folder: folder.path().join("approvals") };
        assert!(!remembered.allows(&request("1", "x")) && remembered.list().unwrap().is_empty());
        assert!(remembered.keep(&request("1", "x"), true).unwrap().is_some());
        let again = Remembered { folder: folder.path().join("approvals") };
        assert!(again.allows(&request("1", "x")));
        assert!(!again.allows(&request("1", "y")) && !again.allows(&request("2", "x")));
        assert!(again.keep(&request("1", "z"), false).unwrap().is_some());
        assert!(again.keep(&request("1", "z"), false).unwrap().is_none(), "it was there");
        assert!(again.allows(&request("1", "y")) && !again.allows(&request("2", "y")));
        assert_eq!(again.list().unwrap().len(), 2);
        assert_eq!(again.forget(|kept| kept.digest.is_none()).unwrap(), 1);
        assert!(again.allows(&request("1", "x")) && !again.allows(&request("1", "y")));
    }

    #[test]
    fn a_later_version_replaces_what_was_kept_of_earlier_ones() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered { folder: folder.path().to_owned() };
        remembered.keep(&request("1", "x"), true).unwrap();
        remembered.keep(&request("1", "y"), true).unwrap();
        let elsewhere = ApprovalRequest { folder: "/other".into(), identity: "there".into(), ..request("1", "x") };
        remembered.keep(&elsewhere, true).unwrap();
        remembered.keep(&request("2", "x"), false).unwrap();
        assert!(!remembered.allows(&request("1", "x")) && remembered.allows(&elsewhere));
        assert_eq!(remembered.list().unwrap().len(), 2);
    }

    #[test]
    fn arguments_that_may_hold_secrets_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered { folder: folder.path().to_owned() };
        let secret = ApprovalRequest { is_secret: true, ..request("1", "hunter2") };
        remembered.keep(&secret, true).unwrap();
        assert!(remembered.allows(&secret) && !remembered.allows(&request("1", "x")));
        assert_eq!(remembered.list().unwrap()[0].arguments, None);
    }

    #[test]
    fn a_file_under_another_name_allows_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered { folder: folder.path().to_owned() };
        remembered.keep(&request("1", "x"), true).unwrap();
        let from = remembered.file(&Kept::of(&request("1", "x"), true).id());
        std::fs::copy(&from, remembered.file(&Kept::of(&request("2", "x"), true).id())).unwrap();
        assert!(!remembered.allows(&request("2", "x")));
        assert_eq!(remembered.list().unwrap().len(), 1);
        assert_eq!(remembered.forget(|_| true).unwrap(), 1, "the copy hinders nothing");
    }
}
