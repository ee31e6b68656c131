//! Configuration files and the messages about their mistakes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::load::{Config, ConfigOptions};
use super::mode::{KnownMode, Mode};
use super::origin::{Diagnosis, Origin, Problem};
use super::section::{OPERATOR_KEYS, Source};
use super::tool::{Effects, ToolLayer};
use super::value::IdleTimeout;
use crate::pep723::Metadata;

const EXAMPLE: &str = include_str!("../../hostler.example.toml");

fn read(text: &str) -> Result<Config, Vec<Problem>> {
    let file = Arc::new(PathBuf::from("/p/hostler.toml"));
    let source = Source { file, text: text.into(), first_line: 1, is_header: false };
    Config::read(&[source], &ConfigOptions::default(), Path::new("/p"))
}

fn mistakes(text: &str) -> Vec<String> {
    read(text).unwrap_err().iter().map(ToString::to_string).collect()
}

/// What a mistake is about: its line, its key, and words that its message must have.
fn assert_mistakes(text: &str, expected: &[(usize, &str, &str)]) {
    let found = read(text).unwrap_err();
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for (problem, (line, key, words)) in found.iter().zip(expected) {
        assert_eq!((problem.place.line, problem.key.as_str()), (*line, *key), "{text}");
        assert!(problem.to_string().contains(words), "{text}: {problem}");
    }
}

#[test]
fn a_secret_in_the_place_of_a_table_is_not_shown() {
    for text in ["secrets = \"s3cret\"", "[tool.p]\nenv = \"s3cret\"", "[tool.p]\nconfig = \"s3cret\""] {
        let found = mistakes(text);
        assert!(found.iter().all(|one| one.contains("a table") && !one.contains("s3cret")), "{found:?}");
    }
}

#[test]
fn every_mistake_names_line_key_and_fix() {
    let text = "tols = []\n[tool]\ntimeout = \"5 parsecs\"\n[tool.brave]\ntiemout = 3\n[limits]\nmax_output = -1\n";
    assert_mistakes(
        text,
        &[
            (1, "tols", "did you mean `tools`?"),
            (3, "tool.timeout", "expected a duration, got \"5 parsecs\""),
            (5, "tool.brave.tiemout", "did you mean `timeout`?"),
            (7, "limits.max_output", "expected a size, got -1"),
        ],
    );
}

#[test]
fn a_typo_is_one_letter_or_two_in_long_names() {
    use crate::config::section::is_typo_of;
    for (written, meant) in
        [("API_KYE", "API_KEY"), ("api_key", "API_KEYS"), ("SHED", "SHOD"), ("E2ESECRT", "E2E_SECRET")]
    {
        assert!(is_typo_of(written, meant), "{written}");
    }
    for (written, meant) in [("API_KEY", "API_KEY"), ("AB", "AC"), ("SHED", "SHOT"), ("SHELVE", "SHOVEL")] {
        assert!(!is_typo_of(written, meant), "{written}");
    }
    assert!(!is_typo_of(&"a".repeat(201), &"a".repeat(202)), "too long to compare");
}

#[test]
fn a_key_in_the_wrong_table_is_reported_with_the_right_one() {
    assert_mistakes("[tool.a.confg]\nx = 1\n", &[(1, "tool.a.confg", "`config`")]);
    assert_mistakes("[tool.a.query]\ntimeout = \"3s\"\n", &[(1, "tool.a.query", "[tool.\"a.query\"]")]);
    assert_mistakes("[tools]\ntimeout = \"3s\"\n", &[(1, "tools", "expected a list, got a table")]);
    assert_mistakes("limits = [\"1GB\"]\n", &[(1, "limits", "[limits]")]);
    assert_mistakes("[tool]\non_schema_failure = \"skip\"\n", &[(2, "tool.on_schema_failure", "[executables]")]);
    assert_mistakes("[tool.\"a.query\"]\nmin_workers = 1\n", &[(2, "tool.a.query.min_workers", "[tool.NAME]")]);
    assert_mistakes(
        "timeout = \"3s\"\n[limits]\nidle_timeout = 3\nbuild_timeout = \"3s\"\n[check]\ntools = []\n",
        &[
            (1, "timeout", "[tool]"),
            (3, "limits.idle_timeout", "[tool]"),
            (4, "limits.build_timeout", "[environment]"),
            (6, "check.tools", "above its first [table]"),
        ],
    );
}

