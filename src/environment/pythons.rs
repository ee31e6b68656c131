//! Which Python an environment was to have, where uv found none or packages have no wheel for it, and the ways to another one.

use super::explain::Failure;
use super::settings::{PROXIES, place_of};
use super::uv::{Minor, minor_of};
use crate::config::origin::Setting;
use crate::pep723::UnsupportedPython;

/// The oldest that workers run on.
const OLDEST: Minor = (3, 9);

/// No Python to build on: which one was asked for and where, and what would help.
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
        (what, format!("install one, widen requires-python, or {}", self.download()))
    }

    /// `python` under `[environment]` names an interpreter that does not work.
    pub(super) fn no_configured_python(&self, python: &Setting<String>) -> (String, String) {
        let (python, place) = (&python.value, place_of(&python.origin));
        let what = format!("python = \"{python}\" ({place}): no such Python works here{}", self.found());
        if python.contains('/') {
            return (what, "correct or remove that line".to_owned());
        }
        (what, format!("correct or remove that line, install that Python, or {}", self.download()))
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

    /// How uv can download one: without the variable that forbids it, or from where it can be reached.
    fn download(&self) -> String {
        if self.reason.contains("Failed to download") {
            let proxy = self.settings.first_of(PROXIES);
            let proxy = proxy.map_or("set HTTPS_PROXY or".to_owned(), |set| format!("correct {set} or set"));
            return format!("{proxy} UV_PYTHON_INSTALL_MIRROR under [environment.env] in hostler.toml");
        }
        let forbidding = [
            ("UV_OFFLINE", ["1", "true", "yes", "on", "y", "t"].as_slice()),
            ("UV_PYTHON_DOWNLOADS", ["never", "manual", "false", "0"].as_slice()),
        ];
        let set = forbidding.iter().find_map(|(name, values)| {
            self.settings.first_of(&[name]).filter(|set| values.contains(&set.value.to_ascii_lowercase().as_str()))
        });
        match set {
            Some(set) => format!("unset {} ({}) to let uv download one", set.name, set.place),
            None => "let uv download one".to_owned(),
        }
    }
}

/// Packages without a wheel for this Python.
impl Failure<'_> {
    /// `Python 3.14`, or `this Python` where uv did not come so far.
    pub(super) fn chosen_python(&self) -> String {
        self.chosen.map_or("this Python".to_owned(), |(major, minor)| format!("Python {major}.{minor}"))
    }

    /// ` (requires-python = "<3.14")`: an example of an older Python.
    pub(super) fn older_python(&self) -> String {
        self.chosen.map(|(major, minor)| format!(" (requires-python = \"<{major}.{minor}\")")).unwrap_or_default()
    }

    /// `3.10 to 3.13`: the Pythons whose wheels uv saw.
    pub(super) fn python_tags(&self) -> Option<String> {
        let (first, last) = self.tags()?;
        let written = |(major, minor): Minor| format!("{major}.{minor}");
        Some(if first == last { written(first) } else { format!("{} to {}", written(first), written(last)) })
    }

    /// The Python that uv looked for wheels of, from its ``You require CPython 3.15 (`cp315`)``.
    pub(super) fn tagged_python(&self) -> Option<String> {
        let version = self.reason.split("You require CPython ").nth(1)?.split(' ').next()?;
        minor_of(version).map(|(major, minor)| format!("{major}.{minor}"))
    }

    /// What to write for a Python that there are wheels for, where the chosen one is set.
    pub(super) fn choose_tagged(&self) -> Option<String> {
        let (first, (major, last)) = self.tags()?;
        let (from, until) = (first.max(OLDEST), last + 1);
        if (major, last) < OLDEST {
            return Some("use another version or package".to_owned());
        }
        let range = format!("requires-python = \">={}.{},<{major}.{until}\"", from.0, from.1);
        let set =
            self.settings.python.as_ref().map(|set| format!("python = \"{}\" ({})", set.value, place_of(&set.origin)));
        Some(match set.or_else(|| self.settings.first_of(&["UV_PYTHON"]).map(|set| set.to_string())) {
            Some(set) => format!("correct {set}, or use another version or package"),
            None => format!("write {range}, or use another version or package"),
        })
    }

    /// The oldest and the newest Python of the wheels that uv names: ``Python ABI tags: `cp310`, `cp313`, `cp313t` ``.
    fn tags(&self) -> Option<(Minor, Minor)> {
        let listed = self.reason.split("following Python ABI tags: ").nth(1)?;
        let tags = listed.split("hint:").next()?.split('`').skip(1).step_by(2);
        let minors = tags.filter_map(|tag| {
            let (major, minor) = tag.strip_prefix("cp")?.split_at_checked(1)?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        });
        let (first, last) = minors.fold((None, None), |(first, last): (Option<Minor>, Option<Minor>), minor| {
            (first.map_or(Some(minor), |first| Some(first.min(minor))), last.max(Some(minor)))
        });
        first.zip(last)
    }
}
