//! What exists already: the same tool, files that would be replaced, tools that would be hidden or would hide it.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::parcel::{Parcel, digest, files_below};
use super::staging::Staging;
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

/// Whether everything is installed already, identically.
pub(super) fn is_installed(parcel: &Parcel, staging: &Staging, target: &Path) -> bool {
    let same = |at: &Path| is_same(&staging.folder.join(at), &target.join(at));
    if parcel.is_folder() && !parcel.is_link {
        let is_folder = fs::symlink_metadata(target.join(&parcel.top)).is_ok_and(|about| about.is_dir());
        let wanted: BTreeSet<PathBuf> = parcel.pieces.iter().map(|piece| piece.at.clone()).collect();
        return is_folder && names_of(target, parcel) == Some(wanted.clone()) && wanted.iter().all(|at| same(at));
    }
    parcel.pieces.iter().all(|piece| same(&piece.at))
}

fn names_of(target: &Path, parcel: &Parcel) -> Option<BTreeSet<PathBuf>> {
    let below = files_below(&target.join(&parcel.top), &parcel.top).ok()?;
    Some(below.into_iter().map(|piece| piece.at).collect())
}

/// Whether two paths are the same file, bytes and mode, or links to the same place.
pub(super) fn is_same(one: &Path, other: &Path) -> bool {
    let (Ok(about), Ok(there)) = (fs::symlink_metadata(one), fs::symlink_metadata(other)) else { return false };
    if about.is_symlink() || there.is_symlink() {
        return fs::read_link(one).ok().is_some_and(|target| fs::read_link(other).ok() == Some(target));
    }
    let mode = |about: &fs::Metadata| about.permissions().mode() & 0o777;
    let alike = about.is_file() && there.is_file() && about.len() == there.len() && mode(&about) == mode(&there);
    alike && digest(one).is_ok_and(|one| digest(other).is_ok_and(|other| one == other))
}

impl Conflicts {
    /// Compares with the folder itself, and with everything that is served here.
    pub fn of(
        parcel: &Parcel,
        staging: &Staging,
        found: &[ToolFile],
        target: &Path,
        config: &Config,
        catalogue: &Catalogue,
    ) -> Self {
        let mut conflicts = Self::default();
        let along = parcel.along().filter(|_| !parcel.is_folder()).map(|piece| &piece.at);
        // An identical neighbour is shared.
        let differing = along.filter(|at| !is_same(&staging.folder.join(at), &target.join(at)));
        let places: BTreeSet<PathBuf> = differing.map(|at| place_below(target, at)).collect();
        for place in places {
            conflicts.look_at(&place, false);
        }
        conflicts.look_at(&target.join(&parcel.top), true);
        conflicts.rivals(parcel, found, target);
        let same =
            |folder: &PathBuf| *folder == *target || fs::canonicalize(folder).ok() == fs::canonicalize(target).ok();
        let Some(rank) = config.tools.value.iter().position(same) else { return conflicts };
        conflicts.is_served = true;
        for entry in &catalogue.files {
            if !entry.file.path.starts_with(&config.tools.value[rank]) {
                conflicts.compare(&entry.file, found, rank + 1);
            }
        }
        conflicts
    }

    fn look_at(&mut self, path: &Path, is_main: bool) {
        let Ok(about) = fs::symlink_metadata(path) else { return };
        let what = match fs::read_link(path) {
            Ok(target) => format!("a link to {}", target.display()),
            Err(_) if about.is_dir() => "a folder".to_owned(),
            Err(_) => format!("a file of {} bytes", about.len()),
        };
        let others = if is_main { "" } else { ", which other tools may use" };
        self.against.push(format!("{} exists already, {what}{others}", path.display()));
        self.in_the_way.push(path.to_owned());
    }

    /// Other files of the folder with the same names.
    fn rivals(&mut self, parcel: &Parcel, found: &[ToolFile], target: &Path) {
        let is_own = |path: &Path| {
            path.starts_with(target.join(&parcel.top))
                || parcel.pieces.iter().any(|piece| target.join(&piece.at) == path)
        };
        let others = scan_all(&[target.to_owned()], None, &Answers::default()).files;
        for other in others.into_iter().filter(|other| !is_own(&other.path)) {
            if found.iter().any(|file| file.pack == other.pack) {
                self.against.push(format!("{} is also named `{}`", other.path.display(), other.pack));
                let top = other.path.strip_prefix(target).ok().and_then(|below| below.iter().next());
                self.in_the_way.extend(top.map(|top| target.join(top)));
            } else {
                self.against.extend(clash(&other, found));
            }
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

/// The place that a file would be written to: the first link on the way, because nothing is written through links.
fn place_below(target: &Path, at: &Path) -> PathBuf {
    let whole = target.join(at);
    let is_link = |path: &&Path| fs::symlink_metadata(path).is_ok_and(|about| about.is_symlink());
    let on_the_way = whole.ancestors().skip(1).take_while(|path| *path != target);
    on_the_way.filter(is_link).last().map_or_else(|| whole.clone(), Path::to_owned)
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
