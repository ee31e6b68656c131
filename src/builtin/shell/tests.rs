use std::time::Duration;

use serde_json::json;

use super::add;
use crate::builtin::testing::Bench;
use crate::outcome::Code;

#[tokio::test]
async fn a_command_returns_its_output_and_exit_code() {
    let bench = Bench::of(add);
    bench.put("sub/x", "");
    let run = async |command: &str| bench.call("bash", json!({"command": command, "path": "sub"})).await.unwrap();
    assert_eq!(run("ls; echo oh >&2; exit 3").await, json!({"stdout": "x\n", "stderr": "oh\n", "exit_code": 3}));
    assert_eq!(run("kill -KILL $$").await["exit_code"], 137);
    assert_eq!(run("no-such-command").await["exit_code"], 127);
    assert_eq!(run("cat").await["exit_code"], 0, "there is no input to wait for");
}

#[tokio::test]
async fn a_timed_out_command_is_reported_and_gone() {
    let bench = Bench::of(add);
    let late = bench.call("bash", json!({"command": "echo begun; sleep 60 & echo $! > pid; wait", "timeout": 1})).await;
    assert_eq!(late.unwrap(), json!({"stdout": "begun\n", "stderr": "Command timed out", "exit_code": -1}));
    let stat = format!("/proc/{}/stat", bench.text("pid").trim());
    // A zombie is dead.
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let gone = async {
        while lives() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("its children are gone too");
}

#[tokio::test]
async fn endless_output_is_stopped_and_reported() {
    let bench = Bench::of(add);
    bench.fails("bash", json!({"command": "exec yes"}), Code::InvalidOutput, "100 kB").await;
    let much = "i=0; while [ $i -lt 20000 ]; do echo 123456789 >&2; i=$((i+1)); done";
    let done = bench.call("bash", json!({"command": much})).await.unwrap();
    assert!(done["stderr"].as_str().unwrap().starts_with("… ("), "the omission is reported");
    bench.fails("bash", json!({"command": "a\0b"}), Code::InvalidParams, "NUL").await;
    bench.fails("bash", json!({"command": "ls", "path": ".."}), Code::PermissionDenied, "outside").await;
}

#[tokio::test]
async fn a_missing_folder_is_not_reported_as_a_missing_shell() {
    let bench = Bench::of(add);
    bench.put("file", "");
    bench.fails("bash", json!({"command": "ls", "path": "gone"}), Code::ToolError, "gone does not exist").await;
    bench.fails("bash", json!({"command": "ls", "path": "file"}), Code::ToolError, "is a file").await;
}
