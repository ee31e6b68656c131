//! The interpreters of this machine, by file name, and whether one satisfies a header's `requires-python`.

use std::collections::BTreeSet;
use std::path::Path;
use std::str::FromStr;

use pep440_rs::VersionSpecifiers;

use super::file::Subject;
use super::{Finding, file, rule};
use crate::config::Environment;
use crate::pep723::{UnsupportedPython, some_patch_fits};

/// Minor versions of Python, `(3, 12)`; empty when none was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interpreters(pub BTreeSet<(u64, u64)>);

impl Interpreters {
    /// The versions in `PATH`, in uv's folder and in pyenv's, by file name; nothing is started.
    pub fn of_this_machine(environment: &Environment) -> Self {
        let mut found = BTreeSet::new();
        let path = environment.raw("PATH").unwrap_or_default();
        for folder in std::env::split_paths(path) {
            found.extend(names_in(&folder).iter().filter_map(|name| version_of(name.strip_prefix("python")?)));
            // `python3` is often a link to a name with a version.
            let target = std::fs::canonicalize(folder.join("python3")).ok();
            let name = target.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            found.extend(name.and_then(|name| version_of(name.strip_prefix("python")?)));
        }
        let home = environment.home().unwrap_or_default();
        let data = environment.path("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
        let managed = environment.path("UV_PYTHON_INSTALL_DIR").unwrap_or_else(|| data.join("uv/python"));
        found.extend(names_in(&managed).iter().filter_map(|name| version_of(name.strip_prefix("cpython-")?)));
        found.extend(names_in(&home.join(".pyenv/versions")).iter().filter_map(|name| version_of(name)));
        Self(found)
    }

    /// Whether one of them satisfies a range.
    pub fn fits(&self, wanted: &VersionSpecifiers) -> bool {
        self.0.iter().any(|minor| some_patch_fits(*minor, wanted))
    }

    /// All of them: `3.9, 3.11`.
    pub fn list(&self) -> String {
        self.0.iter().map(|(major, minor)| format!("{major}.{minor}")).collect::<Vec<_>>().join(", ")
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// `3.12`, `3.12.4`, `3.12.4-linux-x86_64-gnu`; not `3`, `3-config`, `3.12-config`.
fn version_of(text: &str) -> Option<(u64, u64)> {
    let (major, rest) = text.split_once('.')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let after = &rest[digits..];
    let is_version = after.is_empty() || (after.starts_with('.') && !after.ends_with("config"));
    if is_version { Some((major.parse().ok()?, rest[..digits].parse().ok()?)) } else { None }
}

pub(super) fn check(subject: &Subject<'_>, machine: &Interpreters, findings: &mut Vec<Finding>) {
    let Some(header) = &subject.file.header else { return };
    let Some(text) = &header.requires_python else { return };
    let range = (header.first_line..=header.first_line + header.toml.lines().count())
        .find(|line| subject.text.line(*line).contains("requires-python"))
        .map(|line| subject.text.range_of_line(line));
    let wanted = match VersionSpecifiers::from_str(text) {
        Ok(wanted) => wanted,
        Err(error) => {
            let reason = error.to_string();
            let reason = reason.lines().next().unwrap_or_default().trim_end_matches(':');
            let message = format!("`{text}` is not a version specifier: {reason}");
            let fix = "write it like \">=3.11\" or \">=3.11,<3.14\"";
            return findings.push(Finding::new(&rule::PYTHON_IMPOSSIBLE, range, message, fix));
        }
    };
    file::newer_syntax(subject, &wanted, findings);
    if let Some(hindrance) = UnsupportedPython::of_range(&wanted) {
        let (message, fix) = hindrance.explain(&format!("`{text}`"));
        findings.push(Finding::new(&rule::PYTHON_IMPOSSIBLE, range, message, fix));
    } else if !machine.0.is_empty() && !machine.fits(&wanted) {
        let message = format!("no interpreter here satisfies `{text}` (found: {})", machine.list());
        let fix = "install one (`uv python install`), let uv download it at the first call, or widen the range";
        findings.push(Finding::new(&rule::PYTHON_ABSENT, range, message, fix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_file_names() {
        assert_eq!(version_of("3.12"), Some((3, 12)));
        assert_eq!(version_of("3.12.4-linux-x86_64-gnu"), Some((3, 12)));
        for text in ["3", "3-config", "3.12-config", "", "3.x"] {
            assert_eq!(version_of(text), None, "{text}");
        }
    }

    #[test]
    fn a_machine_satisfies_a_range_by_one_of_its_versions() {
        let machine = Interpreters(BTreeSet::from([(3, 9), (3, 11)]));
        let fits = |text: &str| machine.fits(&VersionSpecifiers::from_str(text).unwrap());
        assert!(fits(">=3.9") && fits("==3.11.*") && fits(">=3.11.4,<3.12") && fits("~=3.9"));
        assert!(!fits(">=3.12") && !fits("<3.9") && !fits("!=3.9.*,!=3.11.*"));
    }
}
