//! Configuration as people write it, with the mistakes they make.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::layer::FileLayer;
use super::load::{Config, Wanted};
use super::origin::Origin;
use super::section::{Problem, Source};
use super::tool::{Effects, ToolLayer};
use super::value::Patience;

const EXAMPLE: &str = include_str!("../../hostler.example.toml");

fn read(text: &str) -> Result<FileLayer, Vec<Problem>> {
    let file = Arc::new(PathBuf::from("/p/hostler.toml"));
    FileLayer::read(&Source { file, text: text.into(), first_line: 1, is_header: false })
}

fn mistakes(text: &str) -> Vec<String> {
    read(text).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn tables_of_other_names_are_told_as_ours() {
    assert_eq!(
        mistakes("[tools]\ntimeout = \"3s\"\n"),
        [
            "/p/hostler.toml:1: `tools`: a table does not fit here, which is for a list of folders; did you mean [tool], for every \
          tool, or [tool.NAME], for one?"
        ]
    );
    assert_eq!(
        mistakes("[tool.\"a.greet\"]\nmax_memory = \"1GB\"\n"),
        [
            "/p/hostler.toml:2: `tool.a.greet.max_memory`: this table has no such key; a function has none of its own: write \
          it under [tool.a]"
        ]
    );
}

#[test]
fn every_mistake_names_file_line_key_and_fix() {
    let text = "tols = []\n[tool]\ntimeout = \"5 parsecs\"\n[tool.brave]\ntiemout = 3\n[limits]\nmax_output = -1\n";
    assert_eq!(
        mistakes(text),
        [
            "/p/hostler.toml:7: `limits.max_output`: the number -1 does not fit here; write a size like \"1MB\" or \
             \"64MB\" (a bare number is bytes)",
            "/p/hostler.toml:3: `tool.timeout`: the string \"5 parsecs\" does not fit here; write a duration like \
             \"30s\", \"5m\" or \"1h 30m\" (a bare number is seconds)",
            "/p/hostler.toml:5: `tool.brave.tiemout`: unknown key; did you mean `timeout`?",
            "/p/hostler.toml:1: `tols`: unknown key; did you mean `tools`?",
        ]
    );
}

#[test]
fn a_slip_of_the_pen_is_a_letter_or_in_long_names_two() {
    use crate::config::section::is_slip_of;
    for (written, meant) in
        [("API_KYE", "API_KEY"), ("api_key", "API_KEYS"), ("SHED", "SHOD"), ("E2ESECRT", "E2E_SECRET")]
    {
        assert!(is_slip_of(written, meant), "{written}");
    }
    for (written, meant) in [("API_KEY", "API_KEY"), ("AB", "AC"), ("SHED", "SHOT"), ("SHELVE", "SHOVEL")] {
        assert!(!is_slip_of(written, meant), "{written}");
    }
    assert!(!is_slip_of(&"a".repeat(201), &"a".repeat(202)), "nobody means a name by a text");
}

#[test]
fn tables_that_are_called_otherwise_are_told_by_their_names() {
    let told = mistakes("[tool.a.ask]\ntimeout = \"3s\"\n");
    let right = "unknown key; if `ask` is a function of `a`, its table is called [tool.\"a.ask\"]";
    assert_eq!(told, [format!("/p/hostler.toml:1: `tool.a.ask`: {right}")]);
    assert!(mistakes("[tool.a.confg]\nx = 1\n")[0].ends_with("did you mean `config`?"));
    for folders in ["[\"tools\"]", "\"tools\""] {
        let told = mistakes(&format!("tool = {folders}\n"));
        assert!(told[0].ends_with("did you mean `tools`, the folders of tools?"), "{told:?}");
    }
    assert!(mistakes("limits = [\"1GB\"]\n")[0].ends_with("write it as a table: [limits]"));
    assert!(mistakes("[tool]\non_schema_failure = \"skip\"\n")[0].ends_with("it belongs under [executables]"));
    assert!(mistakes("[tool.\"a.ask\"]\nmin_workers = 1\n")[0].ends_with("write it under [tool.a]"));
}

#[test]
fn a_table_begins_with_its_head() {
    let layer =
        read("[tool]\ntimeout = \"3s\"\nc = { timeout = \"3s\" }\n\n[tool.b]\n# mine\ntimeout = \"3s\"\n").unwrap();
    let lines: Vec<_> = layer.packs.values().map(|pack| pack.place.as_ref().map(|place| place.line)).collect();
    assert_eq!(lines, [Some(5), Some(3)]);
}

#[test]
fn text_that_is_not_toml_is_told_with_its_line() {
    let told = mistakes("log = \"info\"\ntools = [\n");
    assert!(told[0].starts_with("/p/hostler.toml:2: not valid TOML: "), "{told:?}");
}

#[test]
fn a_key_in_the_wrong_table_is_told_where_it_belongs() {
    let told = mistakes("timeout = \"3s\"\n[limits]\nidle_timeout = 3\nbuild_timeout = \"3s\"\n[check]\ntools = []\n");
    let told = told.join("\n");
    insta::assert_snapshot!(told);
}

#[test]
fn a_python_that_can_be_nowhere_is_a_mistake() {
    for (wish, words) in [
        ("3.77", "`environment.python`: the string \"3.77\" does not fit here; there is no Python 3.77: write"),
        ("4.1", "there is no Python 4.1"),
        ("3.8.10", "workers run on Python 3.9 and newer, not on 3.8.10"),
        ("2.7", "not on 2.7"),
    ] {
        let told = mistakes(&format!("[environment]\npython = \"{wish}\"\n"));
        assert!(told[0].starts_with("/p/hostler.toml:2: ") && told[0].contains(words), "{told:?}");
    }
    for wish in ["3.12", "3", "3.9.18", "3.13t", ">=3.11", "cpython@3.12", "312", "/opt/3.77/bin/python", "python3"] {
        assert!(read(&format!("[environment]\npython = \"{wish}\"\n")).is_ok(), "{wish}");
    }
}

#[test]
fn a_secret_in_the_file_itself_is_refused() {
    let told = mistakes("[secrets]\nKEY = \"s3cret\"\n");
    assert!(told[0].contains("write KEY = { env = \"VARIABLE\" }"), "{told:?}");
    assert!(!told[0].contains("s3cret"), "a value must not reach a log");
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
        ("[tool]", "/tool"),
        ("[tool.signing]", "/tool/signing|/tool/weather_station|/tool"),
        ("[tool.\"tables.query\"]", "/tool/tables.query"),
    ] {
        let known = known_keys(table);
        assert!(!known.is_empty(), "no keys known of {table}");
        for key in known {
            let documented = at.split('|').any(|place| lookup(&example, place).contains_key(&key));
            assert!(documented, "hostler.example.toml says nothing of `{key}` in {table}");
        }
    }
}

