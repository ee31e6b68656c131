//! Which files a dotted name means: `commands.stock.app`, `.stock.app`. Names that one file has from another are followed by its imports.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::packages::{DEEPEST_PACKAGE, above_own_package};

/// A part of a dotted name, seen from a folder.
pub(super) struct Step<'n> {
    /// The file that it is as a package, which comes before the module.
    pub package: PathBuf,
    /// The file that it is as a module.
    pub module: PathBuf,
    /// The rest of the name.
    pub rest: &'n str,
}

/// The parts of a dotted name from a folder on. Its import runs the file of each that exists.
pub(super) fn steps<'n>(folder: &Path, name: &'n str) -> impl Iterator<Item = Step<'n>> {
    let (mut within, mut left) = (folder.to_owned(), name);
    let parts = std::iter::from_fn(move || {
        let (part, rest) = left.split_once('.').unwrap_or((left, ""));
        left = rest;
        let module = within.join(format!("{part}.py"));
        within.push(part);
        (!part.is_empty()).then(|| Step { package: within.join("__init__.py"), module, rest })
    });
    parts.take(DEEPEST_PACKAGE)
}

/// Some files, with what each imports, dotted. The first is the tool file.
pub(super) struct Modules<'f> {
    files: Vec<(&'f Path, &'f [String])>,
    by_path: HashMap<&'f Path, usize>,
}

impl<'f> Modules<'f> {
    pub(super) fn of(files: impl Iterator<Item = (&'f Path, &'f [String])>) -> Self {
        let files: Vec<_> = files.collect();
        let by_path = files.iter().enumerate().map(|(index, (path, _))| (*path, index)).collect();
        Self { files, by_path }
    }

    /// The file that a module is, seen from a file: below the folder of the tool file, that of the file, or the one around its package.
    pub(super) fn module(&self, from: &Path, dotted: &str) -> Option<usize> {
        let name = dotted.trim_start_matches('.');
        let known = |path: &Path| self.by_path.get(path).copied();
        let within = |base: &Path| {
            let found = match steps(base, name).last() {
                Some(step) if !step.rest.is_empty() => None,
                Some(step) => known(&step.package).or_else(|| known(&step.module)),
                None => known(&base.join("__init__.py")),
            };
            found.filter(|index| self.files[*index].0 != from)
        };
        let dots = dotted.len() - name.len();
        if dots > 0 {
            return within(from.ancestors().nth(dots)?);
        }
        if name.is_empty() {
            return None;
        }
        let root = self.files.first().and_then(|(path, _)| path.parent());
        let around = || above_own_package(from, name);
        root.and_then(within).or_else(|| within(from.parent()?)).or_else(|| within(around()?))
    }

    /// The file that defines something, and its name there. `has` says whether a file does.
    pub(super) fn find(&self, from: &Path, dotted: &str, has: &dyn Fn(usize, &str) -> bool) -> Option<(usize, String)> {
        // Files may have a name from one another.
        let mut seen = HashSet::new();
        let mut waiting = vec![(from, dotted.to_owned())];
        while let Some((from, dotted)) = waiting.pop() {
            let Some((module, name)) = split(&dotted) else { continue };
            let Some(file) = self.module(from, module) else { continue };
            if has(file, name) {
                return Some((file, name.to_owned()));
            }
            if !seen.insert((file, name.to_owned())) {
                continue;
            }
            let (path, imports) = self.files[file];
            let further = imports.iter().rev().filter_map(|import| match split(import)? {
                (module, "*") => Some(join(module, name)),
                (_, last) if last == name => Some(import.clone()),
                _ => None,
            });
            waiting.extend(further.map(|import| (path, import)));
        }
        None
    }
}

/// `commands.stock` and `app` of `commands.stock.app`; `.` and `stock` of `.stock`.
fn split(dotted: &str) -> Option<(&str, &str)> {
    let at = dotted.rfind('.')?;
    let module = if dotted[..at].trim_start_matches('.').is_empty() { &dotted[..=at] } else { &dotted[..at] };
    Some((module, &dotted[at + 1..]))
}

/// `tools.notes` of `tools` and `notes`, `.notes` of `.` and `notes`.
pub(super) fn join(module: &str, name: &str) -> String {
    if module.ends_with('.') { format!("{module}{name}") } else { format!("{module}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_found_by_their_whole_names() {
        let files: Vec<(&str, Vec<String>)> = vec![
            ("/t/main.py", vec![]),
            ("/t/a/__init__.py", vec![".tools.app".to_owned(), "b.tools.*".to_owned()]),
            ("/t/a/tools.py", vec![]),
            ("/t/b/tools.py", vec![]),
        ];
        let modules = Modules::of(files.iter().map(|(path, imports)| (Path::new(*path), imports.as_slice())));
        let main = Path::new("/t/main.py");
        let module = |from: &str, dotted: &str| modules.module(Path::new(from), dotted);
        assert_eq!((module("/t/main.py", "a"), module("/t/main.py", "b.tools")), (Some(1), Some(3)));
        assert_eq!(module("/t/a/__init__.py", "tools"), Some(2), "in the same folder");
        assert_eq!(module("/t/main.py", "tools"), None, "not further down");
        assert_eq!((module("/t/a/x.py", ".tools"), module("/t/a/x.py", "..b.tools")), (Some(2), Some(3)));
        assert_eq!((module("/t/main.py", "c.tools"), module("/t/a/tools.py", ".")), (None, Some(1)));
        let find = |dotted: &str, of: usize| modules.find(main, dotted, &|file, name| file == of && name == "app");
        assert_eq!(find("a.tools.app", 2), Some((2, "app".to_owned())));
        assert_eq!(find("a.app", 2), Some((2, "app".to_owned())), "it is imported from there");
        assert_eq!(find("a.app", 3), Some((3, "app".to_owned())), "with a star");
        assert_eq!((find("b.tools.app", 2), find("uvicorn.app", 2)), (None, None));
    }
}
