//! Files that take the place of something else of their name: of a built-in tool, or of a file of another kind in a weaker folder.
//! One of the same kind is meant to; the others may have come to their name by chance.

use std::collections::HashMap;
use std::path::PathBuf;

use super::{Finding, rule};
use crate::discovery::{Kind, ToolFile};

/// What each of the files that are left displaces, out of all there were.
pub(super) fn displaced(before: &[ToolFile], left: &[ToolFile]) -> HashMap<PathBuf, Vec<Finding>> {
    let mut found: HashMap<PathBuf, Vec<Finding>> = HashMap::new();
    for winner in left {
        let weaker = before.iter().filter(|other| other.rank < winner.rank && is_displaced(other, winner));
        for other in weaker {
            found.entry(winner.path.clone()).or_default().push(finding(other));
        }
    }
    found
}

/// A file with the name of another takes its place; a tool with the name of a built-in one takes that one's.
fn is_displaced(other: &ToolFile, winner: &ToolFile) -> bool {
    if other.kind == Kind::Builtin {
        let names = winner.functions.iter().map(|function| winner.names_of(&function.name).1);
        return other.pack == winner.pack || names.into_iter().any(|name| name == other.pack);
    }
    other.pack == winner.pack && is_program(other) != is_program(winner)
}

fn is_program(file: &ToolFile) -> bool {
    file.kind == Kind::Executable
}

fn finding(other: &ToolFile) -> Finding {
    let name = &other.pack;
    let (what, remedy) = match other.kind {
        Kind::Builtin => {
            (format!("the built-in tool `{name}`"), format!(", or write `disable = [\"{name}\"]` under [builtin]"))
        }
        _ => (format!("{}, of which nothing is served", other.path.display()), String::new()),
    };
    let message = format!("`{name}` is also {what}: this file lies in a stronger folder and takes its place");
    Finding::new(&rule::TAKES_PLACE, None, message, format!("rename one of them if that is not meant{remedy}"))
}
