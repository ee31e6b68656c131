//! From the save of a tool file to the first answer of what was saved. Its environment is there. Each version's function
//! has a name of its own, so that no earlier one could have answered.

use std::time::Instant;

use crate::Fallible;
use crate::ground::Ground;
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::median;
use crate::table::{Measured, Target, rounded};
use crate::tools::write_adder_as;

const CHANGED: &str = "notifications/tools/list_changed";

pub fn reload(ground: &Ground) -> Fallible<Vec<Measured>> {
    Ok(vec![called_at_once(ground)?, called_when_told(ground)?])
}

/// A client that knows of the edit. Without a handshake, since it would be told of it between the answers.
fn called_at_once(ground: &Ground) -> Fallible<Measured> {
    let folder = ground.folder("called");
    write_adder_as(&folder, "edited", "add_0")?;
    let mut peer = Peer::spawn(&mut ground.serve("called"), Streams::Pipes)?;
    peer.ask_once(Dialect::Inline("edited_add_0"))?;
    let mut times = Vec::new();
    for number in 1..=ground.counts.starts {
        let began = Instant::now();
        write_adder_as(&folder, "edited", &format!("add_{number}"))?;
        peer.ask_once(Dialect::Inline(&format!("edited_add_{number}")))?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(row("called at once", times))
}

/// A client that waits to be told that its list of tools changed.
fn called_when_told(ground: &Ground) -> Fallible<Measured> {
    let folder = ground.folder("told");
    write_adder_as(&folder, "edited", "add_0")?;
    let mut peer = Peer::mcp(&mut ground.serve("told"), Streams::Pipes)?;
    peer.ask_once(Dialect::Mcp("edited_add_0"))?;
    let mut times = Vec::new();
    for number in 1..=ground.counts.starts {
        let began = Instant::now();
        write_adder_as(&folder, "edited", &format!("add_{number}"))?;
        let mut line = Vec::new();
        peer.read_line(&mut line)?;
        if !String::from_utf8_lossy(&line).contains(CHANGED) {
            return Err(format!("{} came, and not {CHANGED}", String::from_utf8_lossy(&line)).into());
        }
        peer.ask_once(Dialect::Mcp(&format!("edited_add_{number}")))?;
        times.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok(row("after list_changed", times))
}

fn row(how: &str, times: Vec<f64>) -> Measured {
    let worst = times.iter().copied().fold(0.0, f64::max);
    let spread = format!("worst {} ms of {}", rounded(worst), times.len());
    let what = format!("save to first answer of it, {how}");
    Measured::against(&what, median(times), " ms", Target::AtMost(1000.0), Target::AtMost(200.0)).from(spread)
}
