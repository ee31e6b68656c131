//! What a program that is run once for each call gets from hostler, and how many run at once.
#![expect(clippy::unwrap_used, reason = "it is a test")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hostler::{CallRequest, Environment, Hostler};
use serde_json::{Map, Value};

const PATIENCE: Duration = Duration::from_secs(20);

/// A tool in a folder of its own; `body` is what a call runs.
async fn hostler(folder: &Path, body: &str) -> Hostler {
    let tools = folder.join("tools");
    std::fs::create_dir_all(&tools).unwrap();
    let path = tools.join("probe");
    let schema = r#"{"name": "probe", "description": "Probe.", "input_schema": {"type": "object"}}"#;
    std::fs::write(&path, format!("#!/bin/sh\nif [ \"$1\" = --schema ]; then echo '{schema}'; exit; fi\n{body}\n"))
        .unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    let search = std::env::var("PATH").unwrap();
    let environment = Environment::from_iter([("PATH", search.as_str()), ("HOME", folder.to_str().unwrap())]);
    let hostler = Hostler::builder().directory(folder).tools(tools).environment(environment).open().unwrap();
    hostler.ready().await;
    hostler
}

async fn probe(hostler: &Hostler) -> Value {
    let outcome = hostler.call(CallRequest::new("probe", Map::new())).await;
    serde_json::from_str(outcome.ended.as_ref().unwrap().get()).unwrap()
}

/// The line of a process's status that begins with a word.
#[cfg(target_os = "linux")]
fn own_status(word: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find_map(|line| line.strip_prefix(word)).unwrap().trim().to_owned()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_program_gains_no_privilege_and_knows_how_it_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let body = r#"value() { grep "^$1:" /proc/self/status | cut -f2- | tr '\t' ' '; }
printf '{"uid":"%s","gid":"%s","eff":"%s","bound":"%s","mode":"%s","gibson":"%s"}' \
    "$(value Uid)" "$(value Gid)" "$(value CapEff)" "$(value CapBnd)" "$HOSTLER_TOOL_MODE" "$GIBSON_TOOL_MODE""#;
    let hostler = hostler(folder.path(), body).await;
    let seen = probe(&hostler).await;
    for (key, word) in [("uid", "Uid:"), ("gid", "Gid:"), ("eff", "CapEff:"), ("bound", "CapBnd:")] {
        assert_eq!(seen[key], own_status(word).replace('\t', " "), "{key}");
    }
    assert_eq!((&seen["mode"], &seen["gibson"]), (&"subprocess".into(), &"subprocess".into()));
    hostler.close().await;
}

#[tokio::test]
async fn ten_calls_of_one_tool_are_ten_processes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let began = folder.path().join("began");
    std::fs::create_dir(&began).unwrap();
    let (began_at, gate) = (began.display(), folder.path().join("gate"));
    // Each says that it runs, and waits until the gate is opened.
    let body = format!(": > '{began_at}'/$$; while [ ! -e '{}' ]; do sleep 0.01; done; echo $$", gate.display());
    let hostler = Arc::new(hostler(folder.path(), &body).await);
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let hostler = Arc::clone(&hostler);
            tokio::spawn(async move { probe(&hostler).await })
        })
        .collect();
    let all_run = async {
        while std::fs::read_dir(&began).unwrap().count() < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, all_run).await.unwrap();
    std::fs::write(&gate, "").unwrap();
    let mut pids = std::collections::BTreeSet::new();
    for call in calls {
        pids.insert(call.await.unwrap().as_u64().unwrap());
    }
    assert_eq!(pids.len(), 10);
    hostler.close().await;
}
