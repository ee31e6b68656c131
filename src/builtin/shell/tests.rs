use std::time::Duration;

use serde_json::json;

use super::add;
use crate::builtin::testing::Bench;
use crate::outcome::Code;

#[tokio::test]
async fn a_command_is_told_by_what_it_wrote_and_how_it_ended() {
    let bench = Bench::of(add);
    bench.put("sub/x", "");
    let run = async |command: &str| bench.call("bash", json!({"command": command, "path": "sub"})).await.unwrap();
    assert_eq!(run("ls; echo oh >&2; exit 3").await, json!({"stdout": "x\n", "stderr": "oh\n", "exit_code": 3}));
    assert_eq!(run("kill -KILL $$").await["exit_code"], 137);
    assert_eq!(run("no-such-command").await["exit_code"], 127);
    assert_eq!(run("cat").await["exit_code"], 0, "there is no input to wait for");
}

#[tokio::test]
async fn a_command_whose_time_is_over_is_told_so_and_gone() {
    let bench = Bench::of(add);
    let late = bench.call("bash", json!({"command": "echo begun; sleep 60 & echo $! > pid; wait", "timeout": 1})).await;
    assert_eq!(late.unwrap(), json!({"stdout": "begun\n", "stderr": "Command timed out", "exit_code": -1}));
    let stat = format!("/proc/{}/stat", bench.text("pid").trim());
    // Dead, whether or not somebody has asked after it.
    let lives = || std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z "));
    let gone = async {
        while lives() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone).await.expect("what it had started is gone too");
}

#[tokio::test]
async fn what_writes_without_end_is_stopped_and_told() {
    let bench = Bench::of(add);
    bench.fails("bash", json!({"command": "exec yes"}), Code::InvalidOutput, "more than 100 kB and was stopped").await;
    let much = "i=0; while [ $i -lt 20000 ]; do echo 123456789 >&2; i=$((i+1)); done";
    let told = bench.call("bash", json!({"command": much})).await.unwrap();
    assert!(told["stderr"].as_str().unwrap().starts_with("… ("), "that errors are left out is said");
    bench.fails("bash", json!({"command": "a\0b"}), Code::InvalidParams, "NUL").await;
    bench.fails("bash", json!({"command": "ls", "path": ".."}), Code::PermissionDenied, "outside").await;
}

#[tokio::test]
async fn a_folder_that_is_gone_is_not_taken_for_a_shell_that_is() {
    let bench = Bench::of(add);
    bench.put("file", "");
    let told = "gone does not exist; `list_directory` or `glob` show what there is";
    bench.fails("bash", json!({"command": "ls", "path": "gone"}), Code::ToolError, told).await;
    bench.fails("bash", json!({"command": "ls", "path": "file"}), Code::ToolError, "is a file; name its folder").await;
}
