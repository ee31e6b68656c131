//! The rules for a tool, compiled when it is called for the first time.

use std::path::{Path, PathBuf};

use super::catalogue::Tool;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::origin::Origin;
use crate::discovery::Kind;
use crate::policy::{Arguments, Rules, Scope};

/// The rules for a tool, and its arguments that they are about.
#[derive(Debug)]
pub struct Governed {
    /// The rules.
    pub rules: Rules,
    /// The arguments.
    pub arguments: Arguments,
}

impl Governed {
    /// `None` if every call is allowed.
    pub(super) fn of(tool: &Tool) -> Option<Box<Self>> {
        let policy = &tool.settings.policy;
        let config = &tool.entry.config;
        let home = config.environment.path("HOME").unwrap_or_default();
        let mut rules = Rules::new(policy, &home, real);
        limit(&mut rules, tool, policy);
        if !rules.are_any() {
            return None;
        }
        let arguments = Arguments::of(tool.input_schema(), policy, tool.entry.file.kind == Kind::Builtin);
        let sets = |policy: &DeclaredPolicy, origin: &Origin| policy.declared().any(|(_, _, other)| other == origin);
        rules.keep_for(&arguments, |origin| {
            [&config.policy, &config.every.policy].iter().any(|policy| sets(policy, origin))
        });
        Some(Box::new(Self { rules, arguments }))
    }
}

/// Adds the rates: of the tool itself, of its category and of all tools. They are counted under names that tell tools of the same name
/// apart by their file, and tables of the same name by the file that has them.
fn limit(rules: &mut Rules, tool: &Tool, policy: &DeclaredPolicy) {
    let config = &tool.entry.config;
    let name = format!("tool {} {}", whole(&tool.entry.file.path), tool.key());
    rules.limit(policy, &Scope::Tool(tool.name.clone()), |_| name.clone());
    let category = policy.category.as_ref().map(|category| &category.value);
    let of_category = category.and_then(|category| Some((category, &config.categories.get(category)?.policy)));
    if let Some((category, policy)) = of_category {
        let name = |origin: &Origin| format!("category {} {category}", place_of(origin));
        rules.limit(policy, &Scope::Category(category.clone()), name);
    }
    rules.limit(&config.policy, &Scope::Every, |origin| format!("every {}", place_of(origin)));
}

/// The file that sets a rate: a person's own counts in all projects together.
fn place_of(origin: &Origin) -> String {
    origin.place().map(|place| whole(&place.file)).unwrap_or_default()
}

/// A file by one name, whatever it was found by.
fn whole(file: &Path) -> String {
    file.canonicalize().as_deref().unwrap_or(file).display().to_string()
}

/// A folder with the links followed of as much of it as there is.
fn real(folder: &Path) -> PathBuf {
    let mut known =
        folder.ancestors().filter_map(|above| Some((above.canonicalize().ok()?, folder.strip_prefix(above).ok()?)));
    known.next().map_or_else(|| folder.to_owned(), |(real, rest)| real.join(rest))
}