fn lookup<'t>(table: &'t toml::Table, place: &str) -> &'t toml::Table {
    place.split('/').skip(1).fold(table, |table, step| table[step].as_table().unwrap())
}

/// The keys of a table, out of the answer to a key that is none.
fn known_keys(table: &str) -> Vec<String> {
    let told = mistakes(&format!("{table}\nqqqqqqqq = 1\n"));
    let list = told.iter().find_map(|text| text.split("the keys here are ").nth(1)).unwrap();
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn the_operator_wins_over_the_header_and_every_value_says_where_it_is_from() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostler.toml");
    let text =
        "[tool]\ntimeout = \"1m\"\n[tool.brave]\nidle_timeout = \"never\"\n[tool.\"brave.search\"]\ntimeout = \"7s\"\n";
    std::fs::write(&file, text).unwrap();
    let wanted = Wanted { config: Some(file.clone()), ..Wanted::default() };
    let config = Config::load(&wanted, Path::new("/")).unwrap();
    let header = header("timeout = \"9m\"\neffects = \"pure\"\n");
    let tool = config.tool("brave", Some(&header), false);
    assert_eq!((tool.timeout.value, tool.timeout.origin.to_string()), (Duration::from_mins(1), place(&file, 2)));
    assert_eq!(tool.idle_timeout.value, Patience::Forever);
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
    let table = super::section::parse(&source).unwrap();
    let problems = std::cell::RefCell::default();
    ToolLayer::read(&super::section::Section::new(&source, "tool.hostler", &table, &problems))
}

#[test]
fn a_flag_is_the_last_word() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hostler.toml"), "tools = [\"mine\"]\n[tool.\"a.b\"]\ntimeout = 5\n").unwrap();
    let config = Config::load(&Wanted::default(), folder.path()).unwrap();
    assert_eq!(config.tools.value, [folder.path().join("mine")]);
    let wanted =
        Wanted { tools: vec![PathBuf::from("other")], timeout: Some(Duration::from_secs(1)), ..Wanted::default() };
    let config = Config::load(&wanted, folder.path()).unwrap();
    assert_eq!(config.tools.value, [folder.path().join("other")]);
    let tool = config.tool("a", None, false);
    assert_eq!(config.function("a", "b", &tool, None).timeout.value, Duration::from_secs(1));
}

#[test]
fn a_limit_of_nothing_is_refused_and_fractions_of_seconds_are_not() {
    let told = mistakes("[tool]\ntimeout = \"0s\"\n");
    assert!(told[0].ends_with("write a duration longer than nothing, like \"30s\""), "{told:?}");
    let layer = read("[tool]\ntimeout = 0.5\nidle_timeout = 0\n").unwrap();
    assert_eq!(layer.every.wishes.timeout.unwrap().value, Duration::from_millis(500));
    assert_eq!(layer.every.wishes.idle_timeout.unwrap().value, Patience::For(Duration::ZERO));
}

#[test]
fn a_directory_may_be_relative() {
    let folder = tempfile::tempdir_in("tests").unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    std::fs::write(folder.path().join("hostler.toml"), "log = \"debug\"\n").unwrap();
    let relative = std::path::Path::new("tests").join(folder.path().file_name().unwrap()).join("inner");
    let config = Config::load(&Wanted::default(), &relative).unwrap();
    assert_eq!(config.log.value, "debug");
}

#[test]
fn memory_for_no_interpreter_is_refused() {
    let told = mistakes("[tool]\nmax_memory = \"1MB\"\n").join("\n");
    assert!(told.contains("tool.max_memory") && told.contains("512MB"), "{told}");
    assert!(read("[tool]\nmax_memory = \"64MB\"\n").is_ok());
}
