//! A process for every call, as `uv run` of a script does it, beside a warm call of the same file.
//!
//! The budget is of a tool with a dependency, as tools are: it is imported anew in every process. Without one there is
//! little but uv's own start to save, which the second row shows; no warm call is a thousand times as fast as that.

use std::process::{Command, Stdio};
use std::time::Instant;

use crate::Fallible;
use crate::ground::Ground;
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};
use crate::tools;

pub fn one_shot(ground: &Ground) -> Fallible<Vec<Measured>> {
    tools::write_script(&ground.folder("scripts"), "plain", None)?;
    tools::write_script(&ground.folder("scripts"), "heavy", Some("pydantic"))?;
    let mut rows = Vec::new();
    let what = "one-shot uv run ÷ warm call";
    if run(&mut uv_run(ground, "heavy", 1, 2)).is_ok() {
        let (ratio, from) = compare(ground, "heavy")?;
        rows.push(Measured::against(what, ratio, "", Target::AtLeast(1000.0), Target::Open).from(from));
    } else {
        rows.push(Measured::skipped(what, "its dependency, pydantic, could not be installed"));
    }
    let (ratio, from) = compare(ground, "plain")?;
    rows.push(Measured::plain("  of a tool without a dependency", ratio, "").from(from));
    Ok(rows)
}

/// The ratio, and where it comes from.
fn compare(ground: &Ground, pack: &str) -> Fallible<(f64, String)> {
    let name = format!("{pack}_add");
    let tool = Dialect::Mcp(&name);
    let mut warm = Peer::mcp(&mut ground.serve("scripts"), Streams::Pipes)?;
    warm.ask_once(tool)?;
    // Builds the script's environment.
    run(&mut uv_run(ground, pack, 1, 2))?;
    let mut rounds = Rounds::<2>::new();
    for round in 0..ground.counts.starts {
        let (a, b) = (i64::try_from(round)? * 7919, 104_729);
        let mut command = uv_run(ground, pack, a, b);
        let began = Instant::now();
        let said = run(&mut command)?;
        let elapsed = began.elapsed().as_secs_f64() * 1e6;
        if said.trim() != (a + b).to_string() {
            return Err(format!("uv run said {said:?} to {a} + {b}").into());
        }
        rounds.push([elapsed, p50(&warm.ask_in_turn(tool, ground.counts.calls / 5)?)]);
    }
    let (cold, warm) = (rounded(rounds.of(0) / 1000.0), rounded(rounds.of(1)));
    Ok((rounds.ratio(0, 1), format!("{cold} ms ÷ {warm} µs")))
}

fn uv_run(ground: &Ground, pack: &str, a: i64, b: i64) -> Command {
    let mut command = ground.command("uv");
    command.args(["run", "--quiet"]).arg(ground.folder("scripts").join(format!("{pack}.py")));
    command.arg(a.to_string()).arg(b.to_string()).stdin(Stdio::null());
    command
}

fn run(command: &mut Command) -> Fallible<String> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(format!("uv run: {}", String::from_utf8_lossy(&output.stderr)).into())
}
