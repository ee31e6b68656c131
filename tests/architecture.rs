//! What must never be, held against the sources. `docs/architecture.md` says why.
//!
//! Every rule is tried twice: on a planted breach, which it must see, and on the tree, which must have none. Comments and
//! what is compiled for tests only do not count.

#[path = "architecture/source.rs"]
mod source;

use std::path::Path;

use source::{Source, named, tree};

const SHIM: &str = "worker-shims/python";

/// Tries a rule on a breach and then on the tree.
fn hold(breach: (&str, &str), rule: impl Fn(&[Source]) -> Vec<String>) {
    let planted = rule(&[Source::new(breach.0, breach.1)]);
    assert!(!planted.is_empty(), "the rule does not see its breach: {}", breach.1);
    let inside_a_test = format!("#[cfg(test)]\nmod tests {{\n    {}\n}}\n// {}\n", breach.1, breach.1);
    assert_eq!(rule(&[Source::new(breach.0, &inside_a_test)]), Vec::<String>::new(), "tests and comments do not count");
    let broken = rule(&tree());
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn outside(sources: &[Source], rooms: &[&str], words: &[&str]) -> Vec<String> {
    sources.iter().filter(|source| !rooms.contains(&source.module.as_str())).flat_map(|one| one.naming(words)).collect()
}

fn inside(sources: &[Source], rooms: &[&str], words: &[&str]) -> Vec<String> {
    sources.iter().filter(|source| rooms.contains(&source.module.as_str())).flat_map(|one| one.naming(words)).collect()
}

#[test]
fn processes_are_started_in_one_place() {
    let words = [
        "Command::new",
        "process::Command",
        "std::process::{",
        "CommandExt",
        "process::Stdio",
        "tokio::process",
        "fork",
        "posix_spawn",
        "execve",
    ];
    let rule = |sources: &[Source]| outside(sources, &["process"], &words);
    hold(("src/worker/start.rs", "fn f() { std::process::Command::new(\"x\"); }"), rule);
    assert!(!rule(&[Source::new("src/cli/call.rs", "use std::process::{Command, ExitCode};")]).is_empty());
}

#[test]
fn the_environment_is_read_in_one_place() {
    let words =
        ["env::var", "env::vars", "env::var_os", "env::vars_os", "env::home_dir", "env::temp_dir", "which::which"];
    let rule = |sources: &[Source]| {
        let elsewhere = sources.iter().filter(|source| source.path != "src/config/environment.rs");
        elsewhere.flat_map(|one| one.naming(&words)).collect()
    };
    hold(("src/pool/actor.rs", "fn f() { std::env::var_os(\"HOME\"); }"), rule);
    // A program that embeds hostler may leave it to hostler to read them.
    let readers = ["src/main.rs", "src/hostler.rs", "src/cli/complete.rs", "src/config/environment.rs"];
    hold(("src/pool/actor.rs", "fn f() { Environment::of_process(); }"), |sources| {
        let elsewhere = sources.iter().filter(|source| !readers.contains(&source.path.as_str()));
        elsewhere.flat_map(|one| one.naming(&["of_process"])).collect()
    });
}

#[test]
fn standard_output_belongs_to_the_faces() {
    let words = ["print!", "println!", "stdout()", "Stdout"];
    hold(("src/pool/actor.rs", "fn f() { println!(\"x\"); }"), |sources| outside(sources, &["cli", "mcp"], &words));
}

#[test]
fn the_runtimes_own_threads_are_not_used() {
    // The runtime panics where the system gives no thread.
    let words = ["spawn_blocking", "block_in_place", "tokio::fs"];
    hold(("src/call/service.rs", "fn f() { tokio::task::spawn_blocking(work); }"), |sources| {
        outside(sources, &["threads"], &words)
    });
}

#[test]
fn protocol_and_header_do_no_input_and_output() {
    let words =
        ["std::fs", "std::net", "std::process", "std::io", "std::env", "std::thread", "tokio", "rustix", "File::"];
    hold(("src/protocol/frame.rs", "use std::fs;"), |sources| {
        inside(sources, &["protocol", "pep723", "policy"], &words)
    });
}

#[test]
fn the_pools_machine_knows_no_clock_no_runtime_and_no_process() {
    let words =
        ["tokio", "Instant", "SystemTime", "process", "thread", "async", "await", "std::fs", "std::env", "rand"];
    let pure = ["machine/", "event.rs", "worker_state.rs", "broker.rs", "rules.rs", "breaker.rs"]
        .map(|of| format!("src/pool/{of}"));
    let is_pure = |source: &&Source| pure.iter().any(|path| source.path.starts_with(path.as_str()));
    hold(("src/pool/worker_state.rs", "use std::time::Instant;"), |sources| {
        sources.iter().filter(is_pure).flat_map(|one| one.naming(&words)).collect()
    });
    assert!(pure.iter().all(|path| Path::new(path).exists()), "a file of the machine has another name now");
}

#[test]
fn no_limit_depends_on_a_clock_that_may_be_set() {
    let rooms = ["shared", "control", "runtime", "pool", "executor", "call", "mcp"];
    hold(("src/shared/start.rs", "let until = std::time::SystemTime::now();"), |sources| {
        inside(sources, &rooms, &["SystemTime", "UNIX_EPOCH"])
    });
}

#[test]
fn pool_and_worker_know_no_policy_and_no_tool() {
    let words = ["policy", "Policy", "approval", "Approval", "crate::call", "crate::mcp", "crate::registry"];
    hold(("src/pool/actor.rs", "use crate::policy::Decision;"), |sources| inside(sources, &["pool", "worker"], &words));
}

#[test]
fn discovery_runs_nothing() {
    let words = ["crate::process", "std::process", "process::", "Command", "tokio"];
    hold(("src/discovery/scan.rs", "fn f() { crate::process::run(&launch); }"), |sources| {
        inside(sources, &["discovery"], &words)
    });
    let words = ["process::run", "process::Launch", "Launch", "std::process", "Command", "tokio", "crate::worker"];
    hold(("src/check/file.rs", "fn f() { crate::process::run(&launch); }"), |sources| {
        inside(sources, &["check"], &words)
    });
}

#[test]
fn errors_live_beside_what_raises_them() {
    hold(("src/errors.rs", "pub enum Everything {}"), |sources| {
        let central = ["errors.rs", "error.rs"];
        let named_so = |source: &&Source| central.iter().any(|name| source.path.ends_with(&format!("/{name}")));
        sources.iter().filter(named_so).filter(|source| !source.is_empty()).map(|source| source.path.clone()).collect()
    });
}

#[test]
fn imports_go_down_the_floors() {
    let lib = std::fs::read_to_string("src/lib.rs").unwrap();
    let floors: Vec<&str> = lib
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    assert!(floors.len() > 10, "lib.rs lists the modules, one a line");
    let rule = |sources: &[Source]| upward(sources, &floors);
    hold(("src/pool/actor.rs", "use crate::{outcome, mcp::serve};"), rule);
    for breach in ["use crate::call::CallService;", "fn f(x: crate::runtime::Workspace) {}", "use super::super::cli;"] {
        assert!(!rule(&[Source::new("src/pool/actor.rs", breach)]).is_empty(), "{breach}");
    }
    assert!(!rule(&[Source::new("src/pool/mod.rs", "use super::cli;")]).is_empty());
    for fine in ["use crate::outcome::Fault;", "use super::machine::Machine;", "use crate::{process, protocol};"] {
        assert_eq!(rule(&[Source::new("src/pool/actor.rs", fine)]), Vec::<String>::new(), "{fine}");
    }
    let homeless =
        |source: &Source| !["main", "lib"].contains(&source.module.as_str()) && !floors.contains(&&*source.module);
    let strangers: Vec<String> = tree().into_iter().filter(homeless).map(|source| source.path).collect();
    assert!(strangers.is_empty(), "not in lib.rs: {strangers:?}");
}

fn upward(sources: &[Source], floors: &[&str]) -> Vec<String> {
    let floor = |name: &str| floors.iter().position(|one| *one == name);
    let mut found = Vec::new();
    for source in sources {
        let Some(own) = floor(&source.module) else { continue };
        for (line, text) in &source.lines {
            for name in named(text, source.depth) {
                if floor(&name).is_some_and(|other| other < own) {
                    found.push(format!("{}:{line}: {} stands below {name}", source.path, source.module));
                }
            }
        }
    }
    found
}

#[test]
fn every_file_of_the_shim_is_carried_in_the_binary() {
    let carried = std::fs::read_to_string("src/worker/shim.rs").unwrap();
    let missing = |files: &[String]| -> Vec<String> {
        files.iter().filter(|file| !carried.contains(&format!("carried!(\"{file}\")"))).cloned().collect()
    };
    assert_eq!(missing(&["hostler_worker/planted.py".to_owned()]).len(), 1);
    let mut files = Vec::new();
    collect(Path::new(SHIM), &mut files);
    files.retain(|file| !file.starts_with("tests/"));
    assert!(files.contains(&"__main__.py".to_owned()) && files.len() > 10, "{files:?}");
    assert_eq!(missing(&files), Vec::<String>::new(), "not in src/worker/shim.rs");
    assert_eq!(
        carried.matches("carried!(\"").count(),
        files.len(),
        "src/worker/shim.rs names files that are not there"
    );
}

fn collect(folder: &Path, into: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "py") {
            let below = path.strip_prefix(SHIM).unwrap_or(&path);
            into.push(below.to_string_lossy().into_owned());
        }
    }
}
