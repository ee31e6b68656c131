//! Conflicting names: two files of one name, and names that clients do not accept. The later file by path is broken.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::{Kind, ToolFile};
use crate::config::origin::Diagnosis;
use crate::pep723::is_identifier;

/// Model providers do not accept longer names.
const LONGEST_NAME: usize = 64;

/// Marks every file broken whose pack or tools conflict with those of an earlier one by path, or whose tools have too long
/// names. A broken file keeps its reason and its names, so that repairing it breaks no other file.
pub fn resolve_collisions(files: &mut [ToolFile]) {
    let mut order: Vec<usize> = (0..files.len()).collect();
    // Files in a folder win over built-in tools.
    let place = |file: &usize| (files[*file].kind == Kind::Builtin, &files[*file].path);
    order.sort_by(|left, right| place(left).cmp(&place(right)));
    let mut packs: HashMap<String, (PathBuf, Kind)> = HashMap::new();
    let mut tools: HashMap<String, (String, PathBuf)> = HashMap::new();
    for index in order {
        let file = &mut files[index];
        if !is_identifier(&file.pack) {
            continue;
        }
        if let Some((earlier, kind)) = packs.get(&file.pack) {
            let reason = taken(file, earlier, *kind);
            file.break_with(None, reason);
            continue;
        }
        packs.insert(file.pack.clone(), (file.path.clone(), file.kind));
        if let Some((line, reason)) = claim_tools(file, &mut tools) {
            file.break_with(Some(line), reason);
        }
    }
}

/// Why a file cannot have its name. Only Python files are packs, and can set its name.
fn taken(file: &ToolFile, earlier: &Path, kind: Kind) -> Diagnosis {
    let is_pack = |kind: Kind| matches!(kind, Kind::Python | Kind::Internal);
    let what = if is_pack(file.kind) && is_pack(kind) { "pack" } else { "name" };
    let fix = if is_pack(file.kind) { "give this file another name or `pack = \"…\"`" } else { "rename this file" };
    Diagnosis::new(format!("the {what} `{}` is already taken by {}", file.pack, earlier.display()), fix)
}

/// Keeps of files with one name in several folders the one in the last folder, which lists those that it overrides.
/// Conflicts within a folder are left to [`resolve_collisions`].
pub fn resolve_overrides(files: &mut Vec<ToolFile>) {
    let mut strongest: HashMap<String, (usize, PathBuf)> = HashMap::new();
    for file in files.iter() {
        let claim = (file.rank, file.path.clone());
        let best = strongest.entry(file.pack.clone()).or_insert_with(|| claim.clone());
        if claim.0 > best.0 {
            *best = claim;
        }
    }
    let (kept, mut overridden): (Vec<_>, Vec<_>) = std::mem::take(files)
        .into_iter()
        .partition(|file| strongest.get(&file.pack).is_none_or(|best| best.0 == file.rank));
    *files = kept;
    overridden.sort_by_key(|file| file.rank);
    for weaker in overridden {
        let winner = files.iter_mut().find(|file| strongest.get(&weaker.pack).is_some_and(|best| best.1 == file.path));
        if let Some(winner) = winner {
            winner.overrides.push(weaker.path);
        }
    }
}

/// Enters a file's tools by their MCP names. Returns the line and the message of the first conflict.
fn claim_tools(file: &ToolFile, tools: &mut HashMap<String, (String, PathBuf)>) -> Option<(usize, Diagnosis)> {
    let mut problem = None;
    for function in &file.functions {
        let (own_name, mcp_name) = file.names_of(&function.name);
        let found = if mcp_name.len() > LONGEST_NAME {
            let what =
                format!("the MCP name of `{own_name}` has {} characters, more than {LONGEST_NAME}", mcp_name.len());
            Some(Diagnosis::new(what, "shorten the name of the pack or of the function"))
        } else {
            tools.get(&mcp_name).map(|(other, path)| {
                let place = path.display();
                let what = format!("`{own_name}` and `{other}` of {place} have the same MCP name `{mcp_name}`");
                Diagnosis::new(what, "rename one of them")
            })
        };
        match found {
            Some(reason) => problem = problem.or(Some((function.line, reason))),
            None => drop(tools.insert(mcp_name, (own_name, file.path.clone()))),
        }
    }
    problem
}
