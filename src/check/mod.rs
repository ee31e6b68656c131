//! `check`: mistakes in tool files and their configuration, each with its place. It reads files and nothing else: no tool
//! runs, no interpreter starts, no network is used.
//!
//! A rule belongs here when the mistake matters because of hostler; what a linter finds anywhere does not.

mod code;
mod file;
mod folders;
mod imports;
mod interpreters;
mod program;
mod report;
mod rule;
mod settings;
mod written;

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

pub use folders::open_to_others;
pub use interpreters::Interpreters;
pub use report::{FileReport, Finding, Report, Text};
pub use rule::{Level, RULES, Rule};
pub use settings::settings;

use crate::config::origin::Diagnosis;
use crate::config::section::nearest;
use crate::config::{Config, EffectiveTool};
use crate::discovery::{
    Answers, Cache, FolderProblem, Kind, Status, ToolFile, look_beside, read_tool, resolve_collisions,
    resolve_overrides, scan_all, server_below,
};

/// What the rules need beside the files.
pub struct Surroundings {
    /// The effective configuration.
    pub config: Config,
    /// The interpreters of this machine.
    pub interpreters: Interpreters,
    /// The modules of a file's environment, where it is built already.
    pub installed: fn(&Config, &ToolFile) -> Option<BTreeSet<String>>,
    /// The enabled built-in tools.
    pub built_in: Vec<ToolFile>,
    /// Stored descriptions of executables, which are not run here.
    pub known: Option<Cache>,
}

/// Checks folders of tools, and single files.
pub fn check(folders: &[PathBuf], files: &[PathBuf], surroundings: &Surroundings) -> Report {
    let mut scan = scan_all(folders, surroundings.known.as_ref(), &Answers::default());
    scan.files.iter_mut().for_each(|file| file.decide_asking(&surroundings.config));
    scan.files.iter_mut().for_each(file::assume);
    let before: Vec<ToolFile> = scan.files.iter().chain(&surroundings.built_in).cloned().collect();
    resolve_overrides(&mut scan.files);
    // A file that was named is checked even if no folder would list it.
    let listed: HashSet<PathBuf> = scan.files.iter().map(|file| file.path.clone()).collect();
    let named = files.iter().filter(|path| !listed.contains(*path)).map(|path| {
        let mut file = read_tool(path);
        look_beside(&mut file);
        file
    });
    scan.files.extend(named);
    scan.files.iter_mut().for_each(file::assume);
    let config = &surroundings.config;
    for file in &mut scan.files {
        file.configure(config);
        file.rename(config);
    }
    let claims = collisions(&scan.files);
    let mut report = Report { server_below: server_below(&scan.below), ..Report::default() };
    let problems = scan.problems.iter().filter(|problem| problem.matters(&config.tools.origin));
    report.files.extend(problems.map(|problem| folder_report(problem, config)));
    for folder in folders {
        let Some(Diagnosis { what, fix }) = open_to_others(folder) else { continue };
        let mut one = FileReport::without_text(folder, vec![Finding::new(&rule::OPEN_FOLDER, None, what, fix)]);
        finish(&mut one, config);
        report.files.extend(Some(one).filter(|one| !one.findings.is_empty()));
    }
    for (file, claim) in scan.files.iter().zip(&claims) {
        let mut one = match file.kind {
            Kind::Executable => {
                file::check_executable(file, config.packs.get(&file.pack).is_some_and(|pack| pack.ask.is_some()))
            }
            _ => file::check(file, &effective(file, config), surroundings),
        };
        report.icons(file, &mut one, config);
        report.without_effect(file, config);
        one.findings.extend(displaced(file, &before));
        one.findings.extend(file::name_problem(&claim.status, &rule::NAME, &one.text));
        one.findings.extend(claim.left_out.iter().map(|function| file::left_out(function, &one.text)));
        finish(&mut one, config);
        report.files.push(one);
    }
    for mut one in folders.iter().flat_map(|folder| file::not_executable(folder)) {
        finish(&mut one, config);
        report.files.extend(Some(one).filter(|one| !one.findings.is_empty()));
    }
    let tools: Vec<_> = scan.files.iter().map(|file| (file.pack.clone(), effective(file, config))).collect();
    report.tool_settings(&tools);
    // A helper that is not valid Python breaks every file that imports it.
    let known: HashSet<&PathBuf> = scan.files.iter().map(|file| &file.path).collect();
    let helpers: BTreeSet<&PathBuf> =
        scan.files.iter().flat_map(|file| &file.helpers).filter(|path| !known.contains(path)).collect();
    report.files.extend(helpers.into_iter().filter_map(|path| file::check_helper(path)));
    report
}

