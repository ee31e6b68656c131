//! What needs others' programs: a Node client, a FastMCP server. Where they are not, the rows are skipped with a word.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::{ADD, Ground};
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};
use crate::warm::{BLOCKING, STREAMS, beside_blocking};

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/budgets/peers").join(name)
}

/// A real Node client, whose child's standard streams are sockets.
pub fn node(ground: &Ground) -> Fallible<Vec<Measured>> {
    let what = "from a Node client p50";
    let Ok(node) = which::which("node") else { return Ok(vec![Measured::skipped(what, "node is not installed")]) };
    let server = ground.serve("one");
    let mut client = ground.command(node);
    client.arg(script("node_client.mjs")).arg(STREAMS).arg(BLOCKING);
    client.arg(ground.counts.rounds.to_string()).arg(ground.counts.calls.to_string());
    client.arg(server.get_program()).args(server.get_args());
    let output = client.stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the Node client ended with {}", output.status).into());
    }
    let told: Vec<[f64; 2]> = serde_json::from_slice(&output.stdout)?;
    let mut rounds = Rounds::new();
    for round in told {
        rounds.push(round);
    }
    Ok(vec![beside_blocking(what, &rounds)])
}

/// The same function in a Python server that runs its tools itself.
pub fn fastmcp(ground: &Ground) -> Fallible<Vec<Measured>> {
    let what = "FastMCP in-process p50 ÷ ours, one processor";
    let with = |words: &[&str]| -> Command {
        let mut uv = ground.command("uv");
        uv.args(["run", "--no-project", "--quiet", "--with", "fastmcp", "python"]).args(words);
        uv.env("FASTMCP_LOG_LEVEL", "ERROR").env("FASTMCP_CHECK_FOR_UPDATES", "off").stderr(Stdio::null());
        uv
    };
    let installed = with(&["-c", "import fastmcp"]).stdin(Stdio::null()).stdout(Stdio::null()).status()?;
    if !installed.success() {
        return Ok(vec![Measured::skipped(what, "fastmcp could not be installed")]);
    }
    let server = script("fastmcp_server.py").display().to_string();
    on_one_processor(|| beside_fastmcp(ground, what, &mut with(&[&server])))
}

fn beside_fastmcp(ground: &Ground, what: &str, server: &mut Command) -> Fallible<Vec<Measured>> {
    let mut theirs = Peer::mcp(server, Streams::Pipes)?;
    let named = theirs.request("tools/list", &Value::Object(serde_json::Map::new()))?;
    if named["tools"][0]["name"] != "add" {
        return Err(format!("FastMCP lists {named}").into());
    }
    theirs.ask_once(Dialect::Mcp("add"))?;
    let mut ours = ground.hostler(Streams::Pipes)?;
    let calls = (ground.counts.calls / 5).max(20);
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let theirs = p50(&theirs.ask_in_turn(Dialect::Mcp("add"), calls)?);
        rounds.push([theirs, p50(&ours.ask_in_turn(ADD, calls)?)]);
    }
    let [theirs, ours] = [0, 1].map(|side| rounded(rounds.of(side)));
    Ok(vec![
        Measured::against(what, rounds.ratio(0, 1), "", Target::AtLeast(20.0), Target::AtLeast(25.0))
            .from(format!("{theirs} µs ÷ {ours} µs")),
    ])
}
