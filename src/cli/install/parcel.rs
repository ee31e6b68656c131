//! What is to be installed: the files that belong to what was named, and where each goes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::discovery::{is_executable_tool, neighbours_of};

/// A folder with more than this is a project or an environment, not a tool.
const MOST_FILES: usize = 2000;
const MOST_BYTES: u64 = 64 << 20;

/// One file, or a folder that is linked: its source, and its place below the tools folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    pub from: PathBuf,
    pub at: PathBuf,
}

/// All that is installed together.
#[derive(Debug)]
pub(super) struct Parcel {
    /// What was named, as an absolute path.
    pub source: PathBuf,
    /// What appears directly in the tools folder: the tool's file, or its folder.
    pub top: PathBuf,
    /// The tool's own file, below the tools folder.
    pub main: PathBuf,
    /// All files. The tool's own comes last, so that it is never served without the rest.
    pub pieces: Vec<Piece>,
    pub is_executable: bool,
    pub is_link: bool,
}

impl Parcel {
    /// What a path refers to, or why it cannot be installed.
    pub fn of(path: &Path, is_link: bool) -> Result<Self, String> {
        let shown = path.display();
        let about = fs::metadata(path).map_err(|error| format!("cannot install {shown}: {error}"))?;
        let source = std::path::absolute(path).map_err(|error| format!("cannot install {shown}: {error}"))?;
        // `.` and `folder/..` have no file name.
        let source = if source.file_name().is_some() && !path.ends_with(".") { source } else { real(&source)? };
        let name = source.file_name().map(PathBuf::from).ok_or_else(|| format!("{shown} has no file name"))?;
        if about.is_dir() {
            return Self::of_folder(source, name, is_link);
        }
        if !about.is_file() {
            return Err(format!(
                "{shown} is not a regular file; name a Python file, an executable, or a folder NAME/NAME.py"
            ));
        }
        if name.extension().is_some_and(|end| end == "py") {
            return Ok(Self::of_python(source, name, is_link));
        }
        if about.permissions().mode() & 0o111 == 0 {
            return Err(format!(
                "{shown} is not a Python file and has no execute permission; if it is a program, run `chmod +x {shown}`"
            ));
        }
        if !is_executable_tool(&source) {
            return Err(format!("{shown} would never be served: its name is that of a data file; rename it"));
        }
        let pieces = vec![Piece { from: source.clone(), at: name.clone() }];
        Ok(Self { source, top: name.clone(), main: name, pieces, is_executable: true, is_link })
    }

    /// A file with the neighbours it imports, and its lock.
    fn of_python(source: PathBuf, name: PathBuf, is_link: bool) -> Self {
        let folder = source.parent().unwrap_or(Path::new("/")).to_owned();
        let mut along: BTreeSet<PathBuf> = neighbours_of(&source).into_iter().filter(|path| *path != source).collect();
        for helper in along.clone() {
            let package = helper.parent().filter(|parent| *parent != folder).map(|parent| parent.join("__init__.py"));
            along.extend(package.filter(|path| path.is_file()));
        }
        let mut lock = source.clone().into_os_string();
        lock.push(".lock");
        along.extend(Some(PathBuf::from(lock)).filter(|path| path.is_file()));
        let below = |path: PathBuf| Some(Piece { at: path.strip_prefix(&folder).ok()?.to_owned(), from: path });
        let mut pieces: Vec<Piece> = along.into_iter().filter_map(below).collect();
        pieces.push(Piece { from: source.clone(), at: name.clone() });
        Self { source, top: name.clone(), main: name, pieces, is_executable: false, is_link }
    }

    fn of_folder(source: PathBuf, name: PathBuf, is_link: bool) -> Result<Self, String> {
        let main = name.join(format!("{}.py", name.display()));
        let inner = source.join(main.file_name().unwrap_or_default());
        if !inner.is_file() {
            return Err(format!(
                "{} is not a tool folder: it has no {}; add that file, or name a single file",
                source.display(),
                main.display()
            ));
        }
        let pieces = if is_link {
            vec![Piece { from: source.clone(), at: name.clone() }]
        } else {
            let mut pieces = files_below(&source, &name)?;
            pieces.sort_by_key(|piece| (piece.at == main, piece.at.clone()));
            pieces
        };
        Ok(Self { source, top: name, main, pieces, is_executable: false, is_link })
    }

    /// Whether what appears in the tools folder is a folder.
    pub fn is_folder(&self) -> bool {
        self.main != self.top
    }

    /// The files beside the tool's own.
    pub fn along(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| piece.at != self.main && piece.at != self.top)
    }
}

fn real(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("cannot install {}: {error}", path.display()))
}

/// The files of a tool's folder, without hidden ones and caches of Python. Links are refused: their targets are elsewhere and
/// were not named.
pub(super) fn files_below(folder: &Path, name: &Path) -> Result<Vec<Piece>, String> {
    let (mut found, mut bytes) = (Vec::new(), 0);
    let mut waiting = vec![(folder.to_owned(), name.to_owned())];
    while let Some((from, at)) = waiting.pop() {
        let cannot = |error: std::io::Error| format!("cannot read {}: {error}", from.display());
        for entry in fs::read_dir(&from).map_err(cannot)? {
            let entry = entry.map_err(cannot)?;
            let (path, file_name) = (entry.path(), entry.file_name());
            if file_name.as_encoded_bytes().starts_with(b".") || file_name == "__pycache__" {
                continue;
            }
            let about = entry.metadata().map_err(cannot)?;
            if about.is_dir() {
                waiting.push((path, at.join(file_name)));
                continue;
            }
            if !about.is_file() {
                let fix = "replace it by the file itself, or install the folder with --link";
                return Err(format!("{} is a link or not a regular file; {fix}", path.display()));
            }
            bytes += about.len();
            found.push(Piece { from: path, at: at.join(file_name) });
            if found.len() > MOST_FILES || bytes > MOST_BYTES {
                return Err(format!(
                    "{} has more than {MOST_FILES} files or {} MB; move out what is not part of the tool, or install it with \
                     --link",
                    folder.display(),
                    MOST_BYTES >> 20
                ));
            }
        }
    }
    Ok(found)
}

/// The size of a file, and its SHA-256. It may be larger than memory.
pub(super) fn digest(path: &Path) -> io::Result<(u64, String)> {
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 16]);
    let (mut hash, mut size) = (Sha256::new(), 0);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        hash.update(&piece[..read]);
        size += read as u64;
    }
    Ok((size, HEXLOWER.encode(&hash.finalize())))
}
