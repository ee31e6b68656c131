//! What a reading takes over from the one before, of executables: whoever changed has not answered yet, and whoever is gone is
//! told as missing.

use super::catalogue::Catalogue;
use crate::discovery::{Kind, Status, ToolFile};

/// An executable that changed keeps its tools until it has answered again, and one that takes another's place lists that one's
/// until then: a list does not lose them for a moment.
pub(super) fn keep_listed(files: &mut [ToolFile], before: &Catalogue) {
    for file in files.iter_mut().filter(|file| file.status == Status::Unasked) {
        let itself = before.files.iter().find(|entry| entry.file.path == file.path);
        let displaced = || before.files.iter().find(|entry| gives_way(&entry.file, file));
        if let Some(earlier) = itself.or_else(displaced).filter(|earlier| earlier.file.is_ready()) {
            file.functions.clone_from(&earlier.file.functions);
            file.description.clone_from(&earlier.file.description);
            file.declared.clone_from(&earlier.file.declared);
        }
    }
}

/// Whether a tool gives up its place to an executable. A Python file's tools have other names than its own.
fn gives_way(weaker: &ToolFile, file: &ToolFile) -> bool {
    let is_alike = matches!(weaker.kind, Kind::Executable | Kind::Builtin);
    is_alike && weaker.pack == file.pack && weaker.rank < file.rank
}

/// What becomes of executables that are gone.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Absent {
    Told,
    Forgotten,
}

/// An executable that was there and is none any more is told as missing, and heals when it returns.
pub(super) fn gone(files: &mut Vec<ToolFile>, before: &Catalogue) {
    let was_one = |file: &&ToolFile| file.kind == Kind::Executable && !file.functions.is_empty();
    for file in before.files.iter().map(|entry| &entry.file).filter(was_one) {
        let namesake = files.iter().any(|other| other.path == file.path || other.pack == file.pack);
        if !namesake {
            let what = match std::fs::metadata(&file.path) {
                Ok(about) if about.is_file() => "may not be executed any more; run `chmod +x` on it",
                Ok(_) => "is no program any more, but a folder or a pipe; put it back",
                Err(_) => "is gone; put it back",
            };
            let reason = format!("{} {what}, or refresh to forget it", file.path.display());
            files.push(ToolFile { status: Status::Missing { reason }, ..file.clone() });
        }
    }
}
