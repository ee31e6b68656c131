//! Mistakes in `hostler.toml`: what cannot be read, what names something that does not exist, what has no effect.

use std::path::Path;

use super::{FileReport, Finding, Interpreters, Report, rule};
use crate::config::icon::resolved;
use crate::config::origin::{Diagnosis, Origin, Place, Setting};
use crate::config::secrets::SecretSource;
use crate::config::tool::Protocol;
use crate::config::{Config, ConfigError, EffectiveTool};
use crate::discovery::{Kind, ToolFile};

/// The findings of a configuration that could not be read.
pub fn settings(error: &ConfigError) -> Report {
    let mut report = Report::default();
    match error {
        ConfigError::Unreadable { path, error, fix } => {
            let findings = vec![Finding::new(&rule::SETTINGS, None, format!("cannot be read: {error}"), *fix)];
            report.files.push(FileReport::without_text(Path::new(path), findings));
        }
        ConfigError::Problems(problems) => {
            for problem in problems {
                let key = if problem.key.is_empty() { String::new() } else { format!("`{}`: ", problem.key) };
                report.add(&problem.place, &rule::SETTINGS, key + &problem.what, problem.fix.clone());
            }
        }
    }
    report
}

impl Report {
    /// Adds everything that a configuration names and that does not exist. `secret_problem` says what is wrong with a secret's
    /// file, and what to do.
    pub fn configuration(
        &mut self,
        config: &Config,
        machine: &Interpreters,
        secret_problem: impl Fn(&str, &Path) -> Option<(String, String)>,
    ) {
        self.programs(config, machine);
        self.written_secrets(config);
        if let Some(Setting { origin: Origin::File(place), .. }) = &config.builtin.roots {
            for (root, why) in config.builtin.reached() {
                let Some(why) = why else { continue };
                let message = format!("`builtin.roots`: {} {why}", root.display());
                self.add(place, &rule::ABSENT_ROOT, message, "create the folder, or correct the path");
            }
        }
        for (name, Setting { value, origin }) in &config.secrets {
            if let (SecretSource::File(path), Origin::File(place)) = (value, origin)
                && let Some((message, fix)) = secret_problem(name, path)
            {
                self.add(place, &rule::SECRET_FILE, message, fix);
            }
        }
        if let Some(Setting { value: names, origin: Origin::File(place) }) = &config.ignore {
            for (message, fix) in names.iter().filter_map(|name| super::unknown_rule(name)) {
                self.add(place, &rule::UNKNOWN_RULE, message, fix);
            }
        }
    }

    /// The uv and the Python under `[environment]`. Nothing is started.
    fn programs(&mut self, config: &Config, machine: &Interpreters) {
        let fix = "correct the path, or remove the line";
        if let Some(Setting { value, origin: Origin::File(place) }) = &config.uv
            && config.environment.find_program(value).is_none()
        {
            let message = format!("`environment.uv`: \"{}\" is not a program", value.display());
            self.add(place, &rule::ABSENT_PROGRAM, message, fix);
        }
        let Some(Setting { value, origin: Origin::File(place) }) = &config.python else { return };
        let mut numbers = value.split('.').map_while(|part| part.parse().ok());
        let minor = numbers.next().zip(numbers.next());
        if value.contains('/') && !Path::new(value).exists() {
            let message = format!("`environment.python`: \"{value}\" does not exist");
            self.add(place, &rule::ABSENT_PROGRAM, message, fix);
        } else if minor.is_some_and(|minor| !machine.0.is_empty() && !machine.0.contains(&minor)) {
            let message = format!("no interpreter here is Python {value} (found: {})", machine.list());
            let fix = format!(
                "install it (`uv python install {value}`), let uv download it at the first call, or correct the line"
            );
            self.add(place, &rule::PYTHON_ABSENT, message, fix);
        }
    }

    /// Adds settings that match no tool, with their places.
    pub fn unused(&mut self, unused: &[(Place, Diagnosis)]) {
        for (place, Diagnosis { what, fix }) in unused {
            self.add(place, &rule::UNUSED_SETTINGS, what.clone(), fix.clone());
        }
    }

