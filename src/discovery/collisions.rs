//! Conflicting names: two files of one name, and names that clients do not accept. The later file by path is broken.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::several::place_within;
use super::{Function, Kind, LeftOut, Status, ToolFile};
use crate::config::origin::Diagnosis;
use crate::pep723::is_identifier;

/// Model providers do not accept longer names.
const LONGEST_NAME: usize = 64;

/// Marks every file broken whose pack conflicts with that of an earlier one by path, and leaves out functions whose names conflict
/// or are too long: the rest of the file is served. What is broken anyway comes last, so that it hides nothing that works.
pub fn resolve_collisions(files: &mut [ToolFile]) {
    let mut order: Vec<usize> = (0..files.len()).collect();
    // Files in a folder win over built-in tools.
    let is_broken = |file: &usize| matches!(files[*file].status, Status::Broken { .. });
    // `my_tool.py` has its name before `my-tool.py`.
    let is_substituted = |file: &ToolFile| {
        let is_python = matches!(file.kind, Kind::Python | Kind::Internal);
        is_python && file.path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains('-'))
    };
    let place = |file: &usize| {
        let file_there = &files[*file];
        (is_broken(file), file_there.kind == Kind::Builtin, is_substituted(file_there), &file_there.path)
    };
    order.sort_by(|left, right| place(left).cmp(&place(right)));
    let mut packs: HashMap<String, (PathBuf, Kind)> = HashMap::new();
    let mut tools: HashMap<String, Claim> = HashMap::new();
    for index in order {
        let file = &mut files[index];
        // What is not served takes no name.
        if !is_identifier(&file.pack) || file.not_asked().is_some() {
            continue;
        }
        if let Some((earlier, kind)) = packs.get(&file.pack) {
            let reason = taken(file, earlier, *kind);
            file.break_with(None, reason);
            continue;
        }
        packs.insert(file.pack.clone(), (file.path.clone(), file.kind));
        claim_tools(file, &mut tools);
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
    for file in files.iter().filter(|file| file.not_asked().is_none()) {
        let claim = (file.rank, file.path.clone());
        let best = strongest.entry(file.pack.clone()).or_insert_with(|| claim.clone());
        if claim.0 > best.0 {
            *best = claim;
        }
    }
    let (kept, mut overridden): (Vec<_>, Vec<_>) = std::mem::take(files).into_iter().partition(|file| {
        file.not_asked().is_some() || strongest.get(&file.pack).is_none_or(|best| best.0 == file.rank)
    });
    *files = kept;
    overridden.sort_by_key(|file| file.rank);
    for weaker in overridden {
        let winner = files.iter_mut().find(|file| strongest.get(&weaker.pack).is_some_and(|best| best.1 == file.path));
        if let Some(winner) = winner {
            winner.overrides.push(weaker.path);
        }
    }
}

/// A tool that has an MCP name.
struct Claim {
    /// Its full name.
    name: String,
    file: PathBuf,
    /// Where its file has it, in words, if it is in a line.
    place: Option<String>,
}

/// Enters a file's tools by their MCP names, and leaves out those that cannot have theirs.
fn claim_tools(file: &mut ToolFile, tools: &mut HashMap<String, Claim>) {
    let is_first = |function: &&Function| function.wanted.is_none();
    let claiming = file.functions.iter().filter(|function| function.role.is_tool());
    let (first, second): (Vec<&Function>, Vec<&Function>) = claiming.partition(is_first);
    let mut left_out = Vec::new();
    for function in first.into_iter().chain(second) {
        let (name, mcp_name) = file.names_of(function);
        let key = file.key_of(function);
        let Some(reason) = refusal(&file.path, &key, &name, &mcp_name, tools) else {
            let place = (function.line > 0).then(|| place_in(file, function));
            let claim = Claim { name, file: file.path.clone(), place };
            tools.insert(mcp_name, claim);
            continue;
        };
        let (line, reason) = match &function.defined_in {
            None => (function.line, reason),
            Some(_) => (0, Diagnosis { what: format!("{}: {}", place_in(file, function), reason.what), ..reason }),
        };
        left_out.push(LeftOut { key, name, mcp_name, line, reason });
    }
    if left_out.is_empty() {
        return;
    }
    let (functions, file_names) = (std::mem::take(&mut file.functions), &*file);
    let is_served = |function: &Function| {
        let key = file_names.key_of(function);
        !function.role.is_tool() || !left_out.iter().any(|one| one.key == key)
    };
    let served = functions.into_iter().filter(is_served).collect();
    file.functions = served;
    left_out.sort_by_key(|one| one.line);
    file.left_out = left_out;
}

/// Where a file has a tool: `line 3`, `notes.py, line 3`.
fn place_in(file: &ToolFile, function: &Function) -> String {
    let helper = function.defined_in.as_deref();
    let helper = helper.map(|path| place_within(&file.path, path).unwrap_or_else(|| path.display().to_string()));
    let helper = helper.map(|place| place + ", ").unwrap_or_default();
    format!("{helper}line {}", function.line)
}

/// Why a tool of a file cannot have its name, if it cannot.
fn refusal(
    file: &Path,
    key: &str,
    own_name: &str,
    mcp_name: &str,
    tools: &HashMap<String, Claim>,
) -> Option<Diagnosis> {
    if mcp_name.len() > LONGEST_NAME {
        let what = format!("the MCP name of `{own_name}` has {} characters, more than {LONGEST_NAME}", mcp_name.len());
        return Some(Diagnosis::new(what, format!("{}, or rename the function or its file", with_another_name(key))));
    }
    let Claim { name, file: other, place } = tools.get(mcp_name)?;
    let what = match place {
        Some(place) if other == file => format!("the name `{own_name}` is already taken by the tool in {place}"),
        _ => format!("`{own_name}` and `{name}` of {} have the same MCP name `{mcp_name}`", other.display()),
    };
    Some(Diagnosis::new(what, format!("{}, or rename one of them", with_another_name(key))))
}

/// How a tool gets another name.
fn with_another_name(key: &str) -> String {
    let table = if key.contains('.') { format!("[tool.\"{key}\"]") } else { format!("[tool.{key}]") };
    format!("set `as = \"…\"` under {table} in hostler.toml")
}
