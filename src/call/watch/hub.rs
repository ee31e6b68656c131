//! Passes events to subscribers: found by an index, serialised once, queued within limits.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::mem;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::event::{EventFilter, EventKind, Subject};

/// The unread events of all subscribers together, and of one at most.
const EVENTS: (usize, usize) = (1 << 18, 1 << 10);
/// The bytes of these events.
const BYTES: (usize, usize) = (64 << 20, 4 << 20);
/// The events for which a subscriber keeps room that has none.
const MOST_RESERVED: usize = 256;
/// The pause between two batches of a subscriber: under load, a wake-up and a write for each event would cost more than the calls.
const PAUSE: Duration = Duration::from_millis(10);

/// The subscribers.
#[derive(Default)]
pub(super) struct Hub {
    /// The kinds that some subscriber wants. Read before anything else is done for an event.
    wanted: AtomicU32,
    /// Locked while an event is passed on, so that all subscribers receive events in the same order.
    index: Mutex<Index>,
}

/// Each subscriber is in one bucket for a member of its filter, or in one for each of its kinds if it has no other.
#[derive(Default)]
struct Index {
    last: u64,
    all: BTreeMap<u64, Arc<Queue>>,
    /// Subscribers by wanted kind.
    wanting: [usize; EventKind::COUNT],
    calls: HashMap<String, Bucket>,
    tools: HashMap<String, Bucket>,
    tags: HashMap<String, Bucket>,
    sessions: HashMap<u64, Bucket>,
    rest: [Bucket; EventKind::COUNT],
}

#[derive(Default)]
struct Bucket {
    /// What any of them wants.
    kinds: u32,
    queues: Vec<Arc<Queue>>,
}

/// The member of a subscriber's filter by which it is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Call,
    Tool,
    Tag,
    Session,
    Rest,
}

struct Queue {
    id: u64,
    filter: EventFilter,
    kinds: u32,
    place: Place,
    /// Locked only to add or to take.
    unread: Mutex<Unread>,
    filled: Notify,
}

#[derive(Default)]
struct Unread {
    events: VecDeque<Arc<RawValue>>,
    bytes: usize,
    lost: u64,
    is_closed: bool,
}

/// What one subscriber may leave unread.
#[derive(Debug, Clone, Copy)]
struct Room {
    events: usize,
    bytes: usize,
}

impl Room {
    fn of_one_of(subscribers: usize) -> Self {
        let share = |(all, most): (usize, usize)| (all / subscribers.max(1)).min(most);
        Self { events: share(EVENTS).max(1), bytes: share(BYTES) }
    }
}

impl Hub {
    /// Whether some subscriber wants events of this kind.
    pub fn wants(&self, kind: EventKind) -> bool {
        self.wanted.load(Ordering::Relaxed) & kind.bit() != 0
    }

    /// Passes an event to every subscriber whose filter it matches. It is written only if there is one.
    pub fn publish(&self, subject: &Subject<'_>, write: impl FnOnce() -> Option<Box<RawValue>>) {
        let index = self.index.lock();
        let room = Room::of_one_of(index.all.len());
        let mut write = Some(write);
        let mut event: Option<Arc<RawValue>> = None;
        for queue in index.found(subject) {
            if let Some(write) = write.take() {
                event = write().map(Arc::from);
            }
            let Some(event) = &event else { return };
            queue.push(event, room);
        }
    }

    pub fn subscribe(self: &Arc<Self>, filter: EventFilter) -> Subscription {
        let mut index = self.index.lock();
        index.last += 1;
        let (id, kinds, place) = (index.last, filter.kinds(), index.place_of(&filter));
        let queue = Arc::new(Queue { id, kinds, place, filter, unread: Mutex::default(), filled: Notify::new() });
        index.add(&queue);
        self.wanted.store(index.wanted(), Ordering::Relaxed);
        // Those that came when there was more room for each. Not every time: it takes a look at each.
        if index.all.len().is_power_of_two() {
            let room = Room::of_one_of(index.all.len());
            index.all.values().for_each(|queue| queue.unread.lock().keep_within(room));
        }
        Subscription { hub: Arc::downgrade(self), queue, not_before: Instant::now() }
    }

