//! Servers in folders below the tools folders, which are no tool files: whoever names the root of a project learns what to name instead.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::read_file;

/// Folders further below are not looked at.
const DEEPEST: usize = 6;
/// Nor are more entries of folders, or more files read.
const MOST_ENTRIES: usize = 4000;
const MOST_READ: usize = 100;
/// As many are named.
const MOST_FOUND: usize = 3;
const LARGEST: u64 = 1 << 20;
/// Folders that hold others' files, or tests.
const PASSED_OVER: [&str; 8] = ["node_modules", "site-packages", "venv", "env", "build", "dist", "tests", "test"];

/// Files that make a server, those nearest to the folders first.
pub(super) fn servers_below(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut waiting: VecDeque<(PathBuf, usize)> = folders.iter().map(|folder| (folder.clone(), 0)).collect();
    let (mut entries, mut read, mut found) = (0, 0, Vec::new());
    while let Some((folder, depth)) = waiting.pop_front() {
        // `servers/main.py` before `servers/notes.py`, whose servers it may hold.
        let rank = |path: &PathBuf| (!path.ends_with("main.py") && !path.ends_with("server.py"), path.clone());
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&folder).into_iter().flatten().flatten().map(|it| it.path()).collect();
        paths.sort_by_key(rank);
        for path in paths {
            entries += 1;
            if entries > MOST_ENTRIES || read > MOST_READ || found.len() == MOST_FOUND {
                return found;
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.is_dir() {
                let is_others = name.starts_with('.') || PASSED_OVER.contains(&name) || path.is_symlink();
                waiting.extend((!is_others && depth < DEEPEST).then(|| (path.clone(), depth + 1)));
            } else if depth > 0 && path.extension().is_some_and(|end| end == "py") && may_make_one(&path) {
                read += 1;
                let file = read_file(&path);
                if file.servers.makes || file.servers.listing.has_handlers {
                    found.push(path);
                    break; // one of a folder is enough
                }
            }
        }
    }
    found
}

/// Where nothing is served, and one of these files makes a server: what to name instead.
pub fn server_below(files: &[PathBuf]) -> Option<String> {
    let file = files.first()?;
    let more = match files.len() - 1 {
        0 => String::new(),
        further => format!(" ({further} more below, too)"),
    };
    let folder = file.parent()?.display();
    Some(format!("{} makes an MCP server{more}: name its folder, --tools {folder}", file.display()))
}

/// Whether its text mentions MCP.
fn may_make_one(path: &Path) -> bool {
    let is_short = fs::metadata(path).is_ok_and(|about| about.is_file() && about.len() <= LARGEST);
    let text = if is_short { fs::read(path).unwrap_or_default() } else { Vec::new() };
    text.windows(3).any(|word| word.eq_ignore_ascii_case(b"mcp"))
}
