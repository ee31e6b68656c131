//! One hostler for several clients, beside one for each of them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::{ADD, Ground, worker_pid};
use crate::memory::resident;
use crate::peer::{Peer, Streams};
use crate::sample::{Rounds, median, p50};
use crate::table::{Measured, Target, rounded};
use crate::tools;

/// The sides of a round.
const SHARED: usize = 0;
const ALONE: usize = 1;

/// One call at a time, and sixteen under way.
pub fn calls(ground: &Ground) -> Fallible<Vec<Measured>> {
    const DEPTH: usize = 16;
    let counts = ground.counts;
    let in_turn = on_one_processor(|| beside(ground, |peer| Ok(p50(&peer.ask_in_turn(ADD, counts.calls)?))))?;
    let in_flight = beside(ground, |peer| Ok(peer.ask_ahead(ADD, counts.flight, DEPTH)? / 1000.0))?;
    let row = |what: &str, rounds: &Rounds<2>, unit: &str, target| {
        let [shared, alone] = [SHARED, ALONE].map(|side| rounded(rounds.of(side)));
        Measured::against(what, rounds.ratio(SHARED, ALONE), "", target, Target::Open)
            .from(format!("{shared} {unit} ÷ {alone} {unit}"))
    };
    Ok(vec![
        row("shared: warm call p50 ÷ standalone, one processor", &in_turn, "µs", Target::AtMost(1.05)),
        row("shared: 16 in flight, calls/s ÷ standalone", &in_flight, "k/s", Target::AtLeast(0.95)),
    ])
}

/// A client of a shared hostler and one with its own take turns at the same work.
fn beside(ground: &Ground, work: impl Fn(&mut Peer) -> Fallible<f64>) -> Fallible<Rounds<2>> {
    let home = Home::new(ground, "calls")?;
    let mut shared = Peer::mcp(&mut home.client(ground.serve("one")), Streams::Pipes)?;
    shared.ask_once(ADD)?;
    home.serves(&shared)?;
    let mut alone = ground.hostler(Streams::Pipes)?;
    let mut rounds = Rounds::new();
    for _ in 0..ground.counts.rounds {
        rounds.push([work(&mut shared)?, work(&mut alone)?]);
    }
    Ok(rounds)
}

/// From the start of a client's process to its first answers, with and without a shared hostler that runs.
pub fn starts(ground: &Ground) -> Fallible<Vec<Measured>> {
    let home = Home::new(ground, "starts")?;
    let serve = || ground.serve("one");
    let (mut cold, mut warm, mut called) = (Rounds::<2>::new(), Rounds::<2>::new(), Rounds::<2>::new());
    let mut sizes = Vec::new();
    for _ in 0..ground.counts.starts {
        let (first, took) = greeted(&mut home.client(serve()))?;
        let (alone, took_alone) = greeted(&mut serve())?;
        cold.push([took, took_alone]);
        drop((first, alone));
        // Its worker is there for whoever comes next.
        let mut other = Peer::mcp(&mut home.client(serve()), Streams::Pipes)?;
        let worker = worker_pid(&mut other, "sums_add")?;
        let (mut peer, took) = greeted(&mut home.client(serve()))?;
        home.serves(&peer)?;
        sizes.push(resident(u64::from(peer.pid()), "VmRSS")?);
        if worker_pid(&mut peer, "sums_add")? != worker {
            return Err("two clients do not share a worker".into());
        }
        warm.push([took, exec(ground)?]);
        drop(peer);
        let asked = |command: &mut Command, method: &str, params: Value| -> Fallible<f64> {
            let began = Instant::now();
            Peer::mcp(command, Streams::Pipes)?.request_timed(method, &params).map(|(_, at)| milliseconds(at - began))
        };
        let call = json!({"name": "sums_add", "arguments": {"a": 1, "b": 2}});
        let shared = asked(&mut home.client(serve()), "tools/call", call)?;
        called.push([shared, asked(&mut serve(), "tools/list", json!({}))?]);
        drop(other);
        home.stop()?;
    }
    let row = |what: &str, rounds: &Rounds<2>, limit| {
        let [shared, other] = [SHARED, ALONE].map(|side| rounded(rounds.of(side)));
        Measured::against(what, rounds.difference(SHARED, ALONE), " ms", Target::AtMost(limit), Target::Open)
            .from(format!("{shared} ms − {other} ms"))
    };
    Ok(vec![
        Measured::against(
            "shared: RSS of an attached process",
            median(sizes),
            " MB",
            Target::AtMost(3.0),
            Target::Open,
        ),
        row("shared: attached and greeted − `hostler --version`", &warm, 2.0),
        row("shared: the first client greeted − standalone", &cold, 30.0),
        row("shared: first call, warm elsewhere − standalone list", &called, 5.0),
    ])
}

/// A client that has the answer to its `initialize`, and the milliseconds from its start.
fn greeted(command: &mut Command) -> Fallible<(Peer, f64)> {
    let began = Instant::now();
    let peer = Peer::mcp(command, Streams::Pipes)?;
    Ok((peer, milliseconds(began.elapsed())))
}

