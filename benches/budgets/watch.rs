//! What it costs a warm call that others watch it: subscribers whose filter it does not match, subscribers that read its events,
//! and what is counted and kept of every call. Within one process: a face that passes events on has costs of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hostler::bench::{EventFilter, EventKind, Watch, record_ends, watch as watch_of};
use hostler::{CallRequest, Hostler};
use serde_json::{Map, json};
use tokio::task::JoinSet;

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::Ground;
use crate::sample::{Rounds, median, p50};
use crate::table::{Measured, Target, rounded};

const STRANGERS: u64 = 1000;
const READERS: usize = 10;
/// Ends that are recorded between two looks at the clock.
const ENDS: u32 = 1000;

pub fn watch(ground: &Ground) -> Fallible<Vec<Measured>> {
    on_one_processor(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(measured(ground))
    })
}

async fn measured(ground: &Ground) -> Fallible<Vec<Measured>> {
    let hostler = ground.builder("one").open()?;
    let watch = watch_of(hostler.runtime());
    let calls = ground.counts.calls;
    in_turn(&hostler, calls).await?;
    let mut rounds = Rounds::<3>::new();
    for _ in 0..ground.counts.rounds {
        let alone = p50(&in_turn(&hostler, calls).await?);
        let strangers: Vec<_> = (0..STRANGERS).map(|number| watch.subscribe(of_another(number))).collect();
        let unmatched = p50(&in_turn(&hostler, calls).await?);
        drop(strangers);
        let heard = Arc::new(AtomicUsize::new(0));
        let readers = readers(&watch, &heard);
        let matched = p50(&in_turn(&hostler, calls).await?);
        drop(readers);
        if heard.load(Ordering::Relaxed) < READERS * calls {
            return Err(format!("of {calls} calls, {READERS} readers heard {heard:?} events").into());
        }
        rounds.push([alone, unmatched, matched]);
    }
    let ends = (0..ground.counts.rounds * 10).map(|_| record_ends(&watch, ENDS).as_secs_f64() * 1e6);
    let end = median(ends.collect());
    hostler.close().await;
    let alone = rounds.of(0);
    let row = |what: &str, side| {
        let from = format!("{} µs ÷ {} µs", rounded(rounds.of(side)), rounded(alone));
        Measured::against(what, rounds.ratio(side, 0), "", Target::AtMost(1.1), Target::AtMost(1.02)).from(from)
    };
    let counted = Measured::against(
        "  what is counted and kept of a call ÷ the call",
        end / alone,
        "",
        Target::AtMost(0.02),
        Target::AtMost(0.01),
    );
    Ok(vec![
        row("warm call with 1,000 subscribers that do not match ÷ none", 1),
        row("  with 10 subscribers that read its events ÷ none", 2),
        counted.from(format!("{} µs ÷ {} µs", rounded(end), rounded(alone))),
    ])
}

/// A filter that no call of the bench matches.
fn of_another(number: u64) -> EventFilter {
    let none = EventFilter::default();
    let name = Some(format!("another.{number}"));
    match number % 5 {
        0 => EventFilter { call: name, ..none },
        1 => EventFilter { tool: name, ..none },
        2 => EventFilter { tag: name, tool: Some("sums.add".to_owned()), ..none },
        3 => EventFilter { session: Some(number + 1_000_000), ..none },
        _ => EventFilter { kinds: Some(vec![EventKind::WorkerExited]), ..none },
    }
}

fn readers(watch: &Arc<Watch>, heard: &Arc<AtomicUsize>) -> JoinSet<()> {
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let filter = EventFilter { tool: Some("sums.add".to_owned()), ..EventFilter::default() };
        let (mut subscription, heard) = (watch.subscribe(filter), Arc::clone(heard));
        readers.spawn(async move {
            while let Some(batch) = subscription.next().await {
                heard.fetch_add(batch.events.len(), Ordering::Relaxed);
            }
        });
    }
    readers
}

pub async fn in_turn(hostler: &Hostler, calls: usize) -> Fallible<Vec<Duration>> {
    let mut times = Vec::with_capacity(calls);
    for number in 0..calls {
        let arguments = Map::from_iter([("a".to_owned(), json!(number)), ("b".to_owned(), json!(1))]);
        let request = CallRequest::new("sums.add", arguments);
        let began = Instant::now();
        let outcome = hostler.call(request).await;
        times.push(began.elapsed());
        match &outcome.ended {
            Ok(sum) if sum.get() == (number + 1).to_string() => {}
            other => return Err(format!("{number} + 1 is not {other:?}").into()),
        }
    }
    Ok(times)
}
