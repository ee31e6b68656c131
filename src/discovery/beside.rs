//! What lies beside a file without a header, or at the top of its project, and says which packages it needs: `requirements.txt`, or the
//! `[project]` of a `pyproject.toml`.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::ToolFile;
use super::packages::{above_own_package, is_neighbour, own_package};
use super::standard::{is_behind_the_scenes, is_standard};
use crate::config::needs::Needs;
use crate::config::origin::{Diagnosis, Origin, Setting};
use crate::pep723::Metadata;

/// Longer ones are not read.
const LONGEST: u64 = 1 << 20;
/// Further up, folders are not looked at.
const HIGHEST: usize = 3;
const WRITABLE_BY_ALL: u32 = 0o002;
/// As many packages as a file may have.
const MOST: usize = 1000;

/// The files that are looked for, and what reads each. `None` for one that says nothing.
const FILES: [(&str, Read); 2] = [("requirements.txt", of_requirements), ("pyproject.toml", of_project)];

type Read = fn(&str) -> Result<Option<Packages>, Diagnosis>;

/// The packages that a folder declares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Beside {
    /// The files that were looked at in the folder, also those that are not there, and the one of the project that is used. A change of
    /// one is a change of a tool file.
    pub files: Vec<PathBuf>,
    /// What the first that says something says, or why that cannot be used.
    pub needs: Option<Result<Needs, Diagnosis>>,
}

#[derive(Debug, Default, PartialEq)]
struct Packages {
    dependencies: Vec<String>,
    requires_python: Option<String>,
}

/// What folders declare, each of which is looked at once.
#[derive(Debug, Default)]
pub(super) struct Folders(HashMap<PathBuf, Arc<Beside>>);

impl Folders {
    pub(super) fn of(&mut self, file: &Path) -> Arc<Beside> {
        let folder = file.parent().unwrap_or(Path::new("."));
        Arc::clone(self.0.entry(folder.to_owned()).or_insert_with(|| Arc::new(declared_in(folder))))
    }
}

fn declared_in(folder: &Path) -> Beside {
    let mut beside = Beside::default();
    for (name, read) in FILES {
        let path = folder.join(name);
        beside.files.push(path.clone());
        beside.needs = declared_by(&path, name, read);
        if beside.needs.is_some() {
            return beside;
        }
    }
    // Without links and `..`, whose folders above are others.
    let Ok(folder) = folder.canonicalize() else { return beside };
    for (above, dots) in projects_above(&folder) {
        for (name, read) in FILES {
            let Ok(path) = above.join(name).canonicalize() else { continue };
            let is_safe = is_of_owner(&path, &folder) && path.parent().is_some_and(|at| is_of_owner(at, &folder));
            if !is_safe {
                continue;
            }
            beside.needs = declared_by(&path, &format!("{dots}{name}"), read);
            if beside.needs.is_some() {
                beside.files.push(path);
                return beside;
            }
        }
    }
    beside
}

fn declared_by(path: &Path, shown: &str, read: Read) -> Option<Result<Needs, Diagnosis>> {
    let found = text_of(path).and_then(|text| text.map_or(Ok(None), |text| read(&text)));
    let found = found.and_then(|packages| packages.map(|packages| needs(path, packages)).transpose());
    let unusable = |Diagnosis { what, fix }| Diagnosis::new(format!("{shown} cannot be used: {what}"), &fix);
    found.map_err(unusable).transpose()
}

/// The folders above a folder that may be the project it is part of, and how to write the way to each. A repository ends at its top,
/// and what says that a folder is a project is the repository, a `pyproject.toml`, or that the way from it is a package or `src`.
fn projects_above(folder: &Path) -> Vec<(&Path, String)> {
    let mut found = Vec::new();
    let (mut below, mut dots) = (folder, String::new());
    while found.len() < HIGHEST && !below.join(".git").exists() {
        let Some(above) = below.parent().filter(|above| above.parent().is_some() && is_of_owner(above, folder)) else {
            break;
        };
        dots.push_str("../");
        let is_inside = below.join("__init__.py").exists() || below.file_name().is_some_and(|name| name == "src");
        if is_inside || above.join(".git").exists() || above.join("pyproject.toml").exists() {
            found.push((above, dots.clone()));
        }
        below = above;
    }
    found
}