#[test]
fn a_diagnosis_without_advice_ends_with_what_is_wrong() {
    assert_eq!(Diagnosis::new("it is broken", "").to_string(), "it is broken");
    assert_eq!(Diagnosis::new("it is broken", "mend it").to_string(), "it is broken; mend it");
}

#[test]
fn a_header_sets_no_key_of_the_operator() {
    let file = Arc::new(PathBuf::from("/t/brave.py"));
    let untouched = header("");
    for key in OPERATOR_KEYS.into_iter().chain(["env", "config", "functions", "new_privileges"]) {
        for value in ["1", "true", "\"direct\"", "[\"HOME\"]", "{ A = \"b\" }"] {
            let text = format!("{key} = {value}\n");
            assert_eq!(header(&text), untouched, "{text}");
            let error = Metadata::from_toml(&format!("[tool.hostler]\n{text}"), 1, &file).unwrap_err().to_string();
            assert!(error.contains(key) && error.contains("[tool"), "{error}");
        }
    }
}

#[test]
fn settings_of_every_tool_hold_for_a_pack_that_sets_none() {
    let every = "timeout = 1\nquestion_timeout = 1\nstartup_timeout = 1\nidle_timeout = 1\nmax_queue = 1\nmin_workers = 1\nmax_workers = 1\n\
                 concurrency = 1\nmax_calls = 1\nmax_lifetime = 1\nmax_rss = \"1GB\"\nmax_memory = \"1GB\"\neffects = \"pure\"\n\
                 secrets = [\"KEY\"]\ncwd = \"tool\"\nlauncher = \"direct\"\nvalidate = false\nhost_access = true\nclient_access = false\npass_env = [\"HOME\"]\n\
                 version = \"1\"\nrisk_level = \"high\"\n";
    let every = read(&format!("[tool]\n{every}")).unwrap().every;
    assert_eq!(every.clone().under(ToolLayer::default()), every);
}

#[test]
fn a_table_begins_with_its_head() {
    let layer =
        read("[tool]\ntimeout = \"3s\"\nc = { timeout = \"3s\" }\n\n[tool.b]\n# mine\ntimeout = \"3s\"\n").unwrap();
    let lines: Vec<_> = layer.packs.values().map(|pack| pack.place.as_ref().map(|place| place.line)).collect();
    assert_eq!(lines, [Some(5), Some(3)]);
}

#[test]
fn what_cannot_be_a_variable_is_reported_with_its_line() {
    for (name, value) in [("\"A=B\"", "\"x\""), ("\"\"", "\"x\""), ("\"A\\u0000\"", "\"x\""), ("A", "\"x\\u0000\"")] {
        for (table, key) in [("tool.a.env", "tool.a.env."), ("environment.env", "environment.env.")] {
            let found = read(&format!("[{table}]\n{name} = {value}\n")).unwrap_err();
            assert_eq!((found.len(), found[0].place.line), (1, 2), "{found:?}");
            assert!(found[0].key.starts_with(key), "{found:?}");
        }
    }
}

#[test]
fn a_file_that_is_too_long_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    file.as_file().set_len(5 << 20).unwrap();
    let options = ConfigOptions { config: Some(file.path().to_owned()), ..ConfigOptions::default() };
    let refused = Config::load(&options, Path::new("/")).unwrap_err().to_string();
    assert!(refused.contains("4 MB"), "{refused}");
}

#[test]
fn text_that_is_not_toml_is_reported_with_its_line() {
    assert_mistakes("log = \"info\"\ntools = [\n", &[(2, "", "not valid TOML")]);
}

#[test]
fn a_python_that_cannot_exist_is_a_mistake() {
    for version in ["3.77", "4.1", "3.8.10", "2.7"] {
        assert_mistakes(&format!("[environment]\npython = \"{version}\"\n"), &[(2, "environment.python", version)]);
    }
    for wish in ["3.12", "3", "3.9.18", "3.13t", ">=3.11", "cpython@3.12", "312", "/opt/3.77/bin/python", "python3"] {
        assert!(read(&format!("[environment]\npython = \"{wish}\"\n")).is_ok(), "{wish}");
    }
}

#[test]
fn a_secret_in_the_file_itself_is_refused() {
    let messages = mistakes("[secrets]\nKEY = \"s3cret\"\n");
    assert!(messages[0].contains("write KEY = { env = \"VARIABLE\" }"), "{messages:?}");
    assert!(!messages[0].contains("s3cret"), "a value must not reach a log");
}

