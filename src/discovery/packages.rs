//! The package that a file is part of. The worker finds the file's neighbours by it, too (`package.py` of the worker).

use std::path::Path;

use crate::pep723::{is_identifier, is_listed, is_well_known};

/// The package that a file is part of: the names of the folders around it, as far up as they have an `__init__.py`. The worker finds
/// the file's neighbours by it, too.
pub fn own_package(path: &Path) -> Option<String> {
    let folders =
        path.ancestors().skip(1).take(DEEPEST_PACKAGE).take_while(|folder| folder.join("__init__.py").is_file());
    let mut names: Vec<&str> =
        folders.map_while(|folder| folder.file_name()?.to_str().filter(|it| is_identifier(it))).collect();
    names.reverse();
    (!names.is_empty()).then(|| names.join("."))
}

/// The folder above the package that a file is part of and imports from: one around it has the name that the import begins with, and the
/// module after that. It needs no `__init__.py`, as Python needs none.
pub fn above_own_package<'p>(path: &'p Path, import: &str) -> Option<&'p Path> {
    let mut parts = import.split('.');
    let (top, module) = (parts.next()?, parts.next()?);
    let around = path.ancestors().skip(1).take(DEEPEST_PACKAGE).enumerate();
    let mut named = around.filter(|(_, folder)| folder.file_name().is_some_and(|name| name == top));
    named.find_map(|(depth, folder)| {
        let has = || folder.join(format!("{module}.py")).is_file() || folder.join(module).is_dir();
        let is_package = || path.ancestors().skip(1).take(depth + 1).all(|folder| folder.join("__init__.py").is_file());
        // A folder may only share its name with an installed package: `mcp/server.py` with `from mcp.server import …`.
        let is_own = || depth < DEEPEST_NAMESPACE && !is_well_known(top) || is_package();
        (has() && is_own()).then(|| folder.parent())?
    })
}

/// Whether a top-level module that a file imports is that of its own package, or lies in one of the folders it imports from.
pub fn is_neighbour(file: &Path, own_package: Option<&str>, folders: &[impl AsRef<Path>], module: &str) -> bool {
    let mut folders = folders.iter().map(AsRef::as_ref);
    let has = |folder: &Path| {
        let path = folder.join(format!("{module}.py"));
        path != file && path.is_file() && !has_tool_named_after(folder, module)
    };
    own_package.and_then(|own| own.split('.').next()) == Some(module)
        || folders.any(|folder| has(folder) || folder.join(module).is_dir())
}

/// Whether a folder has a file that is named after the package that it uses: `redis.py` with `import redis`. The module of that name is the
/// package for the files beside it, too: the worker looks there last.
pub(super) fn has_tool_named_after(folder: &Path, module: &str) -> bool {
    let is_module = |name: &str| name.split('.').next() == Some(module);
    let imports = |line: &str| {
        let words: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()).collect();
        match &words[..] {
            ["import", names @ ..] => names.iter().any(|name| is_module(name)),
            ["from", name, "import", ..] => is_module(name),
            _ => false,
        }
    };
    let read = || std::fs::read_to_string(folder.join(format!("{module}.py")));
    is_listed(module) && read().is_ok_and(|text| text.lines().any(imports))
}

/// Folders further up are not looked at.
pub(super) const DEEPEST_PACKAGE: usize = 16;
/// The same for folders without an `__init__.py`.
const DEEPEST_NAMESPACE: usize = 4;

/// Whether a file is the package's own, which is a tool file only if it makes a server with tools.
pub(super) fn is_of_package(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "__init__.py" || name == "__main__.py")
}
