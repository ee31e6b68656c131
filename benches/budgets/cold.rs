//! The first call of a tool whose environment is there, beside the start of the bare interpreter at the same moment.

use std::process::Stdio;
use std::time::Instant;

use crate::Fallible;
use crate::ground::{Ground, Launcher};
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::Rounds;
use crate::table::{Measured, Target, rounded};
use crate::tools;

pub fn cold(ground: &Ground) -> Fallible<Vec<Measured>> {
    // One file more than is measured: the first call lays out the shim and looks for uv.
    for number in 0..=ground.counts.starts {
        tools::write_adder(&ground.folder("cold"), &format!("fresh_{number}"))?;
    }
    [Launcher::Uv, Launcher::Direct].into_iter().map(|launcher| through(ground, launcher)).collect()
}

fn through(ground: &Ground, launcher: Launcher) -> Fallible<Measured> {
    let mut peer = Peer::mcp(&mut ground.serve_by("cold", launcher), Streams::Pipes)?;
    peer.ask_once(Dialect::Mcp("fresh_0_add"))?;
    let mut rounds = Rounds::<2>::new();
    for number in 1..=ground.counts.starts {
        let call = peer.ask_once(Dialect::Mcp(&format!("fresh_{number}_add")))?.as_secs_f64();
        rounds.push([call * 1e3, bare_start(ground)? * 1e3]);
    }
    let [call, bare] = [0, 1].map(|side| rounded(rounds.of(side)));
    let what = format!("cold start (launcher {:?}) − the bare interpreter's", launcher.word());
    Ok(Measured::against(&what, rounds.difference(0, 1), " ms", Target::AtMost(30.0), Target::AtMost(5.0))
        .from(format!("{call} ms − {bare} ms")))
}

fn bare_start(ground: &Ground) -> Fallible<f64> {
    let mut python = ground.command(ground.python());
    python.args(["-I", "-c", "pass"]).stdin(Stdio::null());
    let began = Instant::now();
    if !python.status()?.success() {
        return Err("the bare interpreter does not start".into());
    }
    Ok(began.elapsed().as_secs_f64())
}