#[test]
fn the_example_is_valid_and_documents_every_key() {
    read(EXAMPLE).unwrap();
    let example: toml::Table = EXAMPLE.parse().unwrap();
    for (table, at) in [
        ("", ""),
        ("[environment]", "/environment"),
        ("[limits]", "/limits"),
        ("[executables]", "/executables"),
        ("[builtin]", "/builtin"),
        ("[mcp]", "/mcp"),
        ("[builtin.web_search]", "/builtin/web_search"),
        ("[builtin.fetch_url]", "/builtin/fetch_url"),
        ("[policy]", "/policy"),
        ("[category.system_write]", "/category/system_write|/policy"),
        ("[tool]", "/tool|/policy"),
        ("[tool.signing]", "/tool/signing|/tool/weather_station|/tool/disk_usage|/tool|/policy"),
        ("[tool.\"tables.query\"]", "/tool/tables.query|/policy"),
    ] {
        let known = known_keys(table);
        assert!(!known.is_empty(), "no keys known of {table}");
        for key in known {
            // Both names of one key, which may not stand together.
            let key = if key == "allowed_in_modes" { "allowed_modes".to_owned() } else { key };
            let documented = at.split('|').any(|place| lookup(&example, place).contains_key(&key));
            assert!(documented, "hostler.example.toml says nothing of `{key}` in {table}");
        }
    }
}

fn lookup<'t>(table: &'t toml::Table, place: &str) -> &'t toml::Table {
    place.split('/').skip(1).fold(table, |table, step| table[step].as_table().unwrap())
}

/// The keys of a table, from the message about an unknown one.
fn known_keys(table: &str) -> Vec<String> {
    let messages = mistakes(&format!("{table}\nqqqqqqqq = 1\n"));
    let list = messages.iter().find_map(|text| text.split("the keys here are ").nth(1)).unwrap();
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_operator_wins_over_the_header_and_every_value_says_where_it_is_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostler.toml");
    let text =
        "[tool]\ntimeout = \"1m\"\n[tool.brave]\nidle_timeout = \"never\"\n[tool.\"brave.search\"]\ntimeout = \"7s\"\n";
    std::fs::write(&file, text).unwrap();
    let wanted = ConfigOptions { config: Some(file.clone()), ..ConfigOptions::default() };
    let config = Config::load(&wanted, Path::new("/")).unwrap();
    let header = header("timeout = \"9m\"\neffects = \"pure\"\n");
    let tool = config.tool("brave", Some(&header), false);
    assert_eq!((tool.timeout.value, tool.timeout.origin.to_string()), (Duration::from_mins(1), place(&file, 2)));
    assert_eq!(tool.idle_timeout.value, IdleTimeout::Never);
    assert_eq!(
        (tool.effects.value, tool.effects.origin.to_string()),
        (Effects::Pure, "header /t/brave.py:4".to_owned())
    );
    assert_eq!((tool.max_queue.value, &tool.max_queue.origin), (256, &Origin::Default));
    let search = config.function("brave", "search", &tool, None);
    assert_eq!((search.timeout.value, search.timeout.origin.to_string()), (Duration::from_secs(7), place(&file, 6)));
    assert_eq!(config.function("brave", "other", &tool, None).timeout.value, Duration::from_mins(1));
}

fn place(file: &Path, line: usize) -> String {
    format!("{}:{line}", file.display())
}

fn header(text: &str) -> ToolLayer {
    let source =
        Source { file: Arc::new(PathBuf::from("/t/brave.py")), text: text.into(), first_line: 3, is_header: true };
    let table = source.parse().unwrap();
    let problems = std::cell::RefCell::default();
    ToolLayer::of_header(&super::section::Section::top(vec![(&source, &table)], &problems))
}

#[test]
fn a_flag_wins_over_files() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), "tools = [\"mine\"]\n[tool.\"a.b\"]\ntimeout = 5\n").unwrap();
    let config = Config::load(&ConfigOptions::default(), folder.path()).unwrap();
    assert_eq!(config.tools.value, [folder.path().join("mine")]);
    let wanted = ConfigOptions {
        tools: vec![PathBuf::from("other")],
        timeout: Some(Duration::from_secs(1)),
        ..ConfigOptions::default()
    };
    let config = Config::load(&wanted, folder.path()).unwrap();
    assert_eq!(config.tools.value, [folder.path().join("other")]);
    let tool = config.tool("a", None, false);
    assert_eq!(config.function("a", "b", &tool, None).timeout.value, Duration::from_secs(1));
}

