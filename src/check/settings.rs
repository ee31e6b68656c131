//! Mistakes of `hostler.toml`, as findings.

use std::path::{Path, PathBuf};

use super::{FileReport, Finding, Report, Rule, Text, rule};
use crate::config::origin::{Origin, Place, Setting};
use crate::config::section::Problem;
use crate::config::tool::Protocol;
use crate::config::{Config, ConfigError, EffectiveTool};

/// What is wrong with a configuration that could not be read.
pub fn settings(error: &ConfigError) -> Report {
    let mut report = Report::default();
    match error {
        ConfigError::Unreadable { path, error, fix } => {
            let findings = vec![Finding::new(&rule::SETTINGS, None, format!("cannot be read: {error}"), *fix)];
            report.files.push(FileReport { path: PathBuf::from(path), text: Text::new(String::new()), findings });
        }
        ConfigError::Problems(problems) => {
            for problem in problems {
                report.add(&problem.place, |text| of_problem(problem, text));
            }
        }
    }
    report
}

fn of_problem(problem: &Problem, text: &Text) -> Finding {
    let message =
        if problem.key.is_empty() { problem.what.clone() } else { format!("`{}`: {}", problem.key, problem.what) };
    Finding::new(&rule::SETTINGS, text.range_of_line(problem.place.line), message, problem.fix.clone())
}

impl Report {
    /// Adds what was found about settings that fit no tool: where they stand, and a sentence.
    pub fn unused(&mut self, unused: &[(Option<Place>, String)]) {
        for (place, sentence) in unused {
            let Some(place) = place else { continue };
            let (message, fix) = super::halves(sentence);
            self.add(place, |text| {
                Finding::new(&rule::UNUSED_SETTINGS, text.range_of_line(place.line), message.clone(), fix.clone())
            });
        }
    }

    /// Adds what tools' own settings overrule: never more workers are kept than there may be.
    pub(super) fn overruled(&mut self, tools: Vec<(String, EffectiveTool)>) {
        let mut told: Vec<(Place, usize)> = Vec::new();
        for (pack, settings) in tools {
            let (min, max) = (&settings.min_workers, &settings.max_workers);
            let Origin::File(place) = &min.origin else { continue };
            let known = (place.clone(), max.value);
            if min.value <= max.value || told.contains(&known) {
                continue;
            }
            told.push(known);
            let message = format!(
                "`min_workers = {}` is more than the `max_workers = {}` of {pack} ({}): no more than that are kept",
                min.value, max.value, max.origin
            );
            let more = match &max.origin {
                Origin::File(_) => format!("raise that to {}", min.value),
                _ => format!("write `max_workers = {}` beside it", min.value),
            };
            let fix = format!("{more}, or write `min_workers = {}`", max.value);
            self.add(place, |text| Finding::new(&rule::UNUSED_SETTINGS, text.range_of_line(place.line), message, fix));
        }
    }

    /// Adds the tools that nobody could start, as more is asked of them at once than the bare dialect can.
    pub(super) fn crowded(&mut self, tools: &[(String, EffectiveTool)]) {
        for (pack, settings) in tools {
            let Setting { value, origin: Origin::File(place) | Origin::Header(place) } = &settings.concurrency else {
                continue;
            };
            let is_bare = settings.protocol.as_ref().is_some_and(|protocol| protocol.value == Protocol::Bare);
            if *value > 1 && is_bare {
                let message =
                    format!("`concurrency = {value}` keeps {pack} from being started: `bare` is one call at a time");
                let fix = format!(
                    "write `concurrency = 1` under [tool.{pack}], and `max_workers = {value}` if calls are to run side by side"
                );
                self.add(place, |text| Finding::new(&rule::SETTINGS, text.range_of_line(place.line), message, fix));
            }
        }
    }

    /// Adds what `[check] ignore` names and is no rule.
    pub fn unknown_rules(&mut self, config: &Config) {
        let Some(Setting { value: names, origin: Origin::File(place) }) = &config.layer.ignore else { return };
        for name in names.iter().filter(|name| Rule::named(name).is_none()) {
            self.add(place, |text| super::unknown_rule(name, text, place.line));
        }
    }

    /// Names a configuration file that was looked at.
    pub fn looked_at(&mut self, path: &Path) {
        if !self.files.iter().any(|file| file.path == path) {
            let text = Text::new(std::fs::read_to_string(path).unwrap_or_default().replace("\r\n", "\n"));
            self.files.insert(0, FileReport { path: path.to_owned(), text, findings: Vec::new() });
        }
    }

    pub(super) fn add(&mut self, place: &Place, finding: impl FnOnce(&Text) -> Finding) {
        self.looked_at(&place.file);
        if let Some(file) = self.files.iter_mut().find(|file| file.path == *place.file) {
            let finding = finding(&file.text);
            file.findings.push(finding);
            file.findings.sort_by_key(|finding| finding.range.as_ref().map(|range| range.start));
        }
    }
}
