//! `hostler check [PATH]…`

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Group, Level as Weight, Renderer, Snippet};
use serde_json::{Value, json};

use super::options::Check;
use super::style::{self, Refusal};
use crate::builtin::Builtins;
use crate::check::{FileReport, Finding, Interpreters, Level, RULES, Report, Surroundings, check, settings};
use crate::config::{Config, ConfigOptions, environment};
use crate::discovery::{Cache, ToolFile};
use crate::environment::{EnvironmentSpec, UV_PYTHON, installed_modules};
use crate::runtime::Workspace;
use crate::secrets::trouble_of_secret;
use crate::words::plural;

const FOUND: u8 = 1;

pub(super) fn run(args: &Check, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, Refusal> {
    if args.rules {
        rules(args.json);
        return Ok(ExitCode::SUCCESS);
    }
    let (configs, paths): (Vec<PathBuf>, Vec<PathBuf>) = args
        .paths
        .iter()
        .map(|path| directory.join(path))
        .partition(|path| path.extension().is_some_and(|extension| extension == "toml"));
    if let Some(missing) = paths.iter().chain(&configs).find(|path| !path.exists()) {
        return Err(Refusal::new(format!("{} does not exist", missing.display()), "pass tool files or folders"));
    }
    let wanted =
        ConfigOptions { config: configs.into_iter().next().or_else(|| wanted.config.clone()), ..wanted.clone() };
    let report = match Config::load(&wanted, directory) {
        Ok(config) => look(config, &args.paths, &paths),
        Err(error) => settings(&error),
    };
    if args.json {
        style::answer_json(&as_json(&report, directory));
    } else {
        let text = as_text(&report, directory);
        if !text.is_empty() {
            style::answer(&text);
        }
        style::note(&summary(&report));
    }
    Ok(ExitCode::from(if report.findings().next().is_none() { 0 } else { FOUND }))
}

/// Checks the given paths, or everything that is configured.
fn look(config: Config, args: &[PathBuf], paths: &[PathBuf]) -> Report {
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = if args.is_empty() {
        (config.tools.value.clone(), Vec::new())
    } else {
        paths.iter().cloned().partition(|path| path.is_dir())
    };
    let surroundings = surroundings(config.clone());
    let mut report = check(&folders, &files, &surroundings);
    // Settings concern the configured folders, not a single file.
    if files.is_empty() && (args.is_empty() || paths.is_empty()) {
        config.files.iter().for_each(|path| report.looked_at(path));
        report.configuration(&config, &surroundings.interpreters, trouble_of_secret);
        report.unused(&Workspace::build(config).unmatched_settings());
    }
    report
}

/// What the rules need to know of this machine.
pub(super) fn surroundings(config: Config) -> Surroundings {
    let built_in = Builtins::of(&config).files();
    let known = Cache::below(&environment::cache(&config.environment));
    let interpreters = Interpreters::of_this_machine(&config.environment);
    Surroundings { config, interpreters, installed, built_in, known }
}

fn installed(config: &Config, file: &ToolFile) -> Option<BTreeSet<String>> {
    let spec = EnvironmentSpec::from_header(&file.pack, &file.path, file.header.as_ref()?);
    let set = config.python.as_ref().or_else(|| config.build_env.get(UV_PYTHON)).map(|set| set.value.as_str());
    let python = set.or_else(|| config.environment.text(UV_PYTHON)).filter(|python| !python.is_empty());
    installed_modules(&environment::cache(&config.environment), &spec, python)
}

fn rules(json: bool) {
    if json {
        let rules = RULES.iter().map(|rule| json!({"name": rule.name, "level": rule.level, "why": rule.why}));
        return style::answer_json(&rules.collect::<Value>());
    }
    let rows = RULES.iter().map(|rule| vec![rule.name.to_owned(), word(rule.level).to_owned(), rule.why.to_owned()]);
    style::answer(&style::table(&rows.collect::<Vec<_>>(), style::terminal_width()));
}

const fn word(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warning => "warning",
    }
}

fn summary(report: &Report) -> String {
    let errors = report.findings().filter(|(_, finding)| finding.level == Level::Error).count();
    let warnings = report.findings().count() - errors;
    let files = plural(report.files.len(), "file");
    if report.files.is_empty() {
        let below = report.server_below.as_deref();
        let fix = below.unwrap_or("pass a folder with --tools DIR, or put Python files or executables into ./tools");
        return format!("{files} checked: {fix}");
    }
    let below = report.server_below.as_ref().map(|below| format!("; {below}")).unwrap_or_default();
    if errors + warnings == 0 {
        return format!("{files} checked, no problems{below}");
    }
    let bad = report.files.iter().filter(|file| !file.findings.is_empty()).count();
    format!("{} and {} in {bad} of {files}{below}", plural(errors, "error"), plural(warnings, "warning"))
}

