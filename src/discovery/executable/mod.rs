//! Executables in tool folders: which files are meant, and what they declare. Nothing is run here: the registry asks them.

mod asked;
mod printed;
mod schemas;

use std::fs;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

pub(super) use asked::has_manifest;

use super::cache::Stamp;
use super::{Function, Kind, Status, ToolFile, Warning, python};
use crate::config::origin::Diagnosis;
use crate::pep723::is_identifier;

/// Files that are never programs: on some file systems every file is executable.
const DATA: [&str; 22] = [
    "md", "txt", "rst", "json", "jsonl", "toml", "yaml", "yml", "ini", "cfg", "conf", "lock", "log", "csv", "html",
    "css", "xml", "png", "jpg", "pdf", "so", "bak",
];

/// Whether a file of a tools folder is an executable tool. A broken link counts as one.
pub(super) fn is_meant(path: &Path, name: &str) -> bool {
    if !may_be_one(path, name) {
        return false;
    }
    match fs::metadata(path) {
        Ok(metadata) => metadata.is_file() && metadata.permissions().mode() & 0o111 != 0,
        Err(_) => fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()),
    }
}

/// Whether a file may be a program by its name.
fn may_be_one(path: &Path, name: &str) -> bool {
    let is_data = path.extension().and_then(|end| end.to_str()).is_some_and(|end| DATA.contains(&end));
    !(is_data || name.ends_with('~') || Path::new(name).extension().is_some_and(|end| end == "py"))
}

/// Scripts directly in a tools folder that are not executable, sorted.
pub fn may_not_be_executed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let is_one = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let is_file = fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 == 0);
        is_file && !name.starts_with(['_', '.']) && may_be_one(path, &name) && is_script(path)
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_one).collect();
    found.sort();
    found
}

/// Whether a file would be an executable tool in a tools folder.
pub fn is_executable_tool(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_meant(path, &name.to_string_lossy()))
}

/// The answer of an executable to `--schema`.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Its output.
    Said(Vec<u8>),
    /// No usable output, for this reason.
    Failed(Diagnosis),
    /// It cannot be run, for this reason.
    Broken(Diagnosis),
    /// It could not be run now, for want of processes, memory or files. Not kept for later runs.
    Refused(Diagnosis),
    /// It did not end in time, which may be due to what else ran. Not kept for later runs, and asked again in this one.
    Late(Diagnosis),
}

/// The declarations of an output that are not understood, or why it cannot be used.
pub fn remarks(path: &Path, output: &[u8]) -> Result<Vec<Diagnosis>, Diagnosis> {
    let printed = printed::read(output, &pack_of(path))?;
    printed.unknown.map_or(Ok(printed.remarks), Err)
}

fn pack_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().replace('-', "_")
}

/// An executable before it is asked.
pub(super) fn unasked(path: &Path) -> ToolFile {
    let mut file = python::blank(path, Kind::Executable);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    file.pack = pack_of(path);
    file.fingerprint = fingerprint(path);
    file.status = match fs::metadata(path) {
        Err(error) => Status::Missing { reason: missing(path, &error) },
        Ok(_) if !is_identifier(&file.pack) => {
            let what =
                format!("`{stem}` is not a valid tool name: use letters, digits, `-` and `_`, and no digit first");
            Status::Broken { line: None, reason: Diagnosis::new(what, "rename the file") }
        }
        Ok(_) => match hindrance(path) {
            Some(reason) => Status::Broken { line: None, reason },
            None => Status::Unasked,
        },
    };
    file
}

/// The same, and whether it is to be asked.
pub(super) fn unasked_or_not(path: &Path) -> ToolFile {
    let mut file = unasked(path);
    if file.status == Status::Unasked && !asked::has_manifest(path) && !asked::may_answer(path) {
        file.status = asked::not_asked(&file.pack);
    }
    file
}

fn missing(path: &Path, error: &std::io::Error) -> Diagnosis {
    let target = fs::read_link(path).unwrap_or_default();
    let target = target.display();
    match error.kind() {
        ErrorKind::NotFound => {
            Diagnosis::new(format!("it is a link to {target}, which does not exist"), "restore it, or remove the link")
        }
        _ => Diagnosis::new(
            format!("it is a link to {target}, which cannot be followed: {error}"),
            "remove it, or point it to a program",
        ),
    }
}

/// Identifies a version of an executable.
pub(super) fn fingerprint(path: &Path) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(path.as_os_str().as_encoded_bytes());
    hash.update(format!("{:?}", Stamp::of(path)));
    hash.finalize().into()
}

/// An executable with its answer.
pub(super) fn with_answer(path: &Path, answer: &Answer) -> ToolFile {
    let mut file = unasked(path);
    if file.status != Status::Unasked {
        return file;
    }
    let output = match answer {
        Answer::Said(bytes) => printed::read(bytes, &file.pack),
        Answer::Failed(reason) | Answer::Refused(reason) | Answer::Late(reason) => Err(reason.clone()),
        Answer::Broken(reason) => {
            file.status = Status::Broken { line: None, reason: reason.clone() };
            return file;
        }
    };
    match output {
        Ok(printed) => {
            file.declared = printed.declared;
            file.description = printed.functions.first().and_then(|function| function.summary.clone());
            file.functions = printed.functions;
            file.warnings = printed
                .remarks
                .into_iter()
                .map(|reason| Warning { line: 0, rule: "metadata".into(), reason })
                .collect();
            file.status = printed.unknown.map_or(Status::Ready, |reason| Status::SchemaUnknown { reason });
        }
        Err(reason) => {
            file.functions = vec![Function::unknown(&file.pack)];
            file.status = Status::SchemaUnknown { reason };
        }
    }
    file
}

/// The part of an ELF header that names the machine.
const HEADER: usize = 20;

/// Why a file cannot be run on this machine. The system would hand an unknown format to a shell.
pub(super) fn hindrance(path: &Path) -> Option<Diagnosis> {
    // An unreadable file may be executable.
    let begins = beginning(path)?;
    if begins.starts_with(b"#!") || is_mach_o(&begins) {
        return None;
    }
    if !begins.starts_with(b"\x7fELF") {
        let fix = "write one like `#!/usr/bin/env python3` as its first line, or remove its permission to be executed (`chmod -x`)";
        return Some(Diagnosis::new("it is neither a program nor a script that begins with `#!`", fix));
    }
    let own = std::env::current_exe().ok().and_then(|own| beginning(&own))?;
    // The word size, the byte order and the machine.
    let machine = |header: &[u8]| Some((header.get(4..6)?.to_vec(), header.get(18..HEADER)?.to_vec()));
    let is_foreign = machine(&begins) != machine(&own) && own.starts_with(b"\x7fELF");
    is_foreign.then(|| Diagnosis::new("it is a program for another kind of machine", "build it for this one"))
}

/// Whether a file names its interpreter.
pub(super) fn is_script(path: &Path) -> bool {
    beginning(path).is_some_and(|begins| begins.starts_with(b"#!"))
}

fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(HEADER as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn is_mach_o(begins: &[u8]) -> bool {
    const MAGIC: [[u8; 4]; 4] =
        [[0xfe, 0xed, 0xfa, 0xcf], [0xcf, 0xfa, 0xed, 0xfe], [0xca, 0xfe, 0xba, 0xbe], [0xfe, 0xed, 0xfa, 0xce]];
    MAGIC.iter().any(|magic| begins.starts_with(magic))
}
