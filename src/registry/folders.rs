//! The folders in which something may happen that changes the catalogue.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::catalogue::Catalogue;
use super::live::is_beside_the_point;

/// Folders as the system names them, and what matters within each.
pub(super) type Folders = HashMap<PathBuf, Matters>;

/// What matters within a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Matters {
    /// Everything: tool files or helpers lie there.
    All,
    /// These names: the way to a tools folder that may come, go, or be another one tomorrow.
    Names(HashSet<OsString>),
}

impl Matters {
    fn name(&mut self, name: OsString) {
        if let Self::Names(names) = self {
            names.insert(name);
        }
    }

    fn includes(&self, name: &Path) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => name.file_name().is_some_and(|name| names.contains(name)),
        }
    }
}

/// Whether something that happened at a path may change the catalogue.
pub(super) fn matters(folders: &Folders, path: &Path) -> bool {
    let within = path.parent().and_then(|folder| folders.get(folder));
    folders.contains_key(path) || within.is_some_and(|what| what.includes(path))
}

/// The folders of a catalogue: the tools folders and those within them, where helpers lie, where links lead.
pub(super) fn folders(tools: &[PathBuf], catalogue: &Catalogue) -> Folders {
    let mut found = Folders::new();
    for folder in tools {
        lead_to(folder, &mut found);
        let inner = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        for folder in inner.filter(|path| path.is_dir() && !is_beside_the_point(path)).chain([folder.clone()]) {
            hold(&folder, &mut found);
        }
    }
    let files = catalogue.files.iter().flat_map(|entry| std::iter::once(&entry.file.path).chain(&entry.file.helpers));
    for file in files {
        let target = fs::canonicalize(file).ok();
        for folder in [Some(file.as_path()), target.as_deref()].into_iter().flatten().filter_map(Path::parent) {
            hold(folder, &mut found);
        }
    }
    found
}

fn hold(folder: &Path, found: &mut Folders) {
    if let Ok(folder) = fs::canonicalize(folder) {
        found.insert(folder, Matters::All);
    }
}

/// The nearest folder above one that is there, and the name in it that leads on.
fn lead_to(folder: &Path, found: &mut Folders) {
    let Ok(whole) = std::path::absolute(folder) else { return };
    for (above, below) in whole.ancestors().skip(1).zip(whole.ancestors()) {
        if let (Ok(above), Some(name)) = (fs::canonicalize(above), below.file_name()) {
            let matters = found.entry(above).or_insert_with(|| Matters::Names(HashSet::new()));
            return matters.name(name.to_owned());
        }
    }
}

/// Whether files there may change without this machine being told: others write to them too.
pub(super) fn is_shared(folder: &Path) -> bool {
    #[cfg(target_os = "linux")]
    {
        // NFS, SMB in its three ages, FUSE, 9p, VirtualBox, Ceph, AFS, Coda: their numbers in statfs(2).
        const SHARED: [u32; 10] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x6573_5546,
            0x0102_1997,
            0x786f_4256,
            0x00c3_6400,
            0x5346_414f,
            0x7375_7245,
        ];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are numbers of 32 bits")]
        return rustix::fs::statfs(folder).is_ok_and(|about| SHARED.contains(&(about.f_type as u32)));
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = folder;
        false
    }
}
