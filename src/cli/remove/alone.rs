//! Which helpers go with a tool: those that lie in its folder themselves and that nothing else there needs or speaks of.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::discovery::ToolFile;

/// Of a longer file only so much is read, to see whether it speaks of a helper.
const MOST_READ: u64 = 4 << 20;

/// The helpers of a tool file that no other tool file imports.
#[derive(Debug, Default)]
pub(in crate::cli) struct Helpers {
    /// Those that go with it.
    pub alone: Vec<PathBuf>,
    /// Those that stay all the same: which, and why.
    pub stay: Vec<(PathBuf, String)>,
}

impl Helpers {
    /// Of a file that goes, beside those that stay.
    pub fn of<'f>(file: &ToolFile, staying: impl Iterator<Item = &'f ToolFile>, folder: &Path) -> Self {
        let mut helpers = Self { alone: unneeded(file, staying, folder), stay: Vec::new() };
        let elsewhere = |path: &Path| (!lies_within(path, folder)).then(|| "lies where a link leads".to_owned());
        let mut speakers = helpers.keep(elsewhere);
        speakers.extend(others(file, folder).into_iter().filter(|path| !helpers.alone.contains(path)));
        while let Some(speaker) = speakers.pop() {
            let Ok(text) = beginning(&speaker) else { continue };
            // What lies in a package speaks of that by its nature.
            let is_beside = |path: &Path| first_of(path, folder) != first_of(&speaker, folder);
            let spoken =
                |path: &Path| is_beside(path) && name_of(path, folder).is_some_and(|name| speaks_of(&text, &name));
            // What stays speaks of others in its turn.
            speakers
                .extend(helpers.keep(|path| spoken(path).then(|| format!("is spoken of in {}", speaker.display()))));
        }
        helpers
    }

    /// Takes those that there is a reason to keep out of those that go, and says which.
    fn keep(&mut self, reason: impl Fn(&Path) -> Option<String>) -> Vec<PathBuf> {
        let before = self.stay.len();
        self.alone.retain(|path| match reason(path) {
            Some(reason) => {
                self.stay.push((path.clone(), reason));
                false
            }
            None => true,
        });
        self.stay[before..].iter().map(|(path, _)| path.clone()).collect()
    }
}

/// The helpers that are no tools themselves and that no other tool file there is known to import.
fn unneeded<'f>(file: &ToolFile, staying: impl Iterator<Item = &'f ToolFile>, folder: &Path) -> Vec<PathBuf> {
    let others = staying.filter(|other| other.path != file.path);
    let needed: BTreeSet<&Path> =
        others.flat_map(|other| other.helpers.iter().chain([&other.path])).map(PathBuf::as_path).collect();
    let mut alone: Vec<PathBuf> =
        file.helpers.iter().filter(|path| !needed.contains(path.as_path())).cloned().collect();
    let packages: BTreeSet<PathBuf> = alone
        .iter()
        .filter_map(|path| path.parent())
        .filter(|parent| *parent != folder)
        .map(|parent| parent.join("__init__.py"))
        .filter(|path| path.is_file())
        .collect();
    alone.extend(packages);
    alone.retain(|path| path.starts_with(folder) && *path != file.path);
    alone
}

/// Whether no link leads to it on the way from the folder. It may be one itself, which goes alone.
fn lies_within(path: &Path, folder: &Path) -> bool {
    let parent = path.parent().and_then(|parent| parent.strip_prefix(folder).ok());
    let below = |real: PathBuf| parent.map(|parent| real.join(parent));
    let wanted = folder.canonicalize().ok().and_then(below);
    wanted.is_some() && path.parent().and_then(|parent| parent.canonicalize().ok()) == wanted
}

/// The other files of the folder and of those in it, whatever they are: what a program imports, a test, or a file that is
/// broken just now, nobody knows.
fn others(file: &ToolFile, folder: &Path) -> Vec<PathBuf> {
    let within = entries(folder).filter(|path| path.is_dir() && !is_made(path));
    let below: Vec<PathBuf> = within.flat_map(|path| entries(&path).collect::<Vec<_>>()).collect();
    entries(folder).chain(below).filter(|path| *path != file.path && path.is_file()).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Whether a folder is some program's work: hidden, or what Python compiled.
fn is_made(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "__pycache__" || name.as_encoded_bytes().starts_with(b"."))
}

fn beginning(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MOST_READ).read_to_end(&mut text)?;
    Ok(text)
}

/// The name by which others import a helper: its own, or that of its folder.
fn name_of(path: &Path, folder: &Path) -> Option<String> {
    Some(first_of(path, folder)?.file_stem()?.to_string_lossy().into_owned())
}

/// What of a path lies in the folder itself.
fn first_of<'p>(path: &'p Path, folder: &Path) -> Option<&'p Path> {
    path.strip_prefix(folder).ok()?.iter().next().map(Path::new)
}

/// Whether a name stands in a text as a word.
fn speaks_of(text: &[u8], name: &str) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte >= 0x80;
    text.split(|byte| !is_letter(byte)).any(|word| word == name.as_bytes())
}
