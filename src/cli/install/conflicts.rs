//! What exists already: the same tool, entries that would be replaced, tools that would be hidden or would hide it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::parcel::{Parcel, is_part};
use super::preview::digest;
use crate::config::Config;
use crate::discovery::{Answers, Kind, ToolFile, scan_all};
use crate::registry::Catalogue;

/// How a parcel relates to the tools that exist.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Entries of the folder that have to be set aside.
    pub in_the_way: Vec<PathBuf>,
    /// What would be replaced and which names collide, in sentences: reasons to refuse it without --force.
    pub against: Vec<String>,
    /// What it hides in weaker folders.
    pub overrides: Vec<String>,
    /// What hides it in stronger folders: it would not be served.
    pub hidden_by: Vec<PathBuf>,
    /// Whether that folder is one of the configured ones.
    pub is_served: bool,
}

/// Whether two paths are the same file, bytes and mode, or links to the same place, or folders of the same.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(about), Ok(there)) = (fs::symlink_metadata(one), fs::symlink_metadata(other)) else { return false };
    if about.file_type() != there.file_type() {
        return false;
    }
    if about.is_symlink() {
        return fs::read_link(one).ok() == fs::read_link(other).ok();
    }
    if about.is_dir() {
        let names = parts_of(one);
        return names == parts_of(other) && names.iter().all(|name| is_same(&one.join(name), &other.join(name)));
    }
    let mode = |about: &fs::Metadata| about.permissions().mode() & 0o777;
    let alike = about.is_file() && about.len() == there.len() && mode(&about) == mode(&there);
    alike && digest(one).is_ok_and(|one| digest(other).is_ok_and(|other| one == other))
}

fn parts_of(folder: &Path) -> BTreeSet<OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).filter(|name| is_part(name)).collect()
}

impl Conflicts {
    /// Compares the files `found` in a parcel with the folder itself, and with everything that is served here.
    pub fn of(parcel: &Parcel, found: &[ToolFile], target: &Path, config: &Config, served: &Catalogue) -> Self {
        let mut conflicts = Self::default();
        let place = target.join(&parcel.top);
        conflicts.look_at(&place);
        let others = scan_all(&[target.to_owned()], None, &Answers::default()).files;
        for other in others.iter().filter(|other| !other.path.starts_with(&place)) {
            conflicts.compare_within(other, found, target);
        }
        let same =
            |folder: &PathBuf| folder == target || fs::canonicalize(folder).ok() == fs::canonicalize(target).ok();
        let Some(rank) = config.tools.value.iter().position(same) else { return conflicts };
        conflicts.is_served = true;
        let served = served.files.iter().map(|entry| &entry.file);
        for other in served.filter(|file| !file.path.starts_with(&config.tools.value[rank])) {
            conflicts.compare(other, found, rank + 1);
        }
        conflicts
    }

    fn look_at(&mut self, place: &Path) {
        let Ok(about) = fs::symlink_metadata(place) else { return };
        let what = match fs::read_link(place) {
            Ok(target) => format!("a link to {}", target.display()),
            Err(_) if about.is_dir() => "a folder".to_owned(),
            Err(_) => format!("a file of {} bytes", about.len()),
        };
        self.against.push(format!("{} exists already, {what}", place.display()));
        self.in_the_way.push(place.to_owned());
    }

    /// Compares with another file of the same folder.
    fn compare_within(&mut self, other: &ToolFile, found: &[ToolFile], target: &Path) {
        if found.iter().any(|file| file.pack == other.pack) {
            self.against.push(format!("{} is also named `{}`", other.path.display(), other.pack));
            let top = other.path.strip_prefix(target).ok().and_then(|below| below.iter().next());
            self.in_the_way.extend(top.map(|top| target.join(top)));
        } else {
            self.against.extend(clash(other, found));
        }
    }

    /// Compares with a file of another folder.
    fn compare(&mut self, other: &ToolFile, found: &[ToolFile], rank: usize) {
        if found.iter().all(|file| file.pack != other.pack) {
            self.against.extend(clash(other, found));
        } else if other.rank > rank {
            self.hidden_by.push(other.path.clone());
        } else {
            self.overrides.push(place_of(other));
        }
    }
}

fn place_of(file: &ToolFile) -> String {
    match file.kind {
        Kind::Builtin => format!("the built-in tool {}", file.pack),
        _ => file.path.display().to_string(),
    }
}

/// A tool name for MCP clients that both have.
fn clash(other: &ToolFile, found: &[ToolFile]) -> Option<String> {
    let names = |file: &ToolFile| file.functions.iter().map(|one| file.names_of(&one.name).1).collect::<Vec<_>>();
    let own: Vec<String> = found.iter().flat_map(names).collect();
    let name = names(other).into_iter().find(|name| own.contains(name))?;
    Some(format!("{} also has a tool `{name}` for MCP clients, and only one can be served", place_of(other)))
}
