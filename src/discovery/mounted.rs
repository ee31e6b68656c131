//! Tools of servers that are mounted with a prefix. As in FastMCP, their names begin with it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::given::OWN;
use super::modules::Modules;
use super::several::MADE;
use super::{Function, Presented, Role, ToolFile};
use crate::pep723::nearest_identifier;

/// Begins the name of a server that is a variable of a function.
pub(super) const LOCAL: char = '*';

/// A server that a file mounts with a prefix.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mount {
    /// The server: `=weather` of the same file, `=*weather` of a function in it, `weather.mcp` of another one; with `()` behind, what that function makes.
    pub server: String,
    /// What the names of its tools begin with.
    pub prefix: String,
}

/// The servers of several files that are mounted with a prefix.
pub(super) struct Mounted<'f> {
    /// The file, the server there, and the prefix.
    found: Vec<(&'f Path, String, &'f str)>,
}

impl<'f> Mounted<'f> {
    /// Those that a tool file or its helpers mount.
    pub(super) fn of(root: &'f ToolFile, helpers: &[&'f ToolFile]) -> Self {
        let files: Vec<&'f ToolFile> = std::iter::once(root).chain(helpers.iter().copied()).collect();
        let mounts = files.iter().flat_map(|file| file.servers.mounts.iter().map(|mount| (*file, mount)));
        let mounts: Vec<(&ToolFile, &Mount)> = mounts.filter(|(_, mount)| !mount.server.starts_with(OWN)).collect();
        if mounts.is_empty() {
            return Self { found: Vec::new() };
        }
        let modules = Modules::of(files.iter().map(|file| (&*file.path, file.imports.as_slice())));
        let found = mounts.into_iter().filter_map(|(from, mount)| {
            let has = |file: usize, name: &str| files[file].functions.iter().any(|function| function.is_of(name));
            let (file, name) = match mount.server.strip_suffix("()") {
                Some(maker) => {
                    let has = |file: usize, name: &str| has(file, &format!("{name}()"));
                    let (file, name) = modules.find(&from.path, maker, &has)?;
                    (file, name + "()")
                }
                None => modules.find(&from.path, &mount.server, &has)?,
            };
            Some((&*files[file].path, name, mount.prefix.as_str()))
        });
        Self { found: found.collect() }
    }

    /// A function of a file with the name that it has where its server is mounted.
    pub(super) fn named(&self, path: &Path, function: &Function) -> Option<Function> {
        let (.., prefix) = self.found.iter().find(|(file, server, _)| *file == path && function.is_of(server))?;
        let mut renamed = function.clone();
        renamed.begin_with(prefix);
        Some(renamed)
    }
}

impl Function {
    /// Whether it is of a server of its file: `weather`, or `build()` for what a function makes.
    fn is_of(&self, server: &str) -> bool {
        match server.strip_suffix("()") {
            Some(maker) => {
                let symbol = self.symbol_in_file();
                let made = symbol.strip_prefix(MADE).and_then(|made| made.strip_prefix(maker));
                made.is_some_and(|rest| rest.starts_with(':'))
            }
            None => match server.strip_prefix(LOCAL) {
                Some(local) => self.server.as_deref() == Some(local) && self.symbol().starts_with(MADE),
                None => self.server.as_deref() == Some(server) && !self.symbol().starts_with(MADE),
            },
        }
    }

    fn begin_with(&mut self, prefix: &str) {
        let name = nearest_identifier(&format!("{prefix}_{}", self.own_name()));
        self.wanted = None;
        let own = std::mem::replace(&mut self.name, name);
        self.symbol.get_or_insert(own);
        if let Role::Prompt(Presented { name: Some(name), .. }) = &mut self.role {
            *name = format!("{prefix}_{name}");
        }
    }

    /// Gives it the prefix with which its own file mounts its server.
    pub(super) fn mounted_by(&mut self, mounts: &[Mount]) {
        let mut own = mounts.iter().filter_map(|mount| Some((mount.server.strip_prefix(OWN)?, &mount.prefix)));
        if let Some((_, prefix)) = own.find(|(server, _)| self.is_of(server)) {
            self.begin_with(&prefix.clone());
        }
    }
}
