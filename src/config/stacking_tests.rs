//! Stacked layers: which one wins, and the defaults.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::environment::Environment;
use super::launcher::Launcher;
use super::load::{Config, ConfigError, ConfigOptions};
use super::origin::Problem;
use super::section::Source;
use super::tool::Effects;
use super::value::{ByteCount, IdleTimeout};

fn source(name: &str, text: &str) -> Source {
    Source { file: Arc::new(PathBuf::from(name)), text: text.into(), first_line: 1, is_header: false }
}

fn read(text: &str) -> Result<Config, Vec<Problem>> {
    let variables = Arc::new(Environment::from_iter([("HOME", "/home/me")]));
    let options = ConfigOptions { environment: variables, ..ConfigOptions::default() };
    Config::read(&[source("/p/hostler.toml", text)], &options, Path::new("/p"))
}

fn config(text: &str) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hostler.toml");
    std::fs::write(&file, text).unwrap();
    Config::load(&ConfigOptions { config: Some(file), ..ConfigOptions::default() }, Path::new("/")).unwrap()
}

#[test]
fn a_packs_table_wins_over_the_one_for_all() {
    let config = config(
        "[tool]\ntimeout = 1\nmax_queue = 1\nlauncher = \"uv\"\nvalidate = false\nhost_access = false\npass_env = [\"A\"]\n\
         [tool.own]\nnew_privileges = true\ntimeout = 2\nlauncher = \"direct\"\nvalidate = true\nhost_access = true\npass_env = [\"B\"]\n",
    );
    let own = config.tool("own", None, false);
    assert_eq!((own.timeout.value, own.max_queue.value), (Duration::from_secs(2), 1));
    assert_eq!((own.launcher.value, own.validate.value, own.host_access.value), (Launcher::Direct, true, true));
    assert_eq!(own.pass_env.value, ["B"]);
    assert!(own.new_privileges.value);
    let other = config.tool("other", None, true);
    assert_eq!((other.timeout.value, other.launcher.value), (Duration::from_secs(1), Launcher::Uv));
    assert_eq!((other.validate.value, other.host_access.value), (false, false), "also for an internal file");
    assert_eq!(other.pass_env.value, ["A"]);
    assert!(!other.new_privileges.value);
}

#[test]
fn a_functions_table_wins_over_its_packs_and_touches_no_other_function() {
    let config = config(
        "[tool.a]\neffects = \"pure\"\nvalidate = true\n[tool.\"a.one\"]\neffects = \"idempotent\"\nvalidate = false\n",
    );
    let tool = config.tool("a", None, false);
    let (one, two) = (config.function("a", "one", &tool, None), config.function("a", "two", &tool, None));
    assert_eq!((one.effects.value, one.validate.value), (Effects::Idempotent, false));
    assert_eq!((two.effects.value, two.validate.value), (Effects::Pure, true));
}

#[test]
fn the_projects_file_overrides_the_users_key_by_key() {
    let person = source(
        "/home/hostler.toml",
        "log = \"info\"\n[tool]\ntimeout = 1\nmax_queue = 1\n[tool.a]\ntimeout = 1\nmax_queue = 1\nenv = { X = \"1\", Y = \"1\" }\n\
         [tool.\"a.f\"]\ntimeout = 1\neffects = \"pure\"\n[secrets]\nA = { env = \"PERSON\" }\nB = { env = \"PERSON\" }\n\
         [environment]\nkeep = \"1h\"\nenv = { X = \"1\", Y = \"1\" }\n",
    );
    let project = source(
        "/p/hostler.toml",
        "[tool]\ntimeout = 2\n[tool.a]\ntimeout = 2\nenv = { Y = \"2\" }\n[tool.\"a.f\"]\ntimeout = 2\n[secrets]\nB = { env = \
         \"PROJECT\" }\n[environment]\nenv = { Y = \"2\" }\n",
    );
    let both = Config::read(&[person, project], &ConfigOptions::default(), Path::new("/p")).unwrap();
    let two = Duration::from_secs(2);
    assert_eq!(both.log.value, "info");
    assert_eq!(both.keep.value, Duration::from_hours(1));
    assert_eq!((both.every.timeout.unwrap().value, both.every.max_queue.unwrap().value), (two, 1));
    let (a, f) = (&both.packs["a"], &both.functions["a.f"]);
    assert_eq!((a.timeout.as_ref().unwrap().value, a.max_queue.as_ref().unwrap().value), (two, 1));
    assert_eq!((a.env["X"].value.as_str(), a.env["Y"].value.as_str()), ("1", "2"));
    assert_eq!((f.timeout.as_ref().unwrap().value, f.effects.as_ref().unwrap().value), (two, Effects::Pure));
    assert_eq!((both.build_env["X"].value.as_str(), both.build_env["Y"].value.as_str()), ("1", "2"));
    let place = |name: &str| format!("{:?}", both.secrets[name].value);
    assert_eq!((place("A"), place("B")), ("Environment(\"PERSON\")".to_owned(), "Environment(\"PROJECT\")".to_owned()));
}

#[test]
fn defaults_are_as_documented() {
    let config = config("");
    let tool = config.tool("a", None, false);
    assert_eq!((tool.timeout.value, tool.startup_timeout.value), (Duration::from_mins(5), Duration::from_mins(1)));
    assert_eq!((tool.idle_timeout.value, tool.max_queue.value), (IdleTimeout::After(Duration::from_mins(10)), 256));
    assert_eq!((tool.effects.value, tool.launcher.value), (Effects::Once, Launcher::Uv));
    assert_eq!((tool.validate.value, tool.host_access.value), (true, false));
    assert!(config.tool("a", None, true).host_access.value, "an internal file may ask");
    assert_eq!((config.build_timeout.value, config.keep.value), (Duration::from_mins(10), Duration::from_hours(720)));
    assert_eq!(config.limits.max_output.value, ByteCount(1_000_000));
}

