//! Whether a tool file calls the functions that make tools where they are given what they need: `register(mcp, client)`, by itself or by
//! functions of its helpers. As far as names tell: what is not called in the end has no tools, which its first call says.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::programs::module_of;
use super::python::{Called, Calls, calls_of};

/// How a function is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Way {
    /// It has been called when the file has run.
    Runs,
    /// A function has to be called that needs no arguments.
    By {
        /// The file that defines it.
        path: PathBuf,
        /// Its name.
        function: String,
    },
}

/// What a file and its helpers call.
pub(super) struct Reached {
    files: Vec<(PathBuf, Calls)>,
    /// What has been called when the file has run.
    by_running: HashSet<Node>,
    /// What each function calls that the worker can call.
    by_calling: Vec<(Node, HashSet<Node>)>,
}

/// A file, and a function or method of it.
type Node = (usize, String);

impl Reached {
    pub(super) fn of(file: &Path, helpers: &[PathBuf]) -> Self {
        let paths = std::iter::once(file).chain(helpers.iter().map(PathBuf::as_path));
        let files = paths.filter_map(|path| Some((path.to_owned(), calls_of(path)?))).collect();
        let mut reached = Self { files, by_running: HashSet::new(), by_calling: Vec::new() };
        reached.by_running = reached.from((0..reached.files.len()).map(|file| (file, String::new())).collect());
        let callable = |(index, (_, calls)): (usize, &(PathBuf, Calls))| {
            calls.callable.iter().map(move |name| (index, name.clone())).collect::<Vec<_>>()
        };
        let callable: Vec<Node> = reached.files.iter().enumerate().flat_map(callable).collect();
        let callable = callable.into_iter().filter(|node| !reached.by_running.contains(node));
        let by_calling: Vec<_> = callable.map(|node| (node.clone(), reached.from(vec![node]))).collect();
        reached.by_calling = by_calling;
        reached
    }

    /// How a function of one of these files is reached, or a method: `Server.register`.
    pub(super) fn way_to(&self, path: &Path, function: &str) -> Option<Way> {
        let node = (self.files.iter().position(|(file, _)| file == path)?, function.to_owned());
        if self.by_running.contains(&node) {
            return Some(Way::Runs);
        }
        // The one that does the least beside.
        let calling = self.by_calling.iter().filter(|(by, called)| *by != node && called.contains(&node));
        let ((file, function), _) = calling.min_by_key(|(_, called)| called.len())?;
        Some(Way::By { path: self.files[*file].0.clone(), function: function.clone() })
    }

    /// What these call, directly or through others.
    fn from(&self, mut waiting: Vec<Node>) -> HashSet<Node> {
        let mut reached: HashSet<Node> = waiting.iter().cloned().collect();
        while let Some((file, owner)) = waiting.pop() {
            for called in self.files[file].1.by.get(&owner).into_iter().flatten() {
                for node in self.meant(file, called) {
                    if !reached.contains(&node) {
                        reached.insert(node.clone());
                        waiting.push(node);
                    }
                }
            }
        }
        reached
    }

    /// What a file may mean by what it calls. A class is its constructor.
    fn meant(&self, file: usize, called: &Called) -> Vec<Node> {
        let within = |file: usize, name: &str| {
            let known = &self.files[file].1.by;
            let names = [name.to_owned(), format!("{name}.__init__"), format!("{name}.__post_init__")];
            names.into_iter().filter(|name| known.contains_key(name)).map(|name| (file, name)).collect::<Vec<_>>()
        };
        match called {
            Called::Own(name) => within(file, name),
            Called::Outside(full) => {
                let (module, name) = full.rsplit_once('.').unwrap_or(("", full));
                let module = module.rsplit('.').next().unwrap_or_default();
                let others = || (0..self.files.len()).filter(|other| *other != file);
                let of_module: Vec<Node> = others()
                    .filter(|other| module_of(&self.files[*other].0) == module)
                    .flat_map(|other| within(other, name))
                    .collect();
                // A package may import it from another module, by its name.
                if of_module.is_empty() { others().flat_map(|other| within(other, name)).collect() } else { of_module }
            }
            Called::Method(name) => {
                let suffix = format!(".{name}");
                let of_file = |(index, (_, calls)): (usize, &(PathBuf, Calls))| {
                    let methods = calls.by.keys().filter(|owner| owner.ends_with(&suffix));
                    methods.map(|owner| (index, owner.clone())).collect::<Vec<_>>()
                };
                self.files.iter().enumerate().flat_map(of_file).collect()
            }
        }
    }
}
