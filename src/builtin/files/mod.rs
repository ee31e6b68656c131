//! Files: read, list, write, edit and delete; all beneath the roots.

mod change;
mod edit;
mod list;
mod read;
mod write;
#[cfg(test)]
mod tests;

use std::io;
use std::path::Path;

use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};

use super::{Builtins, Roots, Unregistered};
use crate::outcome::{Code, Fault};

pub(super) fn add(tools: &mut Builtins, roots: &Roots) -> Result<(), Unregistered> {
    tools.register(roots.tool(read::about, read::read))?;
    tools.register(roots.tool(list::about, list::list))?;
    tools.register(roots.tool(write::about, write::write))?;
    tools.register(roots.tool(write::about_delete, write::delete))?;
    tools.register(roots.tool(edit::about, edit::edit))
}

/// Opens a file for reading. Anything but a regular file is refused, without blocking on a pipe.
pub(super) fn open_to_read(roots: &Roots, path: &Path, folder: &Dir, inner: &Path) -> Result<File, Fault> {
    let mut how = OpenOptions::new();
    how.read(true).custom_flags(libc::O_NONBLOCK);
    let refused = |error: io::Error| roots.refused(path, &error);
    let file = folder.open_with(inner, &how).map_err(refused)?;
    let metadata = file.metadata().map_err(refused)?;
    if metadata.is_dir() {
        let message = format!("{} is a folder; use `list_directory`", path.display());
        return Err(Fault::new(Code::ToolError, message));
    }
    if !metadata.is_file() {
        let message = format!("{} is not a regular file but a pipe, a socket or a device", path.display());
        return Err(Fault::new(Code::ToolError, message));
    }
    Ok(file)
}
