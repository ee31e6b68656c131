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
    let row = |how, held: Held| {
        let what = format!("hostler RSS, 100 tool files {how}, after a call");
        let (now, aim) = (Target::AtMost(20.0), Target::AtMost(12.0));
        let from = format!("supervisor {} MB + keeper {} MB", rounded(held.supervisor), rounded(held.keeper));
        Measured::against(&what, held.supervisor + held.keeper, " MB", now, aim).from(from)
    };
    Ok(vec![
        row("read from cold", cold),
        row("unchanged", unchanged),
        Measured::plain("idle worker RSS − the bare interpreter's", worker - floor, " MB").from(format!(
            "{} MB − {} MB",
            rounded(worker),
            rounded(floor)
        )),
    ])
}

/// What the two processes of hostler hold. Pages that they share are counted for each of them.
struct Held {
    supervisor: f64,
    keeper: f64,
}

/// hostler's memory and its worker's.
fn after_a_call(ground: &Ground) -> Fallible<(Held, f64)> {
    let mut peer = Peer::mcp(&mut ground.serve("memory"), Streams::Pipes)?;
    peer.request("tools/list", &serde_json::json!({}))?;
    let worker = worker_pid(&mut peer, "sums_add")?;
    sleep(Duration::from_millis(500));
    let keeper = u64::from(peer.pid());
    let held = Held { supervisor: resident(only_child(keeper)?)?, keeper: resident(keeper)? };
    Ok((held, resident(worker)?))
}

/// The process that was started only keeps watch; the one below it serves.
fn only_child(keeper: u64) -> Fallible<u64> {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"))?;
    Ok(children.trim().parse().map_err(|_| format!("the keeper has not one child but {children:?}"))?)
}

/// The memory of the process that serves, in MB.
pub fn supervisor(peer: &Peer) -> Fallible<f64> {
    resident(only_child(u64::from(peer.pid()))?)
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
