//! The hub: who receives what, in which order, and what is dropped.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::value::RawValue;

use super::event::{EventFilter, EventKind, Subject};
use super::hub::{Batch, Hub, Subscription};

const KINDS: [EventKind; 4] =
    [EventKind::ToolCallStarted, EventKind::ToolOutput, EventKind::ToolResult, EventKind::WorkerExited];

/// What an event is about, for tests.
#[derive(Debug, Clone)]
struct About {
    kind: EventKind,
    call: Option<String>,
    tool: Option<String>,
    tags: Vec<String>,
    session: Option<u64>,
}

impl About {
    fn of(kind: EventKind) -> Self {
        Self { kind, call: None, tool: None, tags: Vec::new(), session: None }
    }

    fn publish(&self, hub: &Hub, text: &str) {
        let (call, tool) = (self.call.as_deref(), self.tool.as_deref());
        let subject = Subject { kind: self.kind, call, tool, tags: &self.tags, session: self.session };
        if hub.wants(self.kind) {
            hub.publish(&subject, || RawValue::from_string(text.to_owned()).ok());
        }
    }

    /// What the documentation of a filter says, without an index.
    fn is_wanted(&self, filter: &EventFilter) -> bool {
        let kinds = filter.kinds.as_ref();
        kinds.map_or(self.kind != EventKind::ToolResult, |kinds| kinds.contains(&self.kind))
            && (filter.call.is_none() || filter.call == self.call)
            && (filter.tool.is_none() || filter.tool == self.tool)
            && (filter.session.is_none() || filter.session == self.session)
            && filter.tag.as_ref().is_none_or(|tag| self.tags.contains(tag))
    }
}

fn one_of(names: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    prop::option::of(prop::sample::select(names).prop_map(str::to_owned))
}

fn filters() -> impl Strategy<Value = EventFilter> {
    let kinds = prop::option::of(prop::collection::vec(prop::sample::select(&KINDS[..]), 0..3));
    let names = (one_of(&["c1", "c2"]), one_of(&["a.b", "a.c"]), one_of(&["t1", "t2"]));
    (names, prop::option::of(1_u64..3), kinds).prop_map(|((call, tool, tag), session, kinds)| EventFilter {
        call,
        tool,
        tag,
        session,
        kinds,
    })
}

fn events() -> impl Strategy<Value = About> {
    let names = (one_of(&["c1", "c2", "c3"]), one_of(&["a.b", "a.c", "a.d"]));
    let tags = prop::collection::vec(prop::sample::select(&["t1", "t2", "t3"][..]).prop_map(str::to_owned), 0..4);
    (prop::sample::select(&KINDS[..]), names, tags, prop::option::of(1_u64..4))
        .prop_map(|(kind, (call, tool), tags, session)| About { kind, call, tool, tags, session })
}

/// A step of a test: a subscriber comes, the subscriber of a number leaves, or something happens.
#[derive(Debug, Clone)]
enum Step {
    Subscribe(EventFilter),
    Leave(usize),
    Happen(About),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => filters().prop_map(Step::Subscribe),
        1 => (0_usize..8).prop_map(Step::Leave),
        4 => events().prop_map(Step::Happen),
    ];
    prop::collection::vec(step, 0..60)
}

fn received(subscription: &Subscription) -> Vec<String> {
    let batch = subscription.take().unwrap_or_default();
    assert_eq!(batch.lost, 0);
    batch.events.iter().map(ToString::to_string).collect()
}

