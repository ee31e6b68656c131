//! `check`: what is wrong with tool files and their configuration, told as a compiler tells it. Reads files and nothing
//! else: no tool runs, no interpreter starts, no network is asked.

mod credentials;
mod executables;
mod file;
mod functions;
mod guards;
mod imported;
mod imports;
mod interpreters;
mod names;
mod namesakes;
mod newer;
mod programs;
mod rule;
mod settings;
mod text;
mod variables;

use std::collections::{BTreeSet, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

pub use interpreters::Interpreters;
pub use rule::{Level, RULES, Rule};
pub use settings::settings;
pub use text::Text;

use crate::config::section::nearest;
use crate::config::{Config, EffectiveTool};
use crate::discovery::{
    Answers, Cache, FolderProblem, Kind, Status, ToolFile, read_tool, resolve_collisions, resolve_overrides, scan_all,
};

/// One thing that is wrong.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule it breaks.
    pub rule: &'static Rule,
    /// How bad it is: as bad as the rule says, or less where it is not certain.
    pub level: Level,
    /// The bytes of the text it is about; none when it is about the whole file.
    pub range: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

/// What is wrong in one file.
#[derive(Debug)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Its text, as far as it could be read.
    pub text: Text,
    /// What is wrong, in the order of the text.
    pub findings: Vec<Finding>,
}

/// What the rules need to know of the world.
pub struct Surroundings {
    /// The configuration in force; for settings of tools.
    pub config: Config,
    /// The interpreters of this machine.
    pub interpreters: Interpreters,
    /// The modules of a file's environment, where it is built already.
    pub installed: fn(&Config, &ToolFile) -> Option<BTreeSet<String>>,
    /// The tools that are part of this program and on.
    pub built_in: Vec<ToolFile>,
    /// Where it is kept what executables said of themselves: none is run to be checked.
    pub known: Option<Cache>,
}

/// What was looked at, and what is wrong with it.
#[derive(Debug, Default)]
pub struct Report {
    /// Every file that was looked at, those without findings too.
    pub files: Vec<FileReport>,
}

impl Report {
    /// Everything that is wrong.
    pub fn findings(&self) -> impl Iterator<Item = (&FileReport, &Finding)> {
        self.files.iter().flat_map(|file| file.findings.iter().map(move |finding| (file, finding)))
    }
}

impl Finding {
    fn new(
        rule: &'static Rule,
        range: impl Into<Option<Range<usize>>>,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        Self { rule, level: rule.level, range: range.into(), message: message.into(), fix: fix.into() }
    }

    /// The same, and not certain.
    fn doubtful(self) -> Self {
        Self { level: Level::Warning, ..self }
    }
}

/// Checks folders of tools, and files one by one.
pub fn check(folders: &[PathBuf], files: &[PathBuf], surroundings: &Surroundings) -> Report {
    let mut scan = scan_all(folders, surroundings.known.as_ref(), &Answers::default());
    scan.files.iter_mut().for_each(executables::assume);
    let before: Vec<ToolFile> = scan.files.iter().chain(&surroundings.built_in).cloned().collect();
    resolve_overrides(&mut scan.files);
    // A file that was named is checked even if no folder would list it.
    let listed: HashSet<PathBuf> = scan.files.iter().map(|file| file.path.clone()).collect();
    let named = files.iter().filter(|path| !listed.contains(*path)).map(|path| read_tool(path));
    scan.files.extend(named);
    scan.files.iter_mut().for_each(executables::assume);
    let claims = collisions(&scan.files);
    let displaced = namesakes::displaced(&before, &scan.files);

    let mut report = Report::default();
    let problems = scan.problems.iter().filter(|problem| problem.matters(&surroundings.config.tools.origin));
    report.files.extend(problems.map(|problem| folder_report(problem, &surroundings.config)));
    for (file, claim) in scan.files.iter().zip(&claims) {
        let settings = effective(file, &surroundings.config);
        let mut one = match file.kind {
            Kind::Executable => executables::check(file),
            _ => file::check(file, &settings, surroundings),
        };
        one.findings.extend(displaced.get(&file.path).into_iter().flatten().cloned());
        one.findings.extend(collision(claim, &one.text));
        finish(&mut one, &surroundings.config);
        report.files.push(one);
    }
    for mut one in folders.iter().flat_map(|folder| executables::without_leave(folder)) {
        finish(&mut one, &surroundings.config);
        report.files.extend(Some(one).filter(|one| !one.findings.is_empty()));
    }
    let tools = scan.files.iter().map(|file| (file.pack.clone(), effective(file, &surroundings.config)));
    let tools: Vec<_> = tools.collect();
    report.crowded(&tools);
    report.overruled(tools);
    // A helper that is no Python breaks every file that imports it.
    let known: HashSet<&PathBuf> = scan.files.iter().map(|file| &file.path).collect();
    let helpers: BTreeSet<&PathBuf> =
        scan.files.iter().flat_map(|file| &file.helpers).filter(|path| !known.contains(path)).collect();
    report.files.extend(helpers.into_iter().filter_map(|path| file::check_helper(path)));
    report
}