/// Every file as far as names decide about it.
fn collisions(files: &[ToolFile]) -> Vec<ToolFile> {
    let mut sound: Vec<ToolFile> = files.to_vec();
    for file in &mut sound {
        file.status = Status::Ready;
    }
    resolve_collisions(&mut sound);
    sound
}

fn effective(file: &ToolFile, config: &Config) -> EffectiveTool {
    let layer = file.header.as_ref().map_or(&file.declared, |header| &header.layer);
    config.tool(&file.pack, Some(layer), file.kind == Kind::Internal)
}

fn folder_report(problem: &FolderProblem, config: &Config) -> FileReport {
    let Diagnosis { what, fix } = problem.describe(&config.tools.origin);
    FileReport::without_text(&problem.folder, vec![Finding::new(&rule::UNREADABLE, None, what, fix)])
}

/// What a file hides of weaker folders: a built-in tool, or a file of another kind. Hiding one of its own kind is intended.
fn displaced(winner: &ToolFile, all: &[ToolFile]) -> Vec<Finding> {
    let is_hidden = |other: &&ToolFile| {
        let is_program = |file: &ToolFile| file.kind == Kind::Executable;
        let mut names = winner.functions.iter().map(|function| winner.names_of(function).1);
        match other.kind {
            Kind::Builtin => other.pack == winner.pack || names.any(|name| name == other.pack),
            _ => other.pack == winner.pack && is_program(other) != is_program(winner),
        }
    };
    let hidden = all.iter().filter(|other| other.rank < winner.rank).filter(is_hidden);
    let finding = |other: &ToolFile| {
        let name = &other.pack;
        let (what, also) = match other.kind {
            Kind::Builtin => {
                (format!("the built-in tool `{name}`"), format!(", or add `disable = [\"{name}\"]` under [builtin]"))
            }
            _ => (other.path.display().to_string(), String::new()),
        };
        let fix = format!("rename one of them{also}");
        Finding::new(&rule::TAKES_PLACE, None, format!("this file takes the place of {what}"), fix)
    };
    hidden.map(finding).collect()
}

/// Sorts the findings and removes ignored ones and duplicates.
fn finish(report: &mut FileReport, config: &Config) {
    let FileReport { text, findings, .. } = report;
    findings.retain(|finding| {
        let line = finding.range.as_ref().map(|range| text.line_of(range.start));
        let here = line.is_some_and(|line| ignored_on(text.line(line)).any(|name| name == finding.rule.name));
        !here && !config.ignore.iter().any(|names| names.value.iter().any(|name| name == finding.rule.name))
    });
    findings.extend(unknown_ignores(text));
    findings.sort_by_key(|finding| (finding.range.as_ref().map(|range| range.start), finding.level));
    findings.dedup_by(|later, first| {
        later.rule == first.rule && later.range == first.range && later.message == first.message
    });
}

const IGNORE: &str = "hostler: ignore[";

/// The rules that a line switches off for itself: `# hostler: ignore[shared-default]`.
fn ignored_on(line: &str) -> impl Iterator<Item = &str> {
    let comment = line.split_once('#').map_or("", |(_, comment)| comment);
    let inside = comment.split_once(IGNORE).and_then(|(_, rest)| rest.split_once(']')).map_or("", |(inside, _)| inside);
    inside.split(',').map(str::trim).filter(|name| !name.is_empty())
}

fn unknown_ignores(text: &Text) -> Vec<Finding> {
    let lines = text.source.lines().enumerate().filter(|(_, line)| line.contains(IGNORE));
    let names = lines.flat_map(|(index, line)| ignored_on(line).map(move |name| (text.range_of_line(index + 1), name)));
    let unknown = names.filter_map(|(range, name)| Some((range, unknown_rule(name)?)));
    unknown.map(|(range, (message, fix))| Finding::new(&rule::UNKNOWN_RULE, range, message, fix)).collect()
}

/// What is wrong with the name of a rule, and what to do; none where there is such a rule.
fn unknown_rule(name: &str) -> Option<(String, String)> {
    if Rule::named(name).is_some() {
        return None;
    }
    let near = nearest(name, RULES.iter().map(|rule| rule.name));
    let fix = near.map_or("`hostler check --rules` lists them".to_owned(), |near| format!("did you mean `{near}`?"));
    Some((format!("there is no rule `{name}`"), fix))
}

#[cfg(test)]
mod tests;
