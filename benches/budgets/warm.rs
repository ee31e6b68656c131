//! Calls of a warm tool beside relays to the same worker.

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::{ADD, ADD_INLINE, Ground};
use crate::peer::{Peer, Streams};
use crate::question::Dialect;
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};

/// The environment variable by which hostler can be made to do without what it does for its streams.
pub const STREAMS: &str = "HOSTLER_STDIO";
/// Streams that are read and written by threads, as a file is.
pub const BLOCKING: &str = "blocking";

/// One call at a time.
pub fn sequential(ground: &Ground) -> Fallible<Vec<Measured>> {
    let calls = ground.counts.calls;
    let rounds = on_one_processor(|| in_turn(ground, |peer, dialect| Ok(p50(&peer.ask_in_turn(dialect, calls)?))))?;
    let row = |what: &str, era: usize| {
        let from = format!("{} µs ÷ {} µs", rounded(rounds.of(era)), rounded(rounds.of(SHIM)));
        Measured::against(what, rounds.ratio(era, SHIM), "", Target::AtMost(1.3), Target::AtMost(1.15)).from(from)
    };
    let bare = "  ÷ relay to a bare json.loads worker";
    Ok(vec![
        row("warm call p50 ÷ relay to the same worker, one processor", HANDSHAKE),
        row("  the same in a session without a handshake", INLINE),
        Measured::plain(bare, rounds.ratio(HANDSHAKE, BARE), "").from(format!("÷ {} µs", rounded(rounds.of(BARE)))),
    ])
}

/// Sixteen calls under way.
pub fn in_flight(ground: &Ground) -> Fallible<Vec<Measured>> {
    const DEPTH: usize = 16;
    let calls = ground.counts.flight;
    let rounds = in_turn(ground, |peer, dialect| Ok(peer.ask_ahead(dialect, calls, DEPTH)? / 1000.0))?;
    let row = |what: &str, era: usize| {
        let from = format!("{} k/s ÷ {} k/s", rounded(rounds.of(era)), rounded(rounds.of(SHIM)));
        Measured::against(what, rounds.ratio(era, SHIM), "", Target::AtLeast(0.7), Target::AtLeast(0.9)).from(from)
    };
    let bare = "  ÷ relay to a bare json.loads worker";
    Ok(vec![
        row("16 in flight, calls/s ÷ relay to the same worker", HANDSHAKE),
        row("  the same in a session without a handshake", INLINE),
        Measured::plain(bare, rounds.ratio(HANDSHAKE, BARE), "").from(format!("÷ {} k/s", rounded(rounds.of(BARE)))),
    ])
}

/// The sides of a round: hostler in a session of either kind, and the two relays.
const HANDSHAKE: usize = 0;
const INLINE: usize = 1;
const SHIM: usize = 2;
const BARE: usize = 3;

/// Lets all of them take turns at the same work.
fn in_turn(ground: &Ground, work: impl Fn(&mut Peer, Dialect<'static>) -> Fallible<f64>) -> Fallible<Rounds<4>> {
    let mut peers = [
        (ground.hostler(Streams::Pipes)?, ADD),
        (ground.hostler_inline()?, ADD_INLINE),
        (ground.relay_to_shim()?, Dialect::Worker),
        (ground.relay_to_bare()?, Dialect::Worker),
    ];
    let mut rounds = Rounds::new();
    for _ in 0..ground.counts.rounds {
        let mut round = [0.0; 4];
        for (side, (peer, dialect)) in round.iter_mut().zip(&mut peers) {
            *side = work(peer, *dialect)?;
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// The same over sockets, beside hostler with streams that block.
pub fn sockets(ground: &Ground) -> Fallible<Vec<Measured>> {
    let mut blocking = Peer::mcp(ground.serve("one").env(STREAMS, BLOCKING), Streams::Sockets)?;
    blocking.ask_once(ADD)?;
    let mut peers = [ground.hostler(Streams::Sockets)?, blocking];
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        let mut round = [0.0; 2];
        for (side, peer) in round.iter_mut().zip(&mut peers) {
            *side = p50(&peer.ask_in_turn(ADD, ground.counts.calls)?);
        }
        rounds.push(round);
    }
    Ok(vec![beside_blocking("over sockets p50", &rounds)])
}

/// A row of what polled streams are worth.
pub fn beside_blocking(what: &str, rounds: &Rounds<2>) -> Measured {
    let [ours, blocking] = [0, 1].map(|side| rounded(rounds.of(side)));
    let (now, aim) = (Target::AtMost(0.7), Target::AtMost(0.6));
    Measured::against(&format!("{what} ÷ blocking streams"), rounds.ratio(0, 1), "", now, aim)
        .from(format!("{ours} µs ÷ {blocking} µs"))
}
