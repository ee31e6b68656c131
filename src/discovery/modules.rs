//! Which of some files a dotted name means: `commands.stock.app`, `.stock.app`. Names that one file has from another are followed by its
//! imports.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

/// Names that are imported from file to file more often are not followed.
const DEEPEST: usize = 8;

/// Some files, with what each imports, dotted.
pub(super) struct Modules<'f> {
    files: Vec<(&'f Path, &'f [String])>,
    /// The path of each without its ending, by its last name. A package is its folder.
    by_name: HashMap<OsString, Vec<(PathBuf, usize)>>,
}

impl<'f> Modules<'f> {
    pub(super) fn of(files: impl Iterator<Item = (&'f Path, &'f [String])>) -> Self {
        let files: Vec<_> = files.collect();
        let mut by_name: HashMap<OsString, Vec<(PathBuf, usize)>> = HashMap::new();
        for (index, (path, _)) in files.iter().enumerate() {
            let is_package = path.file_stem().is_some_and(|stem| stem == "__init__");
            let module = if is_package { path.parent().unwrap_or(path).to_owned() } else { path.with_extension("") };
            let name = module.file_name().unwrap_or_default().to_owned();
            by_name.entry(name).or_default().push((module, index));
        }
        Self { files, by_name }
    }

    /// The file that a module is, seen from a file.
    pub(super) fn module(&self, from: &Path, dotted: &str) -> Option<usize> {
        let name = dotted.trim_start_matches('.');
        let dots = dotted.len() - name.len();
        let base = (dots > 0).then(|| from.ancestors().nth(dots)).flatten();
        let parts: Vec<&str> = name.split('.').filter(|part| !part.is_empty()).collect();
        let wanted = base.map(|base| parts.iter().fold(base.to_owned(), |path, part| path.join(part)));
        let last = match &wanted {
            Some(path) => path.file_name()?,
            None => OsStr::new(*parts.last()?),
        };
        let is_it = |path: &Path| wanted.as_ref().map_or_else(|| ends_with(path, &parts), |wanted| path == wanted);
        let named = self.by_name.get(last).into_iter().flatten();
        let found = named.filter(|(path, index)| self.files[*index].0 != from && is_it(path));
        // Of two of one name, the one that is nearer.
        let near = |path: &Path| path.components().zip(from.components()).take_while(|(a, b)| a == b).count();
        found.max_by_key(|(path, _)| near(path)).map(|(_, index)| *index)
    }

    /// The file that defines something, and its name there. `has` says whether a file does.
    pub(super) fn find(&self, from: &Path, dotted: &str, has: &dyn Fn(usize, &str) -> bool) -> Option<(usize, String)> {
        self.find_within(from, dotted, has, DEEPEST)
    }

    fn find_within(
        &self,
        from: &Path,
        dotted: &str,
        has: &dyn Fn(usize, &str) -> bool,
        depth: usize,
    ) -> Option<(usize, String)> {
        let (module, name) = split(dotted)?;
        let file = self.module(from, module)?;
        if has(file, name) {
            return Some((file, name.to_owned()));
        }
        let (path, imports) = self.files[file];
        let further = imports.iter().filter(|_| depth > 0).filter_map(|import| match split(import)? {
            (module, "*") => Some(join(module, name)),
            (_, last) if last == name => Some(import.clone()),
            _ => None,
        });
        let mut further = further.filter_map(|import| self.find_within(path, &import, has, depth - 1));
        further.next()
    }
}

/// `commands.stock` and `app` of `commands.stock.app`; `.` and `stock` of `.stock`.
fn split(dotted: &str) -> Option<(&str, &str)> {
    let at = dotted.rfind('.')?;
    let module = if dotted[..at].trim_start_matches('.').is_empty() { &dotted[..=at] } else { &dotted[..at] };
    Some((module, &dotted[at + 1..]))
}

fn join(module: &str, name: &str) -> String {
    if module.ends_with('.') { format!("{module}{name}") } else { format!("{module}.{name}") }
}

fn ends_with(path: &Path, parts: &[&str]) -> bool {
    let mut own = path.components().rev();
    parts.iter().rev().all(|part| matches!(own.next(), Some(Component::Normal(name)) if name == *part))
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
        assert_eq!(module("/t/a/__init__.py", "tools"), Some(2), "the nearer one");
        assert_eq!((module("/t/a/x.py", ".tools"), module("/t/a/x.py", "..b.tools")), (Some(2), Some(3)));
        assert_eq!((module("/t/main.py", "c.tools"), module("/t/a/tools.py", ".")), (None, Some(1)));
        let find = |dotted: &str, of: usize| modules.find(main, dotted, &|file, name| file == of && name == "app");
        assert_eq!(find("a.tools.app", 2), Some((2, "app".to_owned())));
        assert_eq!(find("a.app", 2), Some((2, "app".to_owned())), "it is imported from there");
        assert_eq!(find("a.app", 3), Some((3, "app".to_owned())), "with a star");
        assert_eq!((find("b.tools.app", 2), find("uvicorn.app", 2)), (None, None));
    }
}
