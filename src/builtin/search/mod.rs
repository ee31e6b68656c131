//! Search: names, contents, what git says of a folder; all beneath the roots.

mod git;
mod glob;
mod grep;
mod hits;
mod repository;
mod walk;
#[cfg(test)]
mod tests;

use super::{Builtins, Roots, Unregistered};

pub(super) fn add(tools: &mut Builtins, roots: &Roots) -> Result<(), Unregistered> {
    tools.register(glob::Glob(roots.clone()))?;
    tools.register(grep::Grep(roots.clone()))?;
    tools.register(git::GitStatus(roots.clone()))
}
