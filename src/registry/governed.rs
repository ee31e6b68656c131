//! The rules for a tool, compiled when it is called for the first time.

use std::path::{Path, PathBuf};

use super::catalogue::Tool;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::origin::Origin;
use crate::policy::{Arguments, Rules};

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
        if !rules.are_any() {
            return None;
        }
        let arguments = Arguments::of(tool.input_schema(), policy);
        let sets = |policy: &DeclaredPolicy, origin: &Origin| policy.declared().any(|(_, _, other)| other == origin);
        rules.keep_for(&arguments, |origin| {
            [&config.policy, &config.every.policy].iter().any(|policy| sets(policy, origin))
        });
        Some(Box::new(Self { rules, arguments }))
    }
}

/// A folder with the links followed of as much of it as there is.
fn real(folder: &Path) -> PathBuf {
    let mut known =
        folder.ancestors().filter_map(|above| Some((above.canonicalize().ok()?, folder.strip_prefix(above).ok()?)));
    known.next().map_or_else(|| folder.to_owned(), |(real, rest)| real.join(rest))
}
