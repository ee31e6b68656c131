//! Executables in tool folders: which files are meant, and what they say of themselves. Nothing is run here: who asks them
//! hands in the answers.

mod declared;
mod dialect;
mod machine;
mod schema;
mod wishes;

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::stamp::Stamp;
use super::{Function, Kind, Status, ToolFile, Warning, read};
use crate::pep723::is_identifier;

/// Files that are never programs, whatever their mode says: on some file systems everything is executable.
const DATA: [&str; 22] = [
    "md", "txt", "rst", "json", "jsonl", "toml", "yaml", "yml", "ini", "cfg", "conf", "lock", "log", "csv", "html",
    "css", "xml", "png", "jpg", "pdf", "so", "bak",
];

/// Whether a file of a tools folder is meant as an executable tool. A file that nobody may execute is none; a link that
/// leads nowhere was one.
pub(super) fn is_meant(path: &Path, name: &str) -> bool {
    if !may_be_one(path, name) {
        return false;
    }
    match fs::metadata(path) {
        Ok(metadata) => metadata.is_file() && metadata.permissions().mode() & 0o111 != 0,
        Err(_) => fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()),
    }
}

/// Whether a file's name is one that a program may have.
fn may_be_one(path: &Path, name: &str) -> bool {
    let is_data = path.extension().and_then(|end| end.to_str()).is_some_and(|end| DATA.contains(&end));
    !(is_data || name.ends_with('~') || Path::new(name).extension().is_some_and(|end| end == "py"))
}

/// Scripts directly in a tools folder that nobody may execute, so that they are no tools; sorted.
pub fn may_not_be_executed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_file = fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 == 0);
        is_file && !name.starts_with(['_', '.']) && may_be_one(path, &name) && machine::is_script(path)
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    found.sort();
    found
}

/// Whether a file would be taken for an executable tool if it lay in a tools folder.
pub fn is_executable_tool(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_meant(path, &name.to_string_lossy()))
}

/// What an executable said when it was asked with `--schema`.
#[derive(Debug, Clone)]
pub enum Answer {
    /// This.
    Said(Vec<u8>),
    /// Nothing that could be used, for this reason.
    Failed(String),
    /// It cannot be run at all, for this reason.
    Broken(String),
}

/// Why what an executable said cannot be used, if so; else what of it is not understood.
pub fn remarks(path: &Path, said: &[u8]) -> Result<Vec<String>, String> {
    dialect::read(said, &pack_of(path)).map(|printed| printed.remarks)
}

/// The name of its tool, where it is one.
fn pack_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}

/// An executable as far as it is known without asking it.
pub(super) fn unasked(path: &Path) -> ToolFile {
    let mut file = read::blank(path, Kind::Executable);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    file.pack = pack_of(path);
    file.fingerprint = fingerprint(path);
    file.status = match fs::metadata(path) {
        Err(error) => Status::Missing { reason: missing(path, &error) },
        Ok(_) if !is_identifier(&file.pack) => {
            let reason =
                format!("`{stem}` cannot be a tool's name: letters, digits, `-` and `_` can, and no digit first");
            Status::Broken { line: None, reason: format!("{reason}; rename the file") }
        }
        Ok(_) => match machine::hindrance(path) {
            Some(reason) => Status::Broken { line: None, reason },
            None => Status::Unasked,
        },
    };
    file
}

fn missing(path: &Path, error: &std::io::Error) -> String {
    let target = fs::read_link(path).unwrap_or_default();
    let target = target.display();
    match error.kind() {
        ErrorKind::NotFound => {
            format!("it is a link to {target}, which is not there; put that back, or remove the link")
        }
        _ => format!(
            "it is a link to {target}, which cannot be followed: {error}; remove it or let it lead to a program"
        ),
    }
}

/// What tells one version of an executable from another.
fn fingerprint(path: &Path) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update(format!("{:?}", Stamp::of(path)));
    hash.finalize().into()
}

/// An executable with what it said.
pub(super) fn told(path: &Path, answer: &Answer) -> ToolFile {
    let mut file = unasked(path);
    if file.status != Status::Unasked {
        return file;
    }
    let said = match answer {
        Answer::Said(bytes) => dialect::read(bytes, &file.pack),
        Answer::Failed(reason) => Err(reason.clone()),
        Answer::Broken(reason) => {
            file.status = Status::Broken { line: None, reason: reason.clone() };
            return file;
        }
    };
    match said {
        Ok(printed) => {
            file.wishes = printed.wishes;
            file.description = printed.functions.first().and_then(|function| function.summary.clone());
            file.functions = printed.functions;
            file.warnings =
                printed.remarks.into_iter().map(|text| Warning { line: 0, rule: "metadata", text }).collect();
            file.status = Status::Ready;
        }
        Err(reason) => {
            file.functions = vec![Function::unknown(&file.pack)];
            file.status = Status::SchemaUnknown { reason };
        }
    }
    file
}
