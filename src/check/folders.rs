//! Tools folders that other users can write to.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::config::origin::Diagnosis;
use crate::process::shell_word;

/// Who besides this user and root can change what a folder holds, and what to do. A group of this user's own is no other:
/// many systems give each user one, and open new folders to it.
pub fn open_to_others(folder: &Path) -> Option<Diagnosis> {
    let data = folder.metadata().ok().filter(std::fs::Metadata::is_dir)?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let shown = folder.display();
    let path = shell_word(&folder.to_string_lossy());
    if ![user, 0].contains(&data.uid()) {
        let fix = format!("use a folder of your own, or run `chown {user} {path}`");
        return Some(Diagnosis::new(format!("{shown} belongs to another user, who can change its tools"), fix));
    }
    let who = match data.mode() {
        mode if mode & 0o002 != 0 => "every user",
        mode if mode & 0o020 != 0 && ![group, 0].contains(&data.gid()) => "a group of users",
        _ => return None,
    };
    Some(Diagnosis::new(format!("{who} can write to {shown} and change its tools"), format!("run `chmod go-w {path}`")))
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_that_others_can_write_to_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        for (mode, is_open) in [(0o700, false), (0o755, false), (0o775, false), (0o757, true), (0o1777, true)] {
            set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
            let found = open_to_others(folder.path());
            assert_eq!(found.is_some(), is_open, "{mode:o}: {found:?}");
            assert!(found.is_none_or(|found| found.fix.contains("chmod go-w")));
        }
        assert!(open_to_others(Path::new("/nowhere/at/all")).is_none());
    }
}
