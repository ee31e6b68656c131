//! What is to be installed: the files that belong to what was named. Together they become one entry of the tools folder: a file, a
//! folder, or a link.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::cli::style::Refusal;
use crate::discovery::{is_executable_tool, neighbours_of};

/// A folder with more than this is a project or an environment, not a tool.
const MOST_FILES: usize = 2000;
const MOST_BYTES: u64 = 64 << 20;

/// One file, or a folder that is linked: its source, and its place below the tools folder.
#[derive(Debug)]
pub(super) struct Piece {
    pub from: PathBuf,
    pub at: PathBuf,
    /// Whether it was named or is a neighbour: only then may it be a link to a file.
    pub may_be_link: bool,
}

/// All that is installed together.
#[derive(Debug)]
pub(super) struct Parcel {
    /// What was named, as an absolute path.
    pub source: PathBuf,
    /// The entry of the tools folder that it becomes.
    pub top: PathBuf,
    /// The tool's own file, below the tools folder.
    pub main: PathBuf,
    pub pieces: Vec<Piece>,
    pub is_executable: bool,
    pub is_link: bool,
}

impl Parcel {
    /// What a path refers to, or why it cannot be installed.
    pub fn of(path: &Path, is_link: bool) -> Result<Self, Refusal> {
        let shown = path.display();
        let cannot = |error| Refusal::io(format!("cannot install {shown}"), error);
        let about = fs::metadata(path).map_err(cannot)?;
        // `folder/..` has no file name.
        let has_name = path.file_name().is_some();
        let source = if has_name { std::path::absolute(path) } else { path.canonicalize() }.map_err(cannot)?;
        let Some(name) = source.file_name().map(PathBuf::from) else {
            return Err(Refusal::new(format!("{shown} has no file name"), "name a tool file or its folder"));
        };
        let refused = |what, fix: &str| Err(Refusal::new(format!("{shown} {what}"), fix));
        if about.is_dir() {
            return Self::of_folder(source, name, is_link);
        }
        if !about.is_file() {
            let fix = "name a Python file, an executable, or a folder NAME/NAME.py";
            return refused("is not a regular file", fix);
        }
        if name.extension().is_some_and(|end| end == "py") {
            return Ok(Self::of_python(source, name, is_link));
        }
        if about.permissions().mode() & 0o111 == 0 {
            let fix = format!("if it is a program, run `chmod +x {shown}`");
            return refused("is not a Python file and has no execute permission", &fix);
        }
        if !is_executable_tool(&source) {
            return refused("would never be served: its name is that of a data file", "rename it");
        }
        Ok(Self { is_executable: true, ..Self::of_file(source, name, is_link) })
    }

    fn of_file(source: PathBuf, name: PathBuf, is_link: bool) -> Self {
        let pieces = vec![Piece { from: source.clone(), at: name.clone(), may_be_link: true }];
        Self { source, top: name.clone(), main: name, pieces, is_executable: false, is_link }
    }

    /// A file that has a lock or imports neighbours becomes a folder with them, so that it shares them with no other tool.
    fn of_python(source: PathBuf, name: PathBuf, is_link: bool) -> Self {
        let folder = source.parent().unwrap_or(Path::new("/")).to_owned();
        let mut files = BTreeSet::from_iter(neighbours_of(&source));
        let packages = files.iter().filter_map(|path| path.parent()).filter(|parent| **parent != folder);
        let packages: Vec<PathBuf> = packages.map(|parent| parent.join("__init__.py")).collect();
        let mut lock = source.clone().into_os_string();
        lock.push(".lock");
        files.extend(packages.into_iter().chain([PathBuf::from(lock)]).filter(|path| path.is_file()));
        files.insert(source.clone());
        if files.len() == 1 {
            return Self::of_file(source, name, is_link);
        }
        let top = name.with_extension("");
        let piece = |path: PathBuf| {
            Some(Piece { at: top.join(path.strip_prefix(&folder).ok()?), from: path, may_be_link: true })
        };
        let pieces = files.into_iter().filter_map(piece).collect();
        Self { source, main: top.join(name), top, pieces, is_executable: false, is_link }
    }

    fn of_folder(source: PathBuf, name: PathBuf, is_link: bool) -> Result<Self, Refusal> {
        let mut inner = name.clone().into_os_string();
        inner.push(".py");
        let main = name.join(&inner);
        if !source.join(inner).is_file() {
            let what = format!("{} is not a tool folder: it has no {}", source.display(), main.display());
            return Err(Refusal::new(what, "add that file, or name a single file"));
        }
        let mut parcel = Self { main, ..Self::of_file(source, name, is_link) };
        if !is_link {
            parcel.pieces = files_below(&parcel.source, &parcel.top)?;
        }
        Ok(parcel)
    }

    /// Whether an entry of a tools folder is a source of this parcel, holds one, is in one, or is a link on the way to one:
    /// without that entry, a link to the source would lead nowhere.
    pub fn overlaps(&self, entry: &Path) -> bool {
        let is_entry = |part: &Path| {
            let (Some(parent), Some(name)) = (part.parent(), part.file_name()) else { return false };
            parent.canonicalize().is_ok_and(|parent| parent.join(name) == entry)
        };
        self.pieces.iter().any(|Piece { from, .. }| {
            let real = from.canonicalize();
            real.is_ok_and(|real| real.starts_with(entry) || entry.starts_with(real)) || from.ancestors().any(is_entry)
        })
    }
}

/// Hidden files and caches of Python are no part of a tool.
pub(super) fn is_part(file_name: &std::ffi::OsStr) -> bool {
    !file_name.as_encoded_bytes().starts_with(b".") && file_name != "__pycache__"
}

/// The files of a tool's folder. Links are refused: their targets are elsewhere and were not named.
fn files_below(folder: &Path, name: &Path) -> Result<Vec<Piece>, Refusal> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut waiting = vec![(folder.to_owned(), name.to_owned())];
    while let Some((from, at)) = waiting.pop() {
        let cannot = |error: io::Error| Refusal::io(format!("cannot read {}", from.display()), error);
        for entry in fs::read_dir(&from).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let (path, at) = (entry.path(), at.join(entry.file_name()));
            let about = entry.metadata().map_err(cannot)?;
            if !is_part(&entry.file_name()) {
                continue;
            }
            if about.is_dir() {
                waiting.push((path, at));
                continue;
            }
            if !about.is_file() {
                let what = format!("{} is a link or not a regular file", path.display());
                return Err(Refusal::new(what, "replace it by the file itself, or install the folder with --link"));
            }
            bytes += about.len();
            found.push(Piece { from: path, at, may_be_link: false });
            if found.len() > MOST_FILES || bytes > MOST_BYTES {
                let what = format!("{} has more than {MOST_FILES} files or {} MB", folder.display(), MOST_BYTES >> 20);
                return Err(Refusal::new(what, "move out what is not part of the tool, or install it with --link"));
            }
        }
    }
    found.sort_by(|one, other| one.at.cmp(&other.at));
    Ok(found)
}
