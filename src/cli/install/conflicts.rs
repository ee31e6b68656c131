//! What exists already: the same tool, entries that would be replaced, tools that would be hidden or would hide it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::parcel::{Parcel, is_part};
use super::preview::digest;
use crate::config::Config;
use crate::discovery::{Answers, Kind, ToolFile, scan_all};
use crate::registry::Catalogue;
use crate::words::plural;

/// How a parcel relates to the tools that exist.
#[derive(Debug, Default)]
pub(super) struct Conflicts {
    /// Entries of the folder that have to be set aside.
    pub in_the_way: Vec<Existing>,
    /// What would be replaced and which names collide, in sentences: reasons to refuse it without --force.
    pub against: Vec<String>,
    /// What it hides in weaker folders.
    pub overrides: Vec<String>,
    /// What hides it in stronger folders: it would not be served.
    pub hidden_by: Vec<PathBuf>,
    /// Whether that folder is one of the configured ones.
    pub is_served: bool,
}

/// An entry of the folder as it was shown, to notice a change before it is removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Existing {
    pub path: PathBuf,
    parts: BTreeMap<PathBuf, Part>,
}

/// Device and inode, and of all but folders also modification time and size.
type Part = ((u64, u64), Option<(i64, i64, u64)>);

impl Existing {
    /// The entry with everything below it, except caches of Python, which a call may write.
    pub fn at(path: &Path) -> Self {
        let (mut parts, mut waiting) = (BTreeMap::new(), vec![path.to_owned()]);
        while let Some(path) = waiting.pop() {
            let Ok(about) = fs::symlink_metadata(&path) else { continue };
            let content = (!about.is_dir()).then(|| (about.mtime(), about.mtime_nsec(), about.size()));
            if about.is_dir() {
                let entries = fs::read_dir(&path).into_iter().flatten().flatten();
                waiting.extend(entries.filter(|entry| entry.file_name() != "__pycache__").map(|entry| entry.path()));
            }
            parts.insert(path, ((about.dev(), about.ino()), content));
        }
        Self { path: path.to_owned(), parts }
    }

    pub fn is_unchanged(&self) -> bool {
        Self::at(&self.path) == *self
    }

    /// What it is, for people.
    fn about(&self) -> String {
        match (fs::read_link(&self.path), self.parts.get(&self.path)) {
            (Ok(target), _) => format!("a link to {}", target.display()),
            (_, Some((_, Some((.., bytes))))) => format!("a file of {bytes} bytes"),
            _ => {
                let files = self.parts.values().filter(|(_, content)| content.is_some()).count();
                format!("a folder with {}", plural(files, "file"))
            }
        }
    }
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
        // The lock of an earlier tool would pin the new one's packages. A tool with a lock becomes a folder with it inside.
        if let Some(name) = parcel.top.file_stem().and_then(OsStr::to_str).filter(|_| !parcel.is_executable) {
            conflicts.look_at(&target.join(format!("{name}.py.lock")));
        }
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
        if fs::symlink_metadata(place).is_err() {
            return;
        }
        let existing = Existing::at(place);
        self.against.push(format!("{} exists already, {}", place.display(), existing.about()));
        self.in_the_way.push(existing);
    }

    /// Compares with another file of the same folder.
    fn compare_within(&mut self, other: &ToolFile, found: &[ToolFile], target: &Path) {
        if found.iter().any(|file| file.pack == other.pack) {
            let named = format!("{} is also named `{}`", other.path.display(), other.pack);
            let top = other.path.strip_prefix(target).ok().and_then(|below| below.iter().next());
            let top = top.map_or_else(|| other.path.clone(), |top| target.join(top));
            let existing = Existing::at(&top);
            let whole = format!(", and all of {} would be removed: {}", top.display(), existing.about());
            self.against.push(if top == other.path { named } else { named + &whole });
            if !self.in_the_way.contains(&existing) {
                self.in_the_way.push(existing);
            }
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
    let names = |file: &ToolFile| file.functions.iter().map(|one| file.names_of(one).1).collect::<Vec<_>>();
    let own: Vec<String> = found.iter().flat_map(names).collect();
    let name = names(other).into_iter().find(|name| own.contains(name))?;
    Some(format!("{} also has a tool `{name}` for MCP clients, and only one can be served", place_of(other)))
}
