//! Executables: what a call costs beside the same program run by hand, and how long a hundred of them take to say what they are.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::Fallible;
use crate::ground::Ground;
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, median, p50};
use crate::table::{Measured, Target, rounded};
use crate::tools::SETTLED;

/// Adds what it reads, with what every shell has built in.
const ADD: &str = r#"#!/bin/sh
if [ "$1" = --schema ]; then
  echo '{"description": "Add.", "parameters": {"a": {"type": "integer"}, "b": {"type": "integer"}}}'
  exit
fi
read -r line || :
a=${line#*\"a\":}
b=${line#*\"b\":}
echo $((${a%%[!0-9]*} + ${b%%[!0-9]*}))
"#;

/// A call, beside fork, exec and wait of the same program.
pub fn overhead(ground: &Ground) -> Fallible<Vec<Measured>> {
    const TOOL: Dialect<'static> = Dialect::Mcp("add");
    let folder = ground.folder("executables");
    let path = write(&folder, "add")?;
    sleep(SETTLED);
    // What it says is known from then on, and the list does not change while calls are timed.
    ground.command(env!("CARGO_BIN_EXE_hostler")).args(["list", "--tools"]).arg(&folder).output()?;
    let mut peer = Peer::mcp(&mut ground.serve("executables"), Streams::Pipes)?;
    peer.ask_once(TOOL)?;
    let calls = (ground.counts.calls / 100).max(20);
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds.min(9) {
        let mut by_hand = Vec::new();
        for _ in 0..calls {
            by_hand.push(run_by_hand(&path)?);
        }
        rounds.push([p50(&by_hand), p50(&peer.ask_in_turn(TOOL, calls)?)]);
    }
    let raw = format!("{} − {} µs", rounded(rounds.of(1)), rounded(rounds.of(0)));
    let over = rounds.difference(1, 0) / 1000.0;
    Ok(vec![
        Measured::against("call of an executable − the same by hand", over, " ms", Target::AtMost(3.0), Target::Open)
            .from(raw),
    ])
}

/// A call in a sandbox, beside the same without one.
pub fn walls(ground: &Ground) -> Fallible<Vec<Measured>> {
    const TOOL: Dialect<'static> = Dialect::Mcp("add");
    write(&ground.folder("walls"), "add")?;
    sleep(SETTLED);
    ground.command(env!("CARGO_BIN_EXE_hostler")).args(["list", "--tools"]).arg(ground.folder("walls")).output()?;
    let walled = "[sandbox]\npreset = \"pure\"\nrequire = true\n";
    let hosts = "[sandbox]\npreset = \"pure\"\nnetwork = [\"192.0.2.1\"]\nrequire = true\n";
    let serve = |settings: &str| ground.serve_with("walls", settings);
    let mut commands = [
        serve("")?,
        serve(walled)?,
        serve(hosts)?,
        without_namespaces(&serve("")?),
        without_namespaces(&serve(walled)?),
    ];
    let mut peers =
        commands.iter_mut().map(|command| Peer::mcp(command, Streams::Pipes)).collect::<Fallible<Vec<_>>>()?;
    let calls = (ground.counts.calls / 100).max(20);
    let mut rounds = Rounds::<5>::new();
    for peer in &mut peers {
        peer.ask_once(TOOL)?;
    }
    for _ in 0..ground.counts.rounds.min(9) {
        let mut figures = [0.0; 5];
        for (figure, peer) in figures.iter_mut().zip(&mut peers) {
            *figure = p50(&peer.ask_in_turn(TOOL, calls)?);
        }
        rounds.push(figures);
    }
    let row = |which: usize, without: usize, name: &str, most: f64| {
        let raw = format!("{} − {} µs", rounded(rounds.of(which)), rounded(rounds.of(without)));
        let over = rounds.difference(which, without) / 1000.0;
        Measured::against(name, over, " ms", Target::AtMost(most), Target::AtMost(most)).from(raw)
    };
    Ok(vec![
        row(4, 3, "start with Landlock and seccomp − without", 1.0),
        row(1, 0, "start in a sandbox − without", 15.0),
        row(2, 0, "start in a sandbox with chosen hosts − without", 15.0),
    ])
}

/// The same command where a process can have no namespaces.
fn without_namespaces(command: &Command) -> Command {
    let close = "for kind in pid mnt net; do echo 0 >/proc/sys/user/max_${kind}_namespaces; done; exec \"$@\"";
    let mut within = Command::new("unshare");
    within
        .args(["--user", "--map-root-user", "sh", "-c", close, "sh"])
        .arg(command.get_program())
        .args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => within.env(name, value),
            None => within.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        within.current_dir(folder);
    }
    within
}

fn write(folder: &Path, name: &str) -> Fallible<std::path::PathBuf> {
    fs::create_dir_all(folder)?;
    let path = folder.join(name);
    fs::write(&path, ADD)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

fn run_by_hand(path: &Path) -> Fallible<Duration> {
    let began = Instant::now();
    let mut child = Command::new(path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    child.stdin.take().ok_or("no pipe")?.write_all(b"{\"a\":20,\"b\":22}")?;
    let mut said = String::new();
    child.stdout.take().ok_or("no pipe")?.read_to_string(&mut said)?;
    child.wait()?;
    if said != "42\n" {
        return Err(format!("20 + 22 is {said}").into());
    }
    Ok(began.elapsed())
}

/// `hostler list` of a hundred executables that nobody has asked, and of the same unchanged.
pub fn asked(ground: &Ground) -> Fallible<Vec<Measured>> {
    const MANY: usize = 100;
    let folder = ground.folder("hundred-executables");
    for number in 0..MANY {
        write(&folder, &format!("tool-{number}"))?;
    }
    sleep(SETTLED);
    let list = || -> Fallible<f64> {
        let began = Instant::now();
        let done = ground.command(env!("CARGO_BIN_EXE_hostler")).args(["list", "--tools"]).arg(&folder).output()?;
        let ready = String::from_utf8(done.stdout)?.matches("ready").count();
        if ready != MANY {
            return Err(format!("{ready} of {MANY} are ready").into());
        }
        Ok(began.elapsed().as_secs_f64() * 1e3)
    };
    let mut rows = Vec::new();
    for (what, is_cold, most) in [("asked for the first time", true, 1000.0), ("unchanged", false, 20.0)] {
        let mut times = Vec::new();
        for _ in 0..ground.counts.starts {
            if is_cold && ground.catalogues().exists() {
                fs::remove_dir_all(ground.catalogues())?;
            }
            times.push(list()?);
        }
        let name = format!("hostler list, {MANY} executables, {what}");
        rows.push(Measured::against(&name, median(times), " ms", Target::AtMost(most), Target::Open));
    }
    Ok(rows)
}