#[test]
fn sizes_are_read_as_they_are_written() {
    for (text, bytes) in [
        ("7", 7),
        ("\"7\"", 7),
        ("\"2 B\"", 2),
        ("\"2kb\"", 2_000),
        ("\"2 KiB\"", 2_048),
        ("\"3MB\"", 3_000_000),
        ("\"1MiB\"", 1 << 20),
        ("\"1g\"", 1_000_000_000),
        ("\"1 GiB\"", 1 << 30),
    ] {
        let read = read(&format!("[limits]\nmax_output = {text}\n")).unwrap().limits.max_output.value;
        assert_eq!(read, ByteCount(bytes), "{text}");
    }
}

#[test]
fn a_path_that_begins_with_a_tilde_begins_at_home() {
    let read = read("tools = [\"~/mine\", \"yours\"]\n").unwrap();
    assert_eq!(read.tools.value, [PathBuf::from("/home/me/mine"), PathBuf::from("/p/yours")]);
}

#[test]
fn a_secret_has_one_place_and_a_command_has_a_program() {
    for place in
        ["{ env = \"A\", file = \"b\" }", "{ command = [] }", "{}", "{ file = 3 }", "{ env = \"$2b$x\", x = 1 }"]
    {
        let text = format!("[secrets]\nKEY = {place}\n");
        let problems = read(&text).unwrap_err();
        assert_eq!((problems.len(), problems[0].key.as_str()), (1, "secrets.KEY"), "{place}");
    }
}

#[test]
fn no_message_about_a_secret_shows_its_value() {
    for line in [
        "KEY = \"s3cret\"",
        "KEY = { env = \"$s3cret\" }",
        "KEY = { path = \"s3cret\" }",
        "KEY = { command = \"cat s3cret\" }",
        "KEY = { file = s3cret }",
        "KEY = s3cret",
        "KEY = \"s3cret",
    ] {
        let text = format!("[secrets]\n{line}\n");
        let problem = &read(&text).unwrap_err()[0];
        assert_eq!(problem.place.line, 2, "{line}");
        assert!(!problem.to_string().contains("s3cret"), "{problem}");
    }
    let text = "[tool.a]\nsecrets = \"s3cret\"\n";
    let problem = &read(text).unwrap_err()[0];
    assert!(problem.key == "tool.a.secrets" && !problem.to_string().contains("s3cret"), "{problem}");
}

/// What is not TOML is reported where it begins, as far as the parser knows, and no value is ever shown.
#[test]
fn text_that_is_not_toml_has_a_line_and_no_value() {
    for (text, line, words) in [
        ("tools = [\"a\"\nlog = \"info\"\n", 1, "missing comma"),
        ("tools = [\n  \"a\",\nlog = \"info\"\n", 3, "close what begins above it"),
        ("tools = [", 1, "unclosed array"),
        ("log = \"info\ntools = []", 1, "expected `\"`"),
        ("tools = [\"info]\nlog = \"s3cret\"", 1, "expected `\"`"),
        ("[mcp]\n[tool.a]\nenv = { A = \"s3cret\"", 3, "unclosed inline table"),
        ("log = 1\n\nlog = \"s3cret\"", 3, "`log` is defined twice"),
        ("log = \"info\"\ntools: []", 2, "key"),
        ("[tool]\ntimeout = s3cret", 2, "must be quoted"),
        ("[secrets]\nKEY = s3cret", 2, "must be quoted"),
        ("[secrets]\nKEY = \"s3cret", 2, "expected `\"`"),
        ("[secrets]\nKEY = \"a\" s3cret", 2, "expected newline"),
    ] {
        let problem = &read(text).unwrap_err()[0];
        assert_eq!(problem.place.line, line, "{text}: {problem}");
        assert!(problem.to_string().contains(words) && !problem.to_string().contains("s3cret"), "{text}: {problem}");
    }
}

proptest::proptest! {
    #[test]
    fn every_text_is_read_or_has_a_line(pieces in proptest::collection::vec("[a=\"'\\[\\]{}#é,\\\\1 ]|\"\"\"|\n|\r\n|\\[t\\]\n", 0..30)) {
        let text = pieces.concat();
        for problem in read(&text).err().into_iter().flatten() {
            let last = 1 + text.matches('\n').count();
            proptest::prop_assert!((1..=last).contains(&problem.place.line) && !problem.fix.is_empty());
        }
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let home = tempfile::tempdir().unwrap();
    let pipe = home.path().join("pipe.toml");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    for path in [pipe, PathBuf::from("/dev/zero"), PathBuf::from("/dev/ptmx")] {
        let (sender, loaded) = std::sync::mpsc::channel();
        let options = ConfigOptions { config: Some(path), ..ConfigOptions::default() };
        std::thread::spawn(move || drop(sender.send(Config::load(&options, Path::new("/")))));
        let loaded = loaded.recv_timeout(Duration::from_secs(5)).expect("it is waited for");
        let Err(ConfigError::Unreadable { error, .. }) = loaded else { panic!("{loaded:?}") };
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{error}");
    }
}