/// What every file's names would come to if nothing else were wrong with any of them.
fn collisions(files: &[ToolFile]) -> Vec<Status> {
    let mut sound: Vec<ToolFile> = files.to_vec();
    for file in &mut sound {
        file.status = Status::Ready;
    }
    resolve_collisions(&mut sound);
    sound.into_iter().map(|file| file.status).collect()
}

fn effective(file: &ToolFile, config: &Config) -> EffectiveTool {
    let wishes = file.declared.layer();
    let layer = file.header.as_ref().map_or(&wishes, |header| &header.layer);
    config.tool(&file.pack, Some(layer), file.kind == Kind::Internal)
}

fn folder_report(problem: &FolderProblem, config: &Config) -> FileReport {
    let (message, fix) = halves(&problem.describe(&config.tools.origin));
    let findings = vec![Finding::new(&rule::UNREADABLE, None, message, fix)];
    FileReport { path: problem.folder.clone(), text: Text::new(String::new()), findings }
}

fn collision(claim: &Status, text: &Text) -> Option<Finding> {
    let Status::Broken { line, reason } = claim else { return None };
    let (message, fix) = halves(reason);
    Some(Finding::new(&rule::NAME, line.map(|line| text.range_of_line(line)), message, fix))
}

/// Sentences say what is wrong, then `;`, then what to do.
fn halves(sentence: &str) -> (String, String) {
    match sentence.split_once("; ") {
        Some((what, fix)) => (what.to_owned(), fix.to_owned()),
        None => (sentence.to_owned(), String::new()),
    }
}

/// Puts the findings in order and takes out those that somebody does not want to hear.
fn finish(report: &mut FileReport, config: &Config) {
    let FileReport { text, findings, .. } = report;
    findings.retain(|finding| {
        let line = finding.range.as_ref().map(|range| text.line_of(range.start));
        let here = line.is_some_and(|line| ignored_on(text.line(line)).any(|name| name == finding.rule.name));
        !here && !config.layer.ignore.iter().any(|names| names.value.iter().any(|name| name == finding.rule.name))
    });
    findings.extend(unknown_ignores(text));
    findings.sort_by_key(|finding| (finding.range.as_ref().map(|range| range.start), finding.level));
    findings.dedup_by(|later, first| {
        later.rule == first.rule && later.range == first.range && later.message == first.message
    });
}

const IGNORE: &str = "hostler: ignore[";

/// The rules that a line switches off for itself: `# hostler: ignore[missing-hint]`.
fn ignored_on(line: &str) -> impl Iterator<Item = &str> {
    let comment = line.split_once('#').map_or("", |(_, comment)| comment);
    let inside = comment.split_once(IGNORE).and_then(|(_, rest)| rest.split_once(']')).map_or("", |(inside, _)| inside);
    inside.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn unknown_ignores(text: &Text) -> Vec<Finding> {
    let lines = text.source.lines().enumerate().filter(|(_, line)| line.contains(IGNORE));
    let names = lines.flat_map(|(index, line)| ignored_on(line).map(move |name| (index + 1, name)));
    names.filter(|(_, name)| Rule::named(name).is_none()).map(|(line, name)| unknown_rule(name, text, line)).collect()
}

fn unknown_rule(name: &str, text: &Text, line: usize) -> Finding {
    let near = nearest(name, RULES.iter().map(|rule| rule.name));
    let fix = near.map_or("`hostler check --rules` shows them".to_owned(), |near| format!("did you mean `{near}`?"));
    Finding::new(&rule::UNKNOWN_RULE, text.range_of_line(line), format!("there is no rule `{name}`"), fix)
}

/// The folder a file's neighbours lie in.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests;
