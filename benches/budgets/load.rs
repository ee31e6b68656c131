//! Rows without a target that show what grows: with the number of files, with the number of tools in use.

use crate::Fallible;
use crate::ground::{ADD, Ground};
use crate::peer::{Peer, Streams};
use crate::sample::{Rounds, p50};
use crate::table::{Measured, rounded};
use crate::tools;

/// A warm call with a hundred tool files beside one with a single file.
pub fn crowd(ground: &Ground) -> Fallible<Vec<Measured>> {
    tools::write_packs(&ground.folder("crowd"), 99)?;
    tools::write_adder(&ground.folder("crowd"), "sums")?;
    let mut crowded = Peer::mcp(&mut ground.serve("crowd"), Streams::Pipes)?;
    crowded.ask_once(ADD)?;
    let mut alone = ground.hostler(Streams::Pipes)?;
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let crowded = p50(&crowded.ask_in_turn(ADD, ground.counts.calls)?);
        rounds.push([crowded, p50(&alone.ask_in_turn(ADD, ground.counts.calls)?)]);
    }
    let [crowded, alone] = [0, 1].map(|side| rounded(rounds.of(side)));
    let what = "warm call p50 with 100 tool files ÷ with one";
    Ok(vec![Measured::plain(what, rounds.ratio(0, 1), "").from(format!("{crowded} µs ÷ {alone} µs"))])
}

/// Sixty-four calls under way over eight tool files.
pub fn spread(ground: &Ground) -> Fallible<Vec<Measured>> {
    const TOOLS: usize = 8;
    const DEPTH: usize = 64;
    let names: Vec<String> = (0..TOOLS).map(|number| format!("spread_{number}_add")).collect();
    for number in 0..TOOLS {
        tools::write_adder(&ground.folder("spread"), &format!("spread_{number}"))?;
    }
    let mut peer = Peer::mcp(&mut ground.serve("spread"), Streams::Pipes)?;
    peer.ask_ahead_over(&names, TOOLS, 1)?;
    let mut rounds = Rounds::<1>::new();
    for _ in 0..ground.counts.rounds {
        rounds.push([peer.ask_ahead_over(&names, ground.counts.flight, DEPTH)? / 1000.0]);
    }
    Ok(vec![Measured::plain("64 in flight over 8 tool files", rounds.of(0), " k/s")])
}