    /// The keys that subscribers are found by.
    #[cfg(test)]
    pub fn buckets(&self) -> usize {
        let Index { calls, tools, tags, sessions, .. } = &*self.index.lock();
        calls.len() + tools.len() + tags.len() + sessions.len()
    }

    fn unsubscribe(&self, queue: &Arc<Queue>) {
        let mut index = self.index.lock();
        index.remove(queue);
        self.wanted.store(index.wanted(), Ordering::Relaxed);
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        for queue in self.index.get_mut().all.values() {
            queue.unread.lock().is_closed = true;
            queue.filled.notify_one();
        }
    }
}

impl Index {
    fn found<'i>(&'i self, subject: &'i Subject<'i>) -> impl Iterator<Item = &'i Arc<Queue>> {
        let bit = subject.kind.bit();
        let tags = subject.tags.iter().enumerate();
        // A tag may be there twice.
        let tags = tags.filter(|(place, tag)| !subject.tags[..*place].contains(tag)).map(|(_, tag)| tag);
        let tags = tags.filter_map(|tag| self.tags.get(tag));
        let of_call = subject.call.and_then(|call| self.calls.get(call));
        let of_tool = subject.tool.and_then(|tool| self.tools.get(tool));
        let of_session = subject.session.and_then(|session| self.sessions.get(&session));
        let rest = &self.rest[subject.kind as usize];
        let buckets = of_call.into_iter().chain(of_tool).chain(tags).chain(of_session).chain([rest]);
        buckets
            .filter(move |bucket| bucket.kinds & bit != 0)
            .flat_map(|bucket| &bucket.queues)
            .filter(|queue| queue.matches(subject))
    }

    /// Under the member of its filter that the fewest others are found by.
    fn place_of(&self, filter: &EventFilter) -> Place {
        let size = |bucket: Option<&Bucket>| bucket.map_or(0, |bucket| bucket.queues.len());
        let found = [
            filter.call.as_ref().map(|call| (size(self.calls.get(call)), Place::Call)),
            filter.tag.as_ref().map(|tag| (size(self.tags.get(tag)), Place::Tag)),
            filter.session.as_ref().map(|session| (size(self.sessions.get(session)), Place::Session)),
            filter.tool.as_ref().map(|tool| (size(self.tools.get(tool)), Place::Tool)),
        ];
        found.into_iter().flatten().min_by_key(|(size, _)| *size).map_or(Place::Rest, |(_, place)| place)
    }

    /// Changes the buckets of a subscriber, and forgets those that become empty.
    fn change(&mut self, queue: &Arc<Queue>, change: impl Fn(&mut Bucket)) {
        fn one<K: Hash + Eq + Clone>(map: &mut HashMap<K, Bucket>, key: Option<&K>, change: impl Fn(&mut Bucket)) {
            let Some(key) = key else { return };
            let bucket = map.entry(key.clone()).or_default();
            change(bucket);
            if bucket.queues.is_empty() {
                map.remove(key);
            }
        }
        let filter = &queue.filter;
        match queue.place {
            Place::Call => one(&mut self.calls, filter.call.as_ref(), change),
            Place::Tool => one(&mut self.tools, filter.tool.as_ref(), change),
            Place::Tag => one(&mut self.tags, filter.tag.as_ref(), change),
            Place::Session => one(&mut self.sessions, filter.session.as_ref(), change),
            Place::Rest => {
                let wanted = self.rest.iter_mut().enumerate().filter(|(kind, _)| queue.kinds & (1 << kind) != 0);
                wanted.for_each(|(_, bucket)| change(bucket));
            }
        }
    }

    fn add(&mut self, queue: &Arc<Queue>) {
        self.all.insert(queue.id, Arc::clone(queue));
        for (kind, count) in self.wanting.iter_mut().enumerate() {
            *count += usize::from(queue.kinds & (1 << kind) != 0);
        }
        self.change(queue, |bucket| {
            bucket.kinds |= queue.kinds;
            bucket.queues.push(Arc::clone(queue));
        });
    }

    fn remove(&mut self, queue: &Arc<Queue>) {
        self.all.remove(&queue.id);
        for (kind, count) in self.wanting.iter_mut().enumerate() {
            *count -= usize::from(queue.kinds & (1 << kind) != 0);
        }
        self.change(queue, |bucket| {
            bucket.queues.retain(|other| other.id != queue.id);
            bucket.kinds = bucket.queues.iter().fold(0, |all, queue| all | queue.kinds);
        });
    }

    /// The kinds that some subscriber wants.
    fn wanted(&self) -> u32 {
        let wanted = self.wanting.iter().enumerate().filter(|(_, count)| **count > 0);
        wanted.fold(0, |all, (kind, _)| all | (1 << kind))
    }
}