    /// Adds icons that cannot be sent, each in the file that sets it.
    pub(super) fn icons(&mut self, file: &ToolFile, own: &mut FileReport, config: &Config) {
        let settings = super::effective(file, config);
        for function in &file.functions {
            let icon = config.function(&file.pack, &function.name, &settings, function.declared.as_deref()).icon;
            let Some(icon) = icon else { continue };
            let Err(Diagnosis { what, fix }) = resolved(&icon, &file.path) else { continue };
            let line = match &icon.origin {
                Origin::File(place) => {
                    self.add(place, &rule::ICON, what, fix);
                    continue;
                }
                Origin::Header(place) => place.line,
                _ => function.line,
            };
            let range = (line > 0).then(|| own.text.range_of_line(line));
            own.findings.push(Finding::new(&rule::ICON, range, what, fix));
        }
    }

    /// Adds settings of a pack that have no effect on a file of its kind.
    pub(super) fn without_effect(&mut self, file: &ToolFile, config: &Config) {
        let Some(pack) = config.packs.get(&file.pack) else { return };
        let of_programs = [
            ("output", pack.output.as_ref().map(|set| &set.origin)),
            ("input_option", pack.input_option.as_ref().map(|set| &set.origin)),
            ("ask", pack.ask.as_ref().map(|set| &set.origin)),
        ];
        let of_python = [
            ("serve", pack.serve.as_ref().map(|set| &set.origin)),
            ("dependencies", pack.needs.dependencies.as_ref().map(|set| &set.origin)),
            ("requires-python", pack.needs.requires_python.as_ref().map(|set| &set.origin)),
            ("python_path", pack.needs.python_path.as_ref().map(|set| &set.origin)),
            ("args", pack.needs.args.as_ref().map(|set| &set.origin)),
        ];
        let is_python = matches!(file.kind, Kind::Python | Kind::Internal);
        let unused: &[_] = if is_python { &of_programs } else { &of_python };
        for (key, origin) in unused {
            let Some(place) = origin.and_then(Origin::place) else { continue };
            let (kind, other) =
                if is_python { ("a Python file", "programs") } else { ("no Python file", "Python files") };
            let message = format!("`{key}` has no effect on {}, which is {kind}", file.pack);
            self.add(place, &rule::UNUSED_SETTINGS, message, format!("remove it: it is for {other}"));
        }
        if let (Some(set), false, true) = (&pack.served_as, is_python, file.functions.len() > 1)
            && let Some(place) = set.origin.place()
        {
            let message = format!("`as` has no effect on {}, which has several tools", file.pack);
            let fix = format!("write it under [tool.\"{}.NAME\"], for each tool", file.pack);
            self.add(place, &rule::UNUSED_SETTINGS, message, fix);
        }
    }

    /// Adds settings of single tools that contradict each other.
    pub(super) fn tool_settings(&mut self, tools: &[(String, EffectiveTool)]) {
        let mut seen: Vec<(Place, usize)> = Vec::new();
        for (pack, settings) in tools {
            let Setting { value: concurrency, origin } = &settings.concurrency;
            let is_bare = settings.protocol.as_ref().is_some_and(|protocol| protocol.value == Protocol::Bare);
            if let (Origin::File(place) | Origin::Header(place), true) = (origin, is_bare && *concurrency > 1) {
                let message =
                    format!("`concurrency = {concurrency}` keeps {pack} from starting: `bare` is one call at a time");
                let fix = format!(
                    "write `concurrency = 1` under [tool.{pack}], and `max_workers = {concurrency}` for parallel calls"
                );
                self.add(place, &rule::SETTINGS, message, fix);
            }
            let (min, max) = (&settings.min_workers, &settings.max_workers);
            let Origin::File(place) = &min.origin else { continue };
            if min.value > max.value && !seen.contains(&(place.clone(), max.value)) {
                seen.push((place.clone(), max.value));
                let message = format!(
                    "`min_workers = {}` is more than `max_workers = {}` of {pack} ({})",
                    min.value, max.value, max.origin
                );
                let fix = format!("raise `max_workers` to {}, or write `min_workers = {}`", min.value, max.value);
                self.add(place, &rule::UNUSED_SETTINGS, message, fix);
            }
        }
    }
}
