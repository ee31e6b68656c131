//! What it costs a call that it is written down.

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use hostler::bench::{leave, recovery};

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::{ADD, Ground};
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, median, p50};
use crate::table::{Measured, Target, rounded};
use crate::tools;

const OFF: &str = "[journal]\nenabled = false\n";
const KEPT: &str = "";
const SYNCED: &str = "[tool]\njournal = \"synced\"\n";
const LONG: Dialect<'static> = Dialect::Long("long_add");
/// Calls under way.
const DEPTH: usize = 16;
/// Calls of a month, and calls that were open when their hostler was killed.
const ENDED: u32 = 100_000;
const OPEN: u32 = 1000;

/// One call at a time, sixteen under way, and calls with long arguments.
pub fn calls(ground: &Ground) -> Fallible<Vec<Measured>> {
    tools::write_adder(&ground.folder("journal"), "sums")?;
    tools::write_long(&ground.folder("journal"), "long")?;
    let mut rows = on_one_processor(|| in_turn(ground))?;
    rows.push(in_flight(ground)?);
    rows.push(synced(ground)?);
    rows.push(recovered(ground)?);
    rows.push(started(ground)?);
    Ok(rows)
}

fn in_turn(ground: &Ground) -> Fallible<Vec<Measured>> {
    let mut peers = [peer(ground, OFF)?, peer(ground, KEPT)?];
    let (mut short, mut long) = (Rounds::<4>::new(), Rounds::<2>::new());
    for _ in 0..ground.counts.rounds {
        let mut round = [0.0; 4];
        let mut long_round = [0.0; 2];
        for (side, peer) in peers.iter_mut().enumerate() {
            let times = peer.ask_in_turn(ADD, ground.counts.calls)?;
            round[side] = p50(&times);
            round[side + 2] = p99(&times);
            long_round[side] = p50(&peer.ask_in_turn(LONG, ground.counts.calls)?);
        }
        short.push(round);
        long.push(long_round);
    }
    let from = |rounds: [f64; 2]| format!("{} µs ÷ {} µs", rounded(rounds[1]), rounded(rounds[0]));
    Ok(vec![
        Measured::against(
            "warm call that is kept ÷ one that is not",
            short.ratio(1, 0),
            "",
            Target::AtMost(1.1),
            Target::AtMost(1.06),
        )
        .from(from([short.of(0), short.of(1)])),
        Measured::plain("  the same, p99", short.ratio(3, 2), "").from(from([short.of(2), short.of(3)])),
        Measured::against(
            "  the same with 10 KB of arguments, p50",
            long.ratio(1, 0),
            "",
            Target::AtMost(1.3),
            Target::AtMost(1.15),
        )
        .from(from([long.of(0), long.of(1)])),
    ])
}

fn in_flight(ground: &Ground) -> Fallible<Measured> {
    let mut peers = [peer(ground, OFF)?, peer(ground, KEPT)?];
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let mut round = [0.0; 2];
        for (side, peer) in round.iter_mut().zip(&mut peers) {
            *side = peer.ask_ahead(ADD, ground.counts.flight, DEPTH)? / 1000.0;
        }
        rounds.push(round);
    }
    let from = format!("{} k/s ÷ {} k/s", rounded(rounds.of(1)), rounded(rounds.of(0)));
    let what = "16 in flight, calls/s that are kept ÷ that are not";
    Ok(Measured::against(what, rounds.ratio(1, 0), "", Target::AtLeast(0.9), Target::AtLeast(0.95)).from(from))
}

/// Two of them stand between a call that must be on the disk and its answer.
fn synced(ground: &Ground) -> Fallible<Measured> {
    let mut peer = peer(ground, SYNCED)?;
    let calls = ground.counts.calls.min(200);
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds.min(5) {
        rounds.push([p50(&peer.ask_in_turn(ADD, calls)?), fdatasync(ground, calls)?]);
    }
    let from = format!("{} µs ÷ {} µs", rounded(rounds.of(0)), rounded(rounds.of(1)));
    Ok(Measured::plain("warm call that is synced ÷ this disk's fdatasync", rounds.ratio(0, 1), "").from(from))
}

/// What a hostler that is killed leaves behind a month of calls.
fn recovered(ground: &Ground) -> Fallible<Measured> {
    let (folder, mut times) = (ground.folder("left"), Vec::new());
    leave(&folder, ENDED, OPEN)?;
    for _ in 0..ground.counts.rounds.min(5) {
        // Those that were not begun are the next one's again, which is gone, too.
        let (took, to_run) = recovery(&folder).ok_or("nothing was recovered")?;
        if to_run != OPEN as usize {
            return Err(format!("{to_run} calls of {OPEN} were recovered").into());
        }
        times.push(took.as_secs_f64() * 1e3);
    }
    let what = "recovery of 1,000 open calls beside 100,000 that ended";
    Ok(Measured::against(what, median(times), " ms", Target::AtMost(200.0), Target::AtMost(100.0)))
}

/// From the start of the process to the answer to its first request.
fn started(ground: &Ground) -> Fallible<Measured> {
    let mut rounds = Rounds::<2>::new();
    let mut commands = [ground.serve_with("journal", OFF)?, ground.serve_with("journal", KEPT)?];
    for _ in 0..ground.counts.starts.max(5) {
        let mut round = [0.0; 2];
        for (side, command) in round.iter_mut().zip(&mut commands) {
            let began = Instant::now();
            drop(Peer::mcp(command, Streams::Pipes)?);
            *side = began.elapsed().as_secs_f64() * 1e3;
        }
        rounds.push(round);
    }
    let from = format!("{} ms − {} ms", rounded(rounds.of(1)), rounded(rounds.of(0)));
    let what = "start with a journal − without";
    Ok(Measured::against(what, rounds.difference(1, 0), " ms", Target::AtMost(2.0), Target::AtMost(1.0)).from(from))
}

/// How long the disk takes for a few hundred bytes, in microseconds.
fn fdatasync(ground: &Ground, count: usize) -> Fallible<f64> {
    let mut file = File::create(ground.folder("synced"))?;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        file.write_all(&[0; 300])?;
        let began = Instant::now();
        file.sync_data()?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
    }
    Ok(median(times))
}

fn peer(ground: &Ground, settings: &str) -> Fallible<Peer> {
    let mut peer = Peer::mcp(&mut ground.serve_with("journal", settings)?, Streams::Pipes)?;
    peer.ask_once(ADD)?;
    peer.ask_once(LONG)?;
    Ok(peer)
}

fn p99(times: &[std::time::Duration]) -> f64 {
    let mut sorted: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() * 99 / 100).copied().unwrap_or(f64::NAN)
}
