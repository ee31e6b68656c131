//! Resident memory at rest.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::Fallible;
use crate::ground::{Ground, worker_pid};
use crate::peer::{Peer, Streams};
use crate::table::{Measured, Target, rounded};
use crate::tools;

pub fn memory(ground: &Ground) -> Fallible<Vec<Measured>> {
    tools::write_packs(&ground.folder("memory"), 99)?;
    tools::write_adder(&ground.folder("memory"), "sums")?;
    sleep(tools::SETTLED);
    let mut bare = idle_interpreter(ground)?;
    let (cold, worker) = after_a_call(ground)?;
    let (unchanged, _) = after_a_call(ground)?;
    let floor = resident(u64::from(bare.id()));
    bare.kill()?;
    bare.wait()?;
    let floor = floor?;
    let what = |how| format!("supervisor RSS, 100 tool files {how}, after a call");
    let (now, aim) = (Target::AtMost(20.0), Target::AtMost(12.0));
    Ok(vec![
        Measured::against(&what("read from cold"), cold, " MB", now, aim),
        Measured::against(&what("unchanged"), unchanged, " MB", now, aim),
        Measured::plain("idle worker RSS − the bare interpreter's", worker - floor, " MB").from(format!(
            "{} MB − {} MB",
            rounded(worker),
            rounded(floor)
        )),
    ])
}

/// The supervisor's memory and its worker's.
fn after_a_call(ground: &Ground) -> Fallible<(f64, f64)> {
    let mut peer = Peer::mcp(&mut ground.serve("memory"), Streams::Pipes)?;
    peer.request("tools/list", &serde_json::json!({}))?;
    let worker = worker_pid(&mut peer, "sums_add")?;
    sleep(Duration::from_millis(500));
    Ok((resident(u64::from(peer.pid()))?, resident(worker)?))
}

/// The memory of a supervisor, in MB.
pub fn supervisor(peer: &Peer) -> Fallible<f64> {
    resident(u64::from(peer.pid()))
}

/// An interpreter that waits for its input, as a worker does.
fn idle_interpreter(ground: &Ground) -> Fallible<std::process::Child> {
    let mut python: Command = ground.command(ground.python());
    python.args(["-I", "-c", "import sys; sys.stdin.readline()"]);
    Ok(python.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?)
}

/// In MB, as the kernel counts it.
fn resident(pid: u64) -> Fallible<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}
