//! No Python to build on: which one was asked for and where, and what would help.

use super::explain::Failure;
use super::settings::place_of;
use crate::config::origin::Setting;
use crate::pep723::UnsupportedPython;

/// A minor version: `(3, 12)`.
pub type Minor = (u64, u64);

/// uv's words for an interpreter that it did not find, could not start or could not download. Only a Python's download is
/// named by its address; a package's is not.
pub(super) const NO_PYTHON: &[&str] = &[
    "No interpreter found",
    "No download found",
    "no Python can fit",
    "Failed to inspect Python interpreter",
    "Querying Python at",
    "Failed to download `http",
    "Failed to download http",
    "Failed to extract archive: cpython-",
];

/// Whether uv's reason is a missing interpreter.
pub(super) fn is_about_pythons(reason: &str) -> bool {
    NO_PYTHON.iter().any(|words| reason.contains(words))
}

impl Failure<'_> {
    /// Why there is no Python, and the ways to one.
    pub(super) fn no_python(&self) -> (String, String) {
        if let Some(python) = &self.settings.python {
            return self.no_configured_python(python);
        }
        let range = self.header.and_then(|header| header.requires_python.as_deref());
        if let Some(hindrance) = range.and_then(UnsupportedPython::of) {
            let (what, fix) = hindrance.explain(&self.requires_python());
            return (what, fix.to_owned());
        }
        let what = match range {
            Some(_) => format!("no Python that satisfies {} works here{}", self.requires_python(), self.found()),
            None => format!("no Python 3.9 or newer works here{}", self.found()),
        };
        (what, format!("install one, widen requires-python, or {}", self.way_to_download()))
    }

    /// `python` under `[environment]` names an interpreter that does not work.
    pub(super) fn no_configured_python(&self, python: &Setting<String>) -> (String, String) {
        let (python, place) = (&python.value, place_of(&python.origin));
        let what = format!("python = \"{python}\" ({place}): no such Python works here{}", self.found());
        if python.contains('/') {
            return (what, "correct or remove that line".to_owned());
        }
        (what, format!("correct or remove that line, install that Python, or {}", self.way_to_download()))
    }

    pub(super) fn requires_python(&self) -> String {
        let range = self.header.and_then(|header| header.requires_python.as_deref()).unwrap_or(">=3.9");
        format!("requires-python = \"{range}\"{}", self.place("requires-python"))
    }

    /// ` (found: 3.11, 3.13)`
    fn found(&self) -> String {
        let all: Vec<String> = self.pythons.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
        if all.is_empty() { String::new() } else { format!(" (found: {})", all.join(", ")) }
    }

    /// What keeps uv from downloading a Python, as far as that is set somewhere.
    fn way_to_download(&self) -> String {
        let forbids = |name: &str, values: &[&str]| {
            let set = self.settings.variable(name)?;
            values.contains(&set.value.to_ascii_lowercase().as_str()).then(|| format!("unset {name} ({})", set.place))
        };
        forbids("UV_OFFLINE", &["1", "true", "yes", "on", "y", "t"])
            .or_else(|| forbids("UV_PYTHON_DOWNLOADS", &["never", "manual", "false", "0"]))
            .unwrap_or_else(|| {
                "let uv download one: set HTTPS_PROXY or UV_PYTHON_INSTALL_MIRROR under [environment.env] in hostler.toml".to_owned()
            })
    }
}
