//! What to do about a module that an import did not find.

use std::path::Path;

use super::advice::capital;
use crate::discovery::{ToolFile, did_you_mean, is_standard};
use crate::pep723::{Metadata, brings, distribution_of, is_well_known, package_of};

/// The advice, or nothing where the file declares the package already or has the module beside it.
pub(super) fn missing_module(module: &str, file: &ToolFile) -> Option<String> {
    let folder = file.path.parent().unwrap_or(Path::new("."));
    let top = module.split('.').next().unwrap_or(module);
    let is_neighbour = folder.join(format!("{top}.py")).is_file() || folder.join(top).is_dir();
    if is_neighbour {
        return None;
    }
    if let (true, Some((_, part))) = (is_standard(top), module.split_once('.')) {
        return Some(format!(
            "`{top}` is Python's own, and `{part}` is not in it: correct the name, or, if a newer Python has it, set \
             `requires-python` in the header to one that does"
        ));
    }
    let told = told(top, file.header.as_ref())?;
    Some(match did_you_mean(top, file) {
        Some(question) if is_well_known(top) => capital(&question),
        Some(question) => format!("{} If not: {}", capital(&question), told.replacen("If", "if", 1)),
        None if is_well_known(top) || is_standard(top) => told,
        None => format!("{told}. If it is yours, put the file {top}.py or the folder {top} into {}", folder.display()),
    })
}

fn told(module: &str, header: Option<&Metadata>) -> Option<String> {
    if is_standard(module) {
        return Some(format!(
            "`{module}` belongs to Python itself, but not to the version that runs this file: set `requires-python` in the \
             header to one that has it, or do without it"
        ));
    }
    let declared = header.map(|header| header.dependencies.as_slice()).unwrap_or_default();
    if declared.iter().any(|wish| brings(package_of(wish), module)) {
        return None;
    }
    let known = distribution_of(module);
    let package = known.unwrap_or(module);
    let whence = match known {
        Some(_) => format!("`{module}` comes with the package \"{package}\""),
        None => format!("If `{module}` is a package from the index, declare it"),
    };
    let how = match header {
        Some(header) => format!("in the header, {}", header.declaring(package)),
        None => format!(
            "begin the file with a header, the three lines `# /// script`, `# dependencies = [\"{package}\"]` and `# ///`"
        ),
    };
    Some(format!("{whence}: {how}"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn what_a_module_of_pythons_own_lacks_is_no_package() {
        let file = crate::discovery::read_bytes(&PathBuf::from("/nowhere/a.py"), b"import os.pth\n");
        let told = missing_module("os.pth", &file).unwrap();
        assert!(told.starts_with("`os` is Python's own, and `pth` is not in it: correct the name"), "{told}");
        let told = missing_module("lib", &file).unwrap();
        assert!(told.ends_with("If it is yours, put the file lib.py or the folder lib into /nowhere"), "{told}");
        for known in ["yaml", "tomllib"] {
            let told = missing_module(known, &file).unwrap();
            assert!(!told.contains("If it is yours"), "{told}");
        }
    }

    #[test]
    fn the_package_and_the_line_are_named() {
        let toml = "dependencies = [\"ruamel.yaml\"]\n";
        let header = Metadata::from_toml(toml, 2, &Arc::new(PathBuf::from("a.py"))).unwrap();
        assert_eq!(
            told("yaml", Some(&header)).unwrap(),
            "`yaml` comes with the package \"pyyaml\": in the header, write line 2 as `# dependencies = [\"ruamel.yaml\", \
             \"pyyaml\"]`"
        );
        assert_eq!(
            told("httpx", None).unwrap(),
            "If `httpx` is a package from the index, declare it: begin the file with a header, the three lines \
             `# /// script`, `# dependencies = [\"httpx\"]` and `# ///`"
        );
        assert!(told("tomllib", None).unwrap().contains("`requires-python`"));
        assert_eq!(told("ruamel", Some(&header)), None, "a part that a declared package lacks");
    }
}