#[test]
fn a_limit_of_zero_is_refused_and_fractions_of_seconds_are_not() {
    assert_mistakes("[tool]\ntimeout = \"0s\"\n", &[(2, "tool.timeout", "longer than zero")]);
    let layer = read("[tool]\ntimeout = 0.5\nidle_timeout = 0\n").unwrap();
    assert_eq!(layer.every.timeout.unwrap().value, Duration::from_millis(500));
    assert_eq!(layer.every.idle_timeout.unwrap().value, IdleTimeout::After(Duration::ZERO));
}

#[test]
fn a_directory_may_be_relative() {
    let folder = tempfile::tempdir_in("tests").unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("hostler.toml"), "log = \"debug\"\n").unwrap();
    let relative = std::path::Path::new("tests").join(folder.path().file_name().unwrap()).join("inner");
    let config = Config::load(&ConfigOptions::default(), &relative).unwrap();
    assert_eq!(config.log.value, "debug");
}

#[test]
fn a_memory_limit_below_an_interpreters_need_is_refused() {
    assert_mistakes("[tool]\nmax_memory = \"1MB\"\n", &[(2, "tool.max_memory", "16MB")]);
    assert!(read("[tool]\nmax_memory = \"64MB\"\n").is_ok());
}

#[test]
fn rules_are_stacked_and_what_forbids_adds_up() {
    let text = "[policy]\nforbidden_paths = [\"/a/**\"]\nallowed_in_modes = [\"NORMAL\"]\n[category.net]\nforbidden_paths = [\"/b\"]\n\
                requires_approval = true\n[tool.p]\nforbidden_paths = [\"/c\"]\n[tool.\"p.f\"]\nrequires_approval = false\n\
                category = \"net\"\nforbidden_in_modes = [\"Alert\"]\n";
    let config = read(text).unwrap();
    let header = header("forbidden_paths = [\"/h\"]\nallowed_modes = [\"alert\"]\ncategory = \"other\"\n");
    let tool = config.tool("p", Some(&header), false);
    let policy = config.function("p", "f", &tool, None).policy;
    let forbidden: Vec<&str> = policy.forbidden_paths.iter().flat_map(|one| &one.value).map(String::as_str).collect();
    assert_eq!(forbidden, ["/h", "/a/**", "/b", "/c"], "a stronger table adds to what a weaker one forbids");
    assert_eq!(
        policy.allowed_modes.as_ref().unwrap().value,
        [Mode::from(KnownMode::Normal)],
        "a header does not lift what the operator sets"
    );
    assert!(!policy.requires_approval.as_ref().unwrap().value, "the function's own table over its category's");
    let other = config.function("p", "g", &tool, None).policy;
    assert_eq!((other.forbidden_paths.len(), other.requires_approval.clone()), (3, None), "of another category");
}

#[test]
fn a_rule_without_a_meaning_is_refused() {
    let wrong = [
        ("allowed_paths", "[\"\"]"),
        ("allowed_paths", "[\"/a/../b\"]"),
        ("forbidden_paths", "[\"$PWD/x\"]"),
        ("forbidden_paths", "[\"/a[\"]"),
        ("forbidden_paths", "\"/a\""),
        ("allowed_commands", "[\"ls; rm\"]"),
        ("allowed_commands", "[\" \"]"),
        ("forbidden_commands", "[\"r*\"]"),
        ("allowed_hosts", "[\"https://a.com\"]"),
        ("allowed_hosts", "[\"a.com:80\"]"),
        ("forbidden_in_modes", "[\"panic\"]"),
        ("max_file_size_mb", "0"),
        ("forbiden_paths", "[\"/a\"]"),
    ];
    for (key, value) in wrong {
        let found = read(&format!("[policy]\n{key} = {value}\n")).unwrap_err();
        assert_eq!((found[0].place.line, &*found[0].key), (2, &*format!("policy.{key}")), "{found:?}");
    }
    let both = "[policy]\nallowed_modes = [\"normal\"]\nallowed_in_modes = [\"alert\"]\n";
    assert_eq!(read(both).unwrap_err()[0].key, "policy.allowed_in_modes");
    for right in ["~/x", "$HOME", "${HOME}/**", "./data", "/", "**/.env", "/a/*.{md,txt}"] {
        assert!(read(&format!("[policy]\nallowed_paths = [\"{right}\"]\n")).is_ok(), "{right}");
    }
}

