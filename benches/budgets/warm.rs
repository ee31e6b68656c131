//! Calls of a warm tool beside relays to the same worker.

use crate::Fallible;
use crate::ground::{ADD, Ground};
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};

/// The environment variable by which hostler reads its standard input as rmcp does where it cannot poll it.
pub const BLOCKING: (&str, &str) = ("HOSTLER_STDIO", "blocking");

/// One call at a time.
pub fn sequential(ground: &Ground) -> Fallible<Vec<Measured>> {
    let (mut ours, mut shim, mut bare) = three(ground)?;
    let calls = ground.counts.calls;
    let mut rounds = Rounds::<3>::new();
    for _ in 0..ground.counts.rounds {
        let ours = p50(&ours.ask_in_turn(ADD, calls)?);
        let shim = p50(&shim.ask_in_turn(Dialect::Worker, calls)?);
        rounds.push([ours, shim, p50(&bare.ask_in_turn(Dialect::Worker, calls)?)]);
    }
    let [ours, shim, bare] = [0, 1, 2].map(|side| rounded(rounds.of(side)));
    let what = "warm call p50 ÷ relay to the same worker";
    Ok(vec![
        Measured::against(what, rounds.ratio(0, 1), "", Target::AtMost(1.5), Target::AtMost(1.2))
            .from(format!("{ours} µs ÷ {shim} µs")),
        Measured::plain("  ÷ relay to a bare json.loads worker", rounds.ratio(0, 2), "").from(format!("÷ {bare} µs")),
    ])
}

/// Sixteen calls under way.
pub fn in_flight(ground: &Ground) -> Fallible<Vec<Measured>> {
    const DEPTH: usize = 16;
    let (mut ours, mut shim, mut bare) = three(ground)?;
    let calls = ground.counts.flight;
    let mut rounds = Rounds::<3>::new();
    for _ in 0..ground.counts.rounds {
        let ours = ours.ask_ahead(ADD, calls, DEPTH)?;
        let shim = shim.ask_ahead(Dialect::Worker, calls, DEPTH)?;
        rounds.push([ours, shim, bare.ask_ahead(Dialect::Worker, calls, DEPTH)?]);
    }
    let [ours, shim, bare] = [0, 1, 2].map(|side| rounded(rounds.of(side) / 1000.0));
    let what = "16 in flight, calls/s ÷ relay to the same worker";
    Ok(vec![
        Measured::against(what, rounds.ratio(0, 1), "", Target::AtLeast(0.25), Target::AtLeast(0.45))
            .from(format!("{ours} k/s ÷ {shim} k/s")),
        Measured::plain("  ÷ relay to a bare json.loads worker", rounds.ratio(0, 2), "").from(format!("÷ {bare} k/s")),
    ])
}

/// The same over sockets, beside hostler as it would be with the blocking transport.
pub fn sockets(ground: &Ground) -> Fallible<Vec<Measured>> {
    let mut ours = ground.hostler(Streams::Sockets)?;
    let mut blocking = Peer::mcp(ground.serve("one").env(BLOCKING.0, BLOCKING.1), Streams::Sockets)?;
    blocking.ask_once(ADD)?;
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let ours = p50(&ours.ask_in_turn(ADD, ground.counts.calls)?);
        rounds.push([ours, p50(&blocking.ask_in_turn(ADD, ground.counts.calls)?)]);
    }
    let [ours, blocking] = [0, 1].map(|side| rounded(rounds.of(side)));
    let what = "over sockets p50 ÷ blocking standard streams";
    Ok(vec![
        Measured::against(what, rounds.ratio(0, 1), "", Target::AtMost(0.75), Target::AtMost(0.6))
            .from(format!("{ours} µs ÷ {blocking} µs")),
    ])
}

fn three(ground: &Ground) -> Fallible<(Peer, Peer, Peer)> {
    Ok((ground.hostler(Streams::Pipes)?, ground.relay_to_shim()?, ground.relay_to_bare()?))
}
