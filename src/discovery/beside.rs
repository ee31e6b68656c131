//! What lies beside a file without a header and says which packages it needs: `requirements.txt`, or the `[project]` of a
//! `pyproject.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use super::ToolFile;
use super::imports::{is_behind_the_scenes, is_standard, own_package};
use super::python::read_file;
use crate::config::origin::Diagnosis;

/// Longer ones are not read.
const LONGEST: u64 = 1 << 20;

/// The files that are looked for, and what reads each. `None` for one that says nothing.
const FILES: [(&str, Read); 2] =
    [("requirements.txt", |text| Some(of_requirements(text))), ("pyproject.toml", of_project)];

type Read = fn(&str) -> Option<Result<Packages, Diagnosis>>;

/// The packages that a folder declares.
#[derive(Debug, PartialEq)]
pub(super) struct Declared {
    /// The file that says so.
    pub path: PathBuf,
    /// As many of them as can be used, or why none can.
    pub packages: Result<Packages, Diagnosis>,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Packages {
    pub dependencies: Vec<String>,
    pub requires_python: Option<String>,
}

/// What the folder of a tool file declares; `None` if nothing.
pub(super) fn declared_beside(file: &Path) -> Option<Declared> {
    let folder = file.parent()?;
    FILES.into_iter().find_map(|(name, read)| {
        let path = folder.join(name);
        // Asked before it is opened: a pipe would block.
        let about = fs::metadata(&path).ok().filter(|about| about.is_file() && about.len() <= LONGEST)?;
        let text =
            if about.len() == 0 { String::new() } else { String::from_utf8_lossy(&fs::read(&path).ok()?).into_owned() };
        Some(Declared { packages: read(&text)?, path })
    })
}

fn of_requirements(text: &str) -> Result<Packages, Diagnosis> {
    let mut dependencies = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    for (number, line) in (1..).zip(text.lines()) {
        // A comment begins a line, or follows a space.
        let comment = line.find('#').filter(|at| *at == 0 || line[..*at].ends_with([' ', '\t']));
        let line = line[..comment.unwrap_or(line.len())].trim();
        if line.starts_with('-') || line.contains(" --") || line.ends_with('\\') || line.starts_with(['.', '/']) {
            let what = format!("line {number} of requirements.txt is more than a requirement: `{line}`");
            return Err(Diagnosis::new(what, "write what the file needs"));
        }
        if !line.is_empty() {
            dependencies.push(line.to_owned());
        }
    }
    Ok(Packages { dependencies, requires_python: None })
}

/// `None` for a file without a project.
fn of_project(text: &str) -> Option<Result<Packages, Diagnosis>> {
    let whole: toml::Table = text.parse().ok()?;
    let project = whole.get("project")?;
    let listed = project.get("dependencies").and_then(toml::Value::as_array)?;
    let dependencies = listed.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect();
    let sources = whole.get("tool").and_then(|tool| tool.get("uv")?.get("sources")).is_some();
    if sources {
        let what = "pyproject.toml takes packages from elsewhere, by [tool.uv.sources]";
        return Some(Err(Diagnosis::new(what, "write what the file needs")));
    }
    let requires_python = project.get("requires-python").and_then(toml::Value::as_str).map(str::to_owned);
    Some(Ok(Packages { dependencies, requires_python }))
}

impl ToolFile {
    /// Whether it, or a neighbour that it imports, imports a module that neither Python nor its folder has.
    pub(super) fn imports_packages(&self) -> bool {
        is_from_elsewhere(&self.path, &self.imports)
            || self.helpers.iter().any(|helper| is_from_elsewhere(helper, &read_file(helper).imports))
    }
}

fn is_from_elsewhere(path: &Path, imports: &[String]) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    let tops = imports.iter().map(|module| module.split('.').next().unwrap_or_default()).filter(|top| !top.is_empty());
    let mut unknown = tops.filter(|top| !is_standard(top) && !is_behind_the_scenes(top)).peekable();
    if unknown.peek().is_none() {
        return false;
    }
    let own = own_package(path);
    let own = own.as_deref().and_then(|own| own.split('.').next());
    let is_here =
        |top: &str| own == Some(top) || folder.join(format!("{top}.py")).is_file() || folder.join(top).is_dir();
    unknown.any(|top| !is_here(top))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(name: &str, text: &str) -> Option<Result<Vec<String>, String>> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        let declared = declared_beside(&folder.path().join("tool.py"))?;
        assert_eq!(declared.path, folder.path().join(name));
        Some(declared.packages.map(|found| found.dependencies).map_err(|reason| reason.what))
    }

    #[test]
    fn plain_requirements_are_read() {
        let text = "\u{feff}# what it needs\n\nhttpx>=0.27  # a client\nx @ https://a.b/x.whl#sha256=0\nmcp[cli]; python_version > '3.9'\r\n";
        let expected = ["httpx>=0.27", "x @ https://a.b/x.whl#sha256=0", "mcp[cli]; python_version > '3.9'"];
        assert_eq!(packages("requirements.txt", text).unwrap().unwrap(), expected);
        assert_eq!(packages("requirements.txt", "").unwrap().unwrap(), [""; 0]);
    }

    #[test]
    fn what_means_more_is_not_guessed() {
        for line in
            ["-r base.txt", "--index-url https://a.b", "-e .", "a==1 --hash=sha256:0", "a==1 \\", "./local", "/x/y.whl"]
        {
            let reason = packages("requirements.txt", &format!("six\n{line}\n")).unwrap().unwrap_err();
            assert!(reason.starts_with("line 2 of requirements.txt"), "{reason}");
        }
        let sources = "[project]\ndependencies = ['six']\n[tool.uv.sources]\nsix = { path = 'six' }\n";
        assert!(packages("pyproject.toml", sources).unwrap().is_err());
    }

    #[test]
    fn a_project_declares_its_packages() {
        let text = "[project]\nname = 'x'\ndependencies = ['six>=1']\n";
        assert_eq!(packages("pyproject.toml", text).unwrap().unwrap(), ["six>=1"]);
        for nothing in
            ["", "[project]\nname = 'x'\n", "[tool.ruff]\n", "[project\n", "[project]\ndependencies = 'six'\n"]
        {
            assert_eq!(packages("pyproject.toml", nothing), None, "{nothing}");
        }
    }

    #[test]
    fn what_is_no_file_declares_nothing() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("requirements.txt")).unwrap();
        assert_eq!(declared_beside(&folder.path().join("tool.py")), None);
        assert_eq!(declared_beside(Path::new("")), None);
    }
}