#[test]
fn own_modes_are_named_in_rules_and_are_like_a_known_one() {
    let config = read(
        "[policy]\nmode = \"Freeze\"\nforbidden_in_modes = [\"lockdown\", \"night-shift\"]\n\
         [policy.modes]\nfreeze = \"LOCKDOWN\"\nNight-Shift = \"alert\"\n[tool.a]\nallowed_modes = [\"freeze\"]\n",
    );
    let config = config.unwrap();
    let mode = |name| config.modes.named(name).unwrap();
    let freeze = config.mode.value;
    assert_eq!((freeze, freeze.word(), freeze.like()), (mode("FREEZE"), "freeze", KnownMode::Lockdown));
    assert!(!config.policy.allows(freeze) && !config.policy.allows(mode("night-shift")));
    assert!(config.policy.allows(mode("alert")), "a mode that one is like is not that one");
    let of_tool = &config.packs["a"].policy;
    assert!(of_tool.allows(freeze) && !of_tool.allows(mode("lockdown")));
    assert_mistakes(
        "[policy.modes]\nfreeze = \"lockdown\"\nFreeze = \"normal\"\n",
        &[(2, "policy.modes.freeze", "elsewhere")],
    );
    assert_mistakes(
        "[policy]\nmode = \"freese\"\n[policy.modes]\nfreeze = \"lockdown\"\nalert = \"normal\"\nx = \"freeze\"\n\"a b\" = \"alert\"\n",
        &[
            (2, "policy.mode", "did you mean \"freeze\"?"),
            (5, "policy.modes.alert", "always there"),
            (6, "policy.modes.x", "expected one of"),
            (7, "policy.modes.a b", "not a name"),
        ],
    );
}

#[test]
fn a_project_cannot_have_less_audited() {
    use super::audit::Audited;
    let options = ConfigOptions {
        environment: Arc::new([("XDG_CONFIG_HOME", "/c")].into_iter().collect()),
        ..ConfigOptions::default()
    };
    let read = |own: &str, project: &str| {
        let source = |file: &str, text: &str| Source {
            file: Arc::new(PathBuf::from(file)),
            text: text.into(),
            first_line: 1,
            is_header: false,
        };
        let sources = [source("/c/hostler/hostler.toml", own), source("/p/hostler.toml", project)];
        Config::read(&sources, &options, Path::new("/p")).map(|config| config.audit)
    };
    let of = |own, project| read(own, project).unwrap().log.value;
    assert_eq!(of("", ""), Audited::Denied);
    assert_eq!(of("[audit]\nlog = \"off\"\n", ""), Audited::Off);
    assert_eq!(of("[audit]\nlog = \"off\"\n", "[audit]\nlog = \"all\"\n"), Audited::All);
    assert_eq!(of("[audit]\nlog = \"all\"\n", "[audit]\nlog = \"denied\"\n"), Audited::All);
    let refused = read("", "[audit]\nlog = \"off\"\n").unwrap_err();
    assert_eq!((refused[0].place.line, &*refused[0].key), (2, "audit.log"));
    let keep = "[audit]\nkeep = \"1h\"\nkeep_size = \"1MB\"\n";
    assert_eq!(read("", keep).unwrap().keep(), read("", "").unwrap().keep(), "it is not the project's");
    assert_eq!(read(keep, "").unwrap().keep().time, Duration::from_hours(1));
}

#[test]
fn a_pack_may_have_the_name_of_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hostler.toml");
    std::fs::write(&path, "[tool]\ntimeout = 7\n[tool.task]\ntimeout = 5\n[tool.secrets]\ntags = [\"x\"]\n").unwrap();
    let wanted = ConfigOptions { config: Some(path), ..ConfigOptions::default() };
    let config = Config::load(&wanted, folder.path()).unwrap();
    let timeout = |pack: &str| config.tool(pack, None, false).timeout.value;
    assert_eq!((timeout("task"), timeout("secrets")), (Duration::from_secs(5), Duration::from_secs(7)));
}
