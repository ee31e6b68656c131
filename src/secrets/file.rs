//! Secrets in files that only their owner may read, one in each, and what is wrong with such a file.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::SecretText;
use super::unreadable::Unreadable;
use crate::config::private_file::replace;
use crate::process::shell_word;
use crate::threads::blocking;

/// The time limit for reading a file.
const FILE_LIMIT: Duration = Duration::from_secs(5);

/// A disk may not answer, so a thread reads the file, with a time limit.
pub(super) async fn read_file(path: PathBuf, access: Access) -> Result<Option<SecretText>, Unreadable> {
    let late = format!("reading {} took longer than {} s", path.display(), FILE_LIMIT.as_secs());
    let reading = blocking(move || read_now(&path, access)).map_err(Unreadable::without_thread)?;
    let read = tokio::time::timeout(FILE_LIMIT, reading).await;
    read.unwrap_or_else(|_| Err(Unreadable::new(late, "check that its disk is available")))
}

/// Which modes of a file are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Only its owner may read it.
    OwnerOnly,
    /// Any: systemd may let a group read it.
    Any,
}

fn read_now(path: &Path, access: Access) -> Result<Option<SecretText>, Unreadable> {
    let shown = path.display();
    let cannot = |error: io::Error| {
        let what = format!("{shown}: {error}");
        Unreadable { source: Some(error), ..Unreadable::new(what, "correct its line in [secrets]") }
    };
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(cannot(error)),
    };
    if !metadata.is_file() {
        return Err(Unreadable::new(format!("{shown} is not a regular file"), "put the secret into one"));
    }
    if access == Access::OwnerOnly && metadata.mode() & 0o077 != 0 {
        return Err(Unreadable::new(format!("{shown} is readable by other users"), format!("run {}", chmod(path))));
    }
    let text = SecretText::new(std::fs::read_to_string(path).map_err(cannot)?);
    // An empty file is an unfilled placeholder.
    let value = text.trim_end_matches(['\n', '\r']);
    Ok((!value.is_empty()).then(|| SecretText::new(value.to_owned())))
}

/// The problem with a secret's file, and the next step.
pub fn trouble_of_secret(name: &str, path: &Path) -> Option<(String, String)> {
    match read_now(path, Access::OwnerOnly) {
        Err(error) => Some((error.what, error.fix)),
        Ok(None) => {
            Some((format!("{name} is read from {}, which {}", path.display(), lack_of(path)), how_to_fill(path)))
        }
        Ok(Some(text)) => named_itself(name, &text),
    }
}

/// How to fill a missing or empty file, including its mode.
pub(super) fn how_to_fill(path: &Path) -> String {
    format!("write only the value into it, and run {}", chmod(path))
}

fn chmod(path: &Path) -> String {
    format!("`chmod 600 {}`", shell_word(&path.to_string_lossy()))
}

/// Why a file holds no secret.
pub(super) fn lack_of(path: &Path) -> &'static str {
    if path.exists() { "is empty" } else { "does not exist" }
}

/// A line of an `.env` file instead of the value alone.
pub fn named_itself(name: &str, value: &str) -> Option<(String, String)> {
    let line = value.strip_prefix("export ").unwrap_or(value);
    let is_named = line.strip_prefix(name)?.trim_start().starts_with('=');
    let what = format!("the value of {name} begins with `{name}=`, which tools receive as part of it");
    let fix = format!(
        "remove `{}{name}=`: the file holds only the value, without quotes",
        &value[..value.len() - line.len()]
    );
    is_named.then_some((what, fix))
}

/// Stores a secret in a file that only its owner may read, whole or not at all.
pub fn store(path: &Path, value: &str) -> io::Result<()> {
    let line = SecretText::new(format!("{value}\n"));
    replace(path, line.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn problems_with_a_secret_file_are_reported() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("my key");
        let shown = path.display();
        let found = || trouble_of_secret("KEY", &path).map(|(what, fix)| format!("{what}; {fix}"));
        let fill = format!("write only the value into it, and run `chmod 600 '{shown}'`");
        let looked = format!("KEY is read from {shown}, which ");
        assert_eq!(found(), Some(format!("{looked}does not exist; {fill}")));
        let write = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        write("\n", 0o600);
        assert_eq!(found(), Some(format!("{looked}is empty; {fill}")));
        write("k-1\n", 0o644);
        assert_eq!(found(), Some(format!("{shown} is readable by other users; run `chmod 600 '{shown}'`")));
        write("k-1\n", 0o600);
        assert_eq!(found(), None);
        for (text, head) in [("KEY=k-1\n", "KEY="), ("export KEY=k-1", "export KEY=")] {
            write(text, 0o600);
            let found = found().unwrap();
            assert!(found.contains(&format!("remove `{head}`")) && !found.contains("k-1"), "{found}");
        }
        assert_eq!((named_itself("KEY", "KEYS=1"), named_itself("KEY", "KEY1")), (None, None));
    }
}