/// A start of the same program that does nothing.
fn exec(ground: &Ground) -> Fallible<f64> {
    let began = Instant::now();
    let done = ground.command(PROGRAM).arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if done.success() { Ok(milliseconds(began.elapsed())) } else { Err("`hostler --version` failed".into()) }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The proportional memory of all processes of five clients that differ as projects do: in their folders and variables.
pub fn five(ground: &Ground) -> Fallible<Vec<Measured>> {
    let names: Vec<String> = (0..10).map(|number| format!("ten_{number}")).collect();
    names.iter().try_for_each(|name| tools::write_adder(&ground.folder("ten"), name))?;
    let home = Home::new(ground, "five")?;
    let together = {
        let clients = clients(ground, &names, |command| home.client(command))?;
        let keeper = parent(home.status()?["pid"].as_u64().ok_or("no shared hostler runs")?)?;
        clients.iter().try_for_each(|client| home.serves(client))?;
        held(clients.iter().map(|client| u64::from(client.pid())).chain([keeper]))?
    };
    let apart = {
        let clients = clients(ground, &names, |command| command)?;
        held(clients.iter().map(|client| u64::from(client.pid())))?
    };
    let what = "shared: memory (PSS) of 5 clients, 10 tools ÷ standalone";
    let say = |(size, count): (f64, usize)| format!("{} MB in {count} processes", rounded(size));
    Ok(vec![Measured::against(what, together.0 / apart.0, "", Target::AtMost(0.35), Target::Open).from(format!(
        "{} ÷ {}",
        say(together),
        say(apart)
    ))])
}

/// Five clients that have called each tool.
fn clients(ground: &Ground, names: &[String], attach: impl Fn(Command) -> Command) -> Fallible<Vec<Peer>> {
    let client = |number: usize| -> Fallible<Peer> {
        let project = ground.folder(&format!("project-{number}"));
        fs::create_dir_all(&project)?;
        let mut command = attach(ground.serve_with("ten", "[tool]\ncwd = \"tool\"\n")?);
        command.current_dir(&project).env("PWD", &project).env("CLIENT_SESSION", number.to_string());
        let mut peer = Peer::mcp(&mut command, Streams::Pipes)?;
        peer.request("tools/list", &json!({}))?;
        names.iter().try_for_each(|name| worker_pid(&mut peer, &format!("{name}_add")).map(drop))?;
        Ok(peer)
    };
    (0..5).map(client).collect()
}

/// The megabytes of these processes and all below them, and how many they are.
fn held(roots: impl Iterator<Item = u64>) -> Fallible<(f64, usize)> {
    std::thread::sleep(Duration::from_secs(1));
    let mut waiting: Vec<u64> = roots.collect();
    let (mut size, mut count) = (0.0, 0);
    while let Some(pid) = waiting.pop() {
        size += proportional(pid)?;
        count += 1;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
            let children = fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
            waiting.extend(children.split_whitespace().filter_map(|pid| pid.parse::<u64>().ok()));
        }
    }
    Ok((size, count))
}

/// Pages that several processes share count in part. Of processes that are protected from others, all pages count.
fn proportional(pid: u64) -> Fallible<f64> {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { return resident(pid, "VmRSS") };
    let kilobytes = text.lines().find_map(|line| line.strip_prefix("Pss:")?.trim().strip_suffix(" kB")?.parse().ok());
    kilobytes.map_or_else(|| resident(pid, "VmRSS"), |size: f64| Ok(size / 1024.0))
}

fn parent(pid: u64) -> Fallible<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')').map(|(_, after)| after).unwrap_or_default();
    Ok(fields.split_whitespace().nth(1).ok_or("no parent")?.parse()?)
}

const PROGRAM: &str = env!("CARGO_BIN_EXE_hostler");

/// A place where the clients of one person meet. Their shared hostler ends with this value.
struct Home<'a> {
    ground: &'a Ground,
    folder: PathBuf,
}

impl<'a> Home<'a> {
    fn new(ground: &'a Ground, name: &str) -> Fallible<Self> {
        let folder = ground.folder(&format!("home-{name}"));
        fs::create_dir_all(&folder)?;
        Ok(Self { ground, folder })
    }

    fn at_home(&self, mut command: Command) -> Command {
        command.env("XDG_RUNTIME_DIR", &self.folder).env("XDG_STATE_HOME", &self.folder);
        command
    }

    /// Lets a `hostler serve` be a client of the shared hostler.
    fn client(&self, command: Command) -> Command {
        let mut command = self.at_home(command);
        command.arg("--shared");
        command
    }

    /// What the shared hostler says of itself, or null.
    fn status(&self) -> Fallible<Value> {
        let said = self.at_home(self.ground.command(PROGRAM)).args(["status", "--json"]).output()?;
        let status: Value = serde_json::from_slice(&said.stdout)?;
        Ok(if status["pid"].is_u64() { status } else { Value::Null })
    }

    /// A client that fell back to a hostler of its own would measure nothing.
    fn serves(&self, peer: &Peer) -> Fallible<()> {
        let status = self.status()?;
        let mut sessions = status["sessions"].as_array().into_iter().flatten();
        let is_there = sessions.any(|session| session["pid"] == peer.pid());
        if is_there { Ok(()) } else { Err("a client is not served by the shared hostler".into()) }
    }

    /// Ends the one that runs, and waits until its processes are gone.
    fn stop(&self) -> Fallible<()> {
        let Some(pid) = self.status()?["pid"].as_u64() else { return Ok(()) };
        let keeper = parent(pid)?;
        self.at_home(self.ground.command(PROGRAM)).arg("stop").output()?;
        let until = Instant::now() + Duration::from_secs(10);
        while Path::new(&format!("/proc/{keeper}")).exists() {
            if Instant::now() > until {
                return Err("the shared hostler does not end".into());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Home<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("budgets: {error}");
        }
    }
}