pub(super) fn as_text(report: &Report, directory: &Path) -> String {
    let colours = style::colours(&std::io::stdout());
    let width = style::terminal_width().unwrap_or(140);
    let renderer = if colours { Renderer::styled() } else { Renderer::plain() }.term_width(width);
    report.findings().map(|(file, finding)| rendered(&renderer, file, finding, directory) + "\n\n").collect()
}

fn rendered(renderer: &Renderer, file: &FileReport, finding: &Finding, directory: &Path) -> String {
    let weight = match finding.level {
        Level::Error => Weight::ERROR,
        Level::Warning => Weight::WARNING,
    };
    let [path, message, fix] =
        [&shown(&file.path, directory), &finding.message, &finding.fix].map(|text| style::plain(text));
    let mut group = Group::with_title(weight.primary_title(message.as_str()).id(finding.rule.name));
    let source = without_secrets(file);
    group = match &finding.range {
        Some(range) => group.element(
            Snippet::source(source.as_str())
                .path(path.as_str())
                .annotation(AnnotationKind::Primary.span(range.clone())),
        ),
        None => group.element(annotate_snippets::Origin::path(path.as_str())),
    };
    if !finding.fix.is_empty() {
        group = group.element(Weight::HELP.message(fix.as_str()));
    }
    renderer.render(&[group])
}

/// A file's text with stars in place of secrets, because output is copied and logged.
fn without_secrets(file: &FileReport) -> String {
    let mut bytes = file.text.source.clone().into_bytes();
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
    for range in
        file.findings.iter().filter(|one| one.rule.name == "written-secret").filter_map(|one| one.range.clone())
    {
        let Some(literal) = bytes.get_mut(range) else { continue };
        let begin = literal.iter().position(is_quote).map_or(0, |at| at + 1);
        let end = literal.iter().rposition(is_quote).unwrap_or(literal.len()).max(begin);
        literal[begin..end].iter_mut().filter(|byte| **byte != b'\n' && !is_quote(byte)).for_each(|byte| *byte = b'*');
    }
    String::from_utf8(bytes).unwrap_or_default()
}

/// A path relative to this directory, if it is below it.
fn shown(path: &Path, directory: &Path) -> String {
    path.strip_prefix(directory).unwrap_or(path).display().to_string()
}

fn as_json(report: &Report, directory: &Path) -> Value {
    let one = |(file, finding): (&FileReport, &Finding)| {
        let place = |offset: usize| file.text.position(offset);
        let (from, to) = finding.range.clone().map(|range| (place(range.start), place(range.end))).unzip();
        json!({
            "rule": finding.rule.name,
            "level": finding.level,
            "file": shown(&file.path, directory),
            "line": from.map(|from| from.0),
            "column": from.map(|from| from.1),
            "end_line": to.map(|to| to.0),
            "end_column": to.map(|to| to.1),
            "message": finding.message,
            "fix": finding.fix,
        })
    };
    report.findings().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::check;

    #[test]
    fn findings_read_as_in_the_gallery() {
        let here = std::env::current_dir().unwrap();
        let folder = here.join("tests/check/tools");
        let wanted = ConfigOptions { tools: vec![folder.clone()], ..ConfigOptions::default() };
        let config = Config::load(&wanted, &here.join("tests/check")).unwrap();
        let interpreters = Interpreters([(3, 9), (3, 11)].into());
        let mut report = check(
            &[folder],
            &[],
            &Surroundings {
                config: config.clone(),
                interpreters,
                installed: |_, _| None,
                built_in: Vec::new(),
                known: None,
            },
        );
        report.configuration(&config, &Interpreters::default(), |_, _| None);
        report.unused(&Workspace::build(config).unmatched_settings());
        insta::assert_snapshot!(as_text(&report, &here).replace(&here.display().to_string(), "HERE"));
    }

    #[test]
    fn mistakes_in_the_configuration_are_findings_too() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hostler.toml");
        std::fs::write(&path, "tools = 3\n\n[limts]\nmax_output = \"1MB\"\n").unwrap();
        let wanted = ConfigOptions { config: Some(path), ..ConfigOptions::default() };
        let report = settings(&Config::load(&wanted, folder.path()).unwrap_err());
        insta::assert_snapshot!(as_text(&report, folder.path()));
    }
}