proptest! {
    #[test]
    fn the_index_finds_whom_a_look_at_every_filter_finds(steps in steps()) {
        let hub = Arc::<Hub>::default();
        let mut subscribers: Vec<(EventFilter, Subscription, Vec<String>)> = Vec::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Subscribe(filter) => subscribers.push((filter.clone(), hub.subscribe(filter), Vec::new())),
                Step::Leave(place) if place < subscribers.len() => {
                    let (_, subscription, expected) = subscribers.remove(place);
                    prop_assert_eq!(received(&subscription), expected);
                }
                Step::Leave(_) => {}
                Step::Happen(about) => {
                    for (filter, _, expected) in &mut subscribers {
                        if about.is_wanted(filter) {
                            expected.push(number.to_string());
                        }
                    }
                    about.publish(&hub, &number.to_string());
                }
            }
        }
        for (_, subscription, expected) in subscribers {
            prop_assert_eq!(received(&subscription), expected);
        }
        prop_assert!(KINDS.iter().all(|kind| !hub.wants(*kind)), "all have left");
        prop_assert_eq!(hub.buckets(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_loses_the_oldest_events_and_reads_how_many() {
    let hub = Arc::<Hub>::default();
    let mut slow = hub.subscribe(EventFilter::default());
    let about = About::of(EventKind::ToolOutput);
    for number in 0..5000 {
        about.publish(&hub, &number.to_string());
    }
    let Batch { lost, events } = slow.next().await.unwrap();
    assert_eq!((lost, events.len()), (5000 - 1024, 1024));
    assert_eq!((events[0].get(), events[1023].get()), ("3976", "4999"));
    about.publish(&hub, "5000");
    let Batch { lost, events } = slow.next().await.unwrap();
    assert_eq!((lost, events.len(), events[0].get()), (0, 1, "5000"));
    // Large ones are limited by their bytes, and the newest is never dropped.
    let large = format!("\"{}\"", "x".repeat(3 << 20));
    for _ in 0..3 {
        about.publish(&hub, &large);
    }
    assert_eq!(slow.next().await.map(|batch| (batch.lost, batch.events.len())), Some((2, 1)));
}

#[test]
fn subscribers_that_never_read_hold_a_bounded_number_of_events() {
    let hub = Arc::<Hub>::default();
    let name = |number: usize| Some(format!("c{}", if number < 100 { number } else { 100 + number % 100 }));
    let about = |number: usize| About { call: name(number), ..About::of(EventKind::ToolOutput) };
    let filter = |number: usize| EventFilter { call: name(number), ..EventFilter::default() };
    let text = format!("\"{}\"", "x".repeat(1000));
    // The first ones are full before the others come.
    let mut subscribers: Vec<Subscription> = (0..100).map(|number| hub.subscribe(filter(number))).collect();
    (0..100_000).for_each(|number| about(number % 100).publish(&hub, &text));
    subscribers.extend((100..10_000).map(|number| hub.subscribe(filter(number))));
    (0..4000).for_each(|number| about(100 + number).publish(&hub, &text));
    let (mut events, mut bytes) = (0, 0);
    for subscriber in &subscribers {
        let batch = subscriber.take().unwrap();
        assert!(batch.lost > 0);
        events += batch.events.len();
        bytes += batch.events.iter().map(|event| event.get().len()).sum::<usize>();
    }
    assert!(events <= 1 << 18 && bytes <= 64 << 20, "{events} events, {bytes} bytes");
}

#[tokio::test(start_paused = true)]
async fn under_load_a_subscriber_is_woken_for_many_events_at_once() {
    let hub = Arc::<Hub>::default();
    let mut subscription = hub.subscribe(EventFilter::default());
    let publishing = tokio::spawn({
        let hub = Arc::clone(&hub);
        async move {
            for number in 0..1000 {
                About::of(EventKind::ToolOutput).publish(&hub, &number.to_string());
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        }
    });
    let (mut batches, mut events) = (0, 0);
    while events < 1000 {
        let batch = subscription.next().await.unwrap();
        (batches, events) = (batches + 1, events + batch.events.len());
    }
    publishing.await.unwrap();
    assert!(batches <= 110, "{batches} batches");
}

#[tokio::test(start_paused = true)]
async fn a_subscriber_learns_that_nothing_follows() {
    let hub = Arc::<Hub>::default();
    let mut subscription = hub.subscribe(EventFilter::default());
    About::of(EventKind::SessionEnded).publish(&hub, "0");
    drop(hub);
    assert_eq!(subscription.next().await.unwrap().events.len(), 1);
    let next = tokio::time::timeout(Duration::from_secs(10), subscription.next()).await;
    assert!(next.is_ok_and(|next| next.is_none()));
}
