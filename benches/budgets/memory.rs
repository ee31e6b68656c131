//! Resident memory, at rest and under calls.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::Fallible;
use crate::ground::{ADD, Ground, worker_pid};
use crate::peer::{Peer, Streams};
use crate::table::{Measured, Target, rounded};
use crate::tools;

pub fn memory(ground: &Ground) -> Fallible<Vec<Measured>> {
    tools::write_packs(&ground.folder("memory"), 99)?;
    tools::write_adder(&ground.folder("memory"), "sums")?;
    sleep(tools::SETTLED);
    let mut bare = idle_interpreter(ground)?;
    let cold = after_calls(ground)?;
    let unchanged = after_calls(ground)?;
    let floor = resident(u64::from(bare.id()), "VmRSS");
    bare.kill()?;
    bare.wait()?;
    let floor = floor?;
    let row = |what: &str, held: &Held, now: f64, aim: f64| {
        let what = format!("hostler RSS, 100 tool files {what}");
        let from = format!(
            "supervisor {} MB, {} of it its own + keeper {} MB",
            rounded(held.supervisor),
            rounded(held.own),
            rounded(held.keeper)
        );
        let (now, aim) = (Target::AtMost(now), Target::AtMost(aim));
        Measured::against(&what, held.supervisor + held.keeper, " MB", now, aim).from(from)
    };
    Ok(vec![
        row("read from cold, idle after a call", &cold.idle, 12.0, 8.0),
        row("unchanged, idle after a call", &unchanged.idle, 12.0, 8.0),
        row("unchanged, under calls", &unchanged.busy, 14.0, 12.0),
        Measured::plain("idle worker RSS − the bare interpreter's", unchanged.worker - floor, " MB").from(format!(
            "{} MB − {} MB",
            rounded(unchanged.worker),
            rounded(floor)
        )),
    ])
}

/// What the two processes of hostler hold, in MB. Pages that they share are counted for each of them.
struct Held {
    supervisor: f64,
    /// What exists only for the supervisor: not the pages of files.
    own: f64,
    keeper: f64,
}

struct Weighed {
    idle: Held,
    busy: Held,
    worker: f64,
}

/// hostler's memory some time after its first call and right after many, and its worker's.
fn after_calls(ground: &Ground) -> Fallible<Weighed> {
    let mut peer = Peer::mcp(&mut ground.serve("memory"), Streams::Pipes)?;
    peer.request("tools/list", &serde_json::json!({}))?;
    let worker = worker_pid(&mut peer, "sums_add")?;
    sleep(Duration::from_secs(1));
    let keeper = u64::from(peer.pid());
    let supervisor = only_child(keeper)?;
    let held = || -> Fallible<Held> {
        Ok(Held {
            supervisor: resident(supervisor, "VmRSS")?,
            own: resident(supervisor, "RssAnon")?,
            keeper: resident(keeper, "VmRSS")?,
        })
    };
    let idle = held()?;
    peer.ask_in_turn(ADD, 3000)?;
    Ok(Weighed { idle, busy: held()?, worker: resident(worker, "VmRSS")? })
}

/// The process that was started only keeps watch; the one below it serves.
fn only_child(keeper: u64) -> Fallible<u64> {
    let children = fs::read_to_string(format!("/proc/{keeper}/task/{keeper}/children"))?;
    Ok(children.trim().parse().map_err(|_| format!("the keeper has not one child but {children:?}"))?)
}

/// The memory of its own of the process that serves, in MB: pages of files come and go.
pub fn supervisor(peer: &Peer) -> Fallible<f64> {
    resident(only_child(u64::from(peer.pid()))?, "RssAnon")
}

/// An interpreter that waits for its input, as a worker does.
fn idle_interpreter(ground: &Ground) -> Fallible<std::process::Child> {
    let mut python: Command = ground.command(ground.python());
    python.args(["-I", "-c", "import sys; sys.stdin.readline()"]);
    Ok(python.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?)
}

/// A figure of a process's memory in MB, as the kernel counts it.
pub fn resident(pid: u64, figure: &str) -> Fallible<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let of_figure = |line: &str| line.strip_prefix(figure)?.strip_prefix(':').map(str::to_owned);
    let line = status.lines().find_map(of_figure).ok_or_else(|| format!("no {figure}"))?;
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes / 1024.0)
}
