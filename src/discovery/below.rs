//! Servers in folders below the tools folders, which are not tool files. They are named where a tools folder serves nothing, such as the
//! root of a project.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use super::read_file;

/// Folders further below are not looked at.
const DEEPEST: usize = 6;
/// The most entries of folders that are looked at, and the most bytes that are read.
const MOST_ENTRIES: usize = 4000;
const MOST_BYTES: u64 = 8 << 20;
/// The search ends after this many servers.
const MOST_FOUND: usize = 3;
/// Larger files are not read.
const LARGEST: u64 = 1 << 18;
/// Folders that hold others' files, or tests.
const PASSED_OVER: [&str; 8] = ["node_modules", "site-packages", "venv", "env", "build", "dist", "tests", "test"];

/// Files that make a server, those nearest to the folders first.
pub(super) fn servers_below(folders: &[PathBuf]) -> Vec<PathBuf> {
    let mut waiting: VecDeque<(PathBuf, usize)> = folders.iter().map(|folder| (folder.clone(), 0)).collect();
    let (mut entries, mut left, mut found) = (0, MOST_BYTES, Vec::new());
    while let Some((folder, depth)) = waiting.pop_front() {
        // `servers/main.py` before `servers/notes.py`, whose servers it may hold.
        let rank = |path: &PathBuf| (!path.ends_with("main.py") && !path.ends_with("server.py"), path.clone());
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&folder).into_iter().flatten().take(MOST_ENTRIES).flatten().map(|it| it.path()).collect();
        paths.sort_by_key(rank);
        for path in paths {
            entries += 1;
            if entries > MOST_ENTRIES || left == 0 || found.len() == MOST_FOUND {
                return found;
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if path.is_dir() {
                let is_others = name.starts_with('.') || PASSED_OVER.contains(&name) || path.is_symlink();
                waiting.extend((!is_others && depth < DEEPEST).then(|| (path.clone(), depth + 1)));
            } else if depth > 0 && path.extension().is_some_and(|end| end == "py") && may_make_one(&path, &mut left) {
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
    Some(format!("{} makes an MCP server{more}: pass --tools {folder}", file.display()))
}

/// Whether its text mentions MCP.
fn may_make_one(path: &Path, left: &mut u64) -> bool {
    let size = fs::metadata(path).ok().filter(fs::Metadata::is_file).map_or(u64::MAX, |about| about.len());
    if size > LARGEST {
        return false;
    }
    *left = left.saturating_sub(size);
    let text = fs::read(path).unwrap_or_default();
    text.windows(3).any(|word| word.eq_ignore_ascii_case(b"mcp"))
}