impl Queue {
    fn matches(&self, subject: &Subject<'_>) -> bool {
        let EventFilter { call, tool, tag, session, kinds: _ } = &self.filter;
        self.kinds & subject.kind.bit() != 0
            && call.as_ref().is_none_or(|call| subject.call == Some(call))
            && tool.as_ref().is_none_or(|tool| subject.tool == Some(tool))
            && session.is_none_or(|session| subject.session == Some(session))
            && tag.as_ref().is_none_or(|tag| subject.tags.contains(tag))
    }

    fn push(&self, event: &Arc<RawValue>, room: Room) {
        let was_empty = {
            let mut unread = self.unread.lock();
            let was_empty = unread.events.is_empty();
            unread.bytes += event.get().len();
            unread.events.push_back(Arc::clone(event));
            unread.keep_within(room);
            was_empty
        };
        // A subscriber that has unread events was notified of them.
        if was_empty {
            self.filled.notify_one();
        }
    }
}

impl Unread {
    /// Drops the oldest events beyond the limits, but never the newest one.
    fn keep_within(&mut self, room: Room) {
        while self.events.len() > 1
            && (self.events.len() > room.events || self.bytes > room.bytes)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.get().len();
            self.lost += 1;
        }
    }
}

/// Events for one subscriber. Dropping it ends the subscription.
pub struct Subscription {
    hub: Weak<Hub>,
    queue: Arc<Queue>,
    not_before: Instant,
}

/// Events in the order in which they happened.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// How many events before these were dropped, because they were not read in time.
    pub lost: u64,
    /// The events, each a JSON object.
    pub events: Vec<Arc<RawValue>>,
}

impl Subscription {
    /// All events since the last batch, once there is one; `None` when there will be none. Under load it waits a little, so
    /// that a batch has many.
    pub async fn next(&mut self) -> Option<Batch> {
        sleep_until(self.not_before).await;
        loop {
            let filled = self.queue.filled.notified();
            if let Some(found) = self.take() {
                self.not_before = Instant::now() + PAUSE;
                return Some(found);
            }
            if self.queue.unread.lock().is_closed {
                return None;
            }
            filled.await;
        }
    }

    /// The unread events, if there are any.
    pub(super) fn take(&self) -> Option<Batch> {
        let mut unread = self.queue.unread.lock();
        if unread.events.is_empty() {
            return None;
        }
        unread.bytes = 0;
        let lost = mem::take(&mut unread.lost);
        // Under load the next batch has as many. Without it, a subscriber holds little.
        let next = VecDeque::with_capacity(unread.events.len().min(MOST_RESERVED));
        let events = mem::replace(&mut unread.events, next).into();
        Some(Batch { lost, events })
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(hub) = self.hub.upgrade() {
            hub.unsubscribe(&self.queue);
        }
    }
}