/// Whether the owner of the tools owns it, too, and others may not change it: what it says is installed.
fn is_of_owner(path: &Path, folder: &Path) -> bool {
    let about = |path: &Path| fs::metadata(path).ok();
    let Some((own, tools)) = about(path).zip(about(folder)) else { return false };
    own.uid() == tools.uid() && own.mode() & WRITABLE_BY_ALL == 0
}

/// `None` for a file that is not there.
fn text_of(path: &Path) -> Result<Option<String>, Diagnosis> {
    let cannot = |what: String| Diagnosis::new(what, "fix or remove it");
    // Asked before it is opened: a pipe would block.
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        about => about.map_err(|error| cannot(error.to_string()))?,
    };
    if !about.is_file() {
        return Err(cannot("it is not a regular file".to_owned()));
    }
    if about.len() > LONGEST {
        return Err(cannot(format!("it is larger than {} MB", LONGEST >> 20)));
    }
    let bytes = fs::read(path).map_err(|error| cannot(error.to_string()))?;
    Ok(Some(decoded(&bytes)))
}

/// UTF-8, or UTF-16 as Windows' own tools write it.
fn decoded(bytes: &[u8]) -> String {
    let unit: fn([u8; 2]) -> u16 = match bytes {
        [0xff, 0xfe, ..] => u16::from_le_bytes,
        [0xfe, 0xff, ..] => u16::from_be_bytes,
        _ => return String::from_utf8_lossy(bytes).into_owned(),
    };
    let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    char::decode_utf16(units).map(|one| one.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

/// Checks packages as the header of a file would be.
fn needs(path: &Path, packages: Packages) -> Result<Needs, Diagnosis> {
    if packages.dependencies.len() > MOST {
        return Err(Diagnosis::new(format!("it lists more than {MOST} packages"), "list what the tools need"));
    }
    let place = path.display().to_string();
    let empty = Metadata::from_toml("dependencies = []\n", 1, &Arc::new(path.to_owned()));
    let header = empty.map_err(|error| error.diagnosis())?.with_dependencies(&packages.dependencies, place.clone())?;
    if let Some(range) = &packages.requires_python {
        header.with_python(range, &place)?;
    }
    let origin = Origin::Folder(Arc::new(path.to_owned()));
    let set = |value| Setting { value, origin: origin.clone() };
    Ok(Needs {
        dependencies: Some(set(packages.dependencies)),
        requires_python: packages.requires_python.map(|value| Setting { value, origin: origin.clone() }),
        python_path: None,
        args: None,
    })
}

/// `None` for a file that lists none.
fn of_requirements(text: &str) -> Result<Option<Packages>, Diagnosis> {
    let mut dependencies = Vec::new();
    let text = text.trim_start_matches('\u{feff}');
    for (number, line) in (1..).zip(text.lines()) {
        // A comment begins a line, or follows a space.
        let comment = line.find('#').filter(|at| *at == 0 || line[..*at].ends_with([' ', '\t']));
        let line = line[..comment.unwrap_or(line.len())].trim();
        if line.starts_with('-') || line.contains(" --") || line.ends_with('\\') || line.starts_with(['.', '/']) {
            let shown: String = line.chars().take(80).collect();
            let what = format!("line {number}, `{shown}`, is an option or a path");
            return Err(Diagnosis::new(what, "list packages alone"));
        }
        if !line.is_empty() {
            dependencies.push(line.to_owned());
        }
    }
    Ok((!dependencies.is_empty()).then_some(Packages { dependencies, requires_python: None }))
}

/// `None` for a file without the packages of a project.
fn of_project(text: &str) -> Result<Option<Packages>, Diagnosis> {
    let text = text.trim_start_matches('\u{feff}');
    let whole: toml::Table = text.parse().map_err(|_| Diagnosis::new("it is not valid TOML", "fix or remove it"))?;
    let Some(project) = whole.get("project") else { return Ok(None) };
    let listed = project.get("dependencies").and_then(toml::Value::as_array).filter(|listed| !listed.is_empty());
    let Some(listed) = listed else { return Ok(None) };
    let dependencies: Option<Vec<String>> = listed.iter().map(|one| one.as_str().map(str::to_owned)).collect();
    let dependencies = dependencies
        .ok_or_else(|| Diagnosis::new("a dependency of [project] is not a string", "write each as a requirement"))?;
    if whole.get("tool").and_then(|tool| tool.get("uv")?.get("sources")).is_some() {
        let what = "it takes packages from elsewhere, by [tool.uv.sources]";
        return Err(Diagnosis::new(what, "give the file a header with them"));
    }
    let requires_python = project.get("requires-python").and_then(toml::Value::as_str).map(str::to_owned);
    Ok(Some(Packages { dependencies, requires_python }))
}

impl ToolFile {
    /// Whether it imports a module that neither Python nor its folder has.
    pub(super) fn imports_packages(&self) -> bool {
        is_from_elsewhere(&self.path, &self.imports)
    }
}

fn is_from_elsewhere(path: &Path, imports: &[String]) -> bool {
    let folder = path.parent().unwrap_or(Path::new("."));
    let foreign = imports.iter().filter(|import| above_own_package(path, import).is_none());
    let tops = foreign.map(|module| module.split('.').next().unwrap_or_default()).filter(|top| !top.is_empty());
    let mut unknown = tops.filter(|top| !is_standard(top) && !is_behind_the_scenes(top)).peekable();
    if unknown.peek().is_none() {
        return false;
    }
    let own = own_package(path);
    unknown.any(|top| !is_neighbour(path, own.as_deref(), &[folder], top))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(name: &str, text: &str) -> Beside {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(name), text).unwrap();
        declared_in(folder.path())
    }

    fn packages(name: &str, text: &str) -> Option<Vec<String>> {
        Some(beside(name, text).needs?.unwrap().dependencies.unwrap().value)
    }

    fn trouble(name: &str, text: &str) -> String {
        beside(name, text).needs.unwrap().unwrap_err().what
    }

    #[test]
    fn plain_requirements_are_read() {
        let text = "\u{feff}# what it needs\n\nhttpx>=0.27  # a client\nx @ https://a.b/x.whl#sha256=0\nmcp[cli]; python_version > '3.9'\r\n";
        let expected = ["httpx>=0.27", "x @ https://a.b/x.whl#sha256=0", "mcp[cli]; python_version > '3.9'"];
        assert_eq!(packages("requirements.txt", text).unwrap(), expected);
        assert_eq!(packages("requirements.txt", "# none\n"), None);
    }

    #[test]
    fn windows_text_is_read() {
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            let text: Vec<u8> = "\u{feff}six==1.0\r\nhttpx\r\n".encode_utf16().flat_map(unit).collect();
            let packages = of_requirements(&decoded(&text)).unwrap().unwrap();
            assert_eq!(packages.dependencies, ["six==1.0", "httpx"]);
        }
    }

    #[test]
    fn what_means_more_is_not_guessed() {
        for line in
            ["-r base.txt", "--index-url https://a.b", "-e .", "a==1 --hash=sha256:0", "a==1 \\", "./local", "/x/y.whl"]
        {
            let reason = trouble("requirements.txt", &format!("six\n{line}\n"));
            assert!(reason.starts_with("requirements.txt cannot be used: line 2"), "{reason}");
        }
        trouble("requirements.txt", "or json\n");
        trouble("requirements.txt", &"six\n".repeat(MOST + 1));
        let reason = trouble("requirements.txt", &format!("-{}", "x".repeat(3000)));
        assert!(reason.len() < 200, "{reason}");
    }

    #[test]
    fn a_project_declares_its_packages() {
        let text = "\u{feff}[project]\nname = 'x'\ndependencies = ['six>=1']\n";
        assert_eq!(packages("pyproject.toml", text).unwrap(), ["six>=1"]);
        for nothing in ["", "[project]\nname = 'x'\n", "[tool.ruff]\n", "[project]\ndependencies = []\n"] {
            assert_eq!(packages("pyproject.toml", nothing), None, "{nothing}");
        }
        for wrong in [
            "[project\n",
            "[project]\ndependencies = ['six', 3]\n",
            "[project]\ndependencies = ['six']\nrequires-python = 'new'\n",
            "[project]\ndependencies = ['six']\n[tool.uv.sources]\nsix = { path = 'six' }\n",
        ] {
            trouble("pyproject.toml", wrong);
        }
    }

    #[test]
    fn the_project_of_a_folder_declares_its_packages() {
        use std::os::unix::fs::PermissionsExt;
        let used = |prepare: &dyn Fn(&Path)| {
            let top = tempfile::tempdir().unwrap();
            let project = top.path().join("project");
            let folder = project.join("src/pack/tools");
            fs::create_dir_all(&folder).unwrap();
            fs::write(project.join("requirements.txt"), "six\n").unwrap();
            prepare(&project);
            let found = declared_in(&folder);
            let needs = found.needs.map(|needs| needs.unwrap().dependencies.unwrap().value);
            needs.inspect(|_| assert_eq!(found.files.len(), 3, "the one that is used is followed"))
        };
        let six = Some(vec!["six".to_owned()]);
        let nothing = |_: &Path| {};
        assert_eq!(used(&nothing), six, "`src` is below it");
        let elsewhere = |prepare: &dyn Fn(&Path)| {
            let top = tempfile::tempdir().unwrap();
            let folder = top.path().join("more/tools");
            fs::create_dir_all(&folder).unwrap();
            fs::write(top.path().join("requirements.txt"), "six\n").unwrap();
            prepare(top.path());
            declared_in(&folder).needs.map(|needs| needs.unwrap().dependencies.unwrap().value)
        };
        assert_eq!(elsewhere(&nothing), None, "nothing says that it is a project");
        assert_eq!(elsewhere(&|top| fs::create_dir(top.join(".git")).unwrap()), six);
        assert_eq!(elsewhere(&|top| fs::write(top.join("pyproject.toml"), "").unwrap()), six);
        assert_eq!(elsewhere(&|top| fs::write(top.join("more/__init__.py"), "").unwrap()), six);
        let git = |at: &'static str| move |project: &Path| fs::create_dir(project.join(at)).unwrap();
        assert_eq!(used(&git("src/.git")), None, "a repository ends at its top");
        assert_eq!(used(&git("src/pack/tools/.git")), None);
        assert_eq!(used(&git(".git")), six);
        let open_to_all = |path: &'static str| {
            move |project: &Path| {
                fs::set_permissions(project.join(path), fs::Permissions::from_mode(0o777)).unwrap();
            }
        };
        assert_eq!(used(&open_to_all(".")), None, "anybody may change it");
        assert_eq!(used(&open_to_all("requirements.txt")), None);
    }

    #[test]
    fn one_that_says_nothing_leaves_it_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(declared_in(folder.path()).needs, None);
        fs::write(folder.path().join("requirements.txt"), "").unwrap();
        fs::write(folder.path().join("pyproject.toml"), "[project]\ndependencies = ['six']\n").unwrap();
        let found = declared_in(folder.path());
        assert_eq!(found.files.len(), 2, "both are followed");
        assert!(matches!(found.needs, Some(Ok(_))));
        fs::remove_file(folder.path().join("requirements.txt")).unwrap();
        fs::create_dir(folder.path().join("requirements.txt")).unwrap();
        assert!(matches!(declared_in(folder.path()).needs, Some(Err(_))));
    }
}
