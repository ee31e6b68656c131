//! Spans of calls, exported by OTLP over HTTP. A thread per collector sends them in batches; what does not fit in its queue or is
//! not taken by the collector is dropped and counted. No call waits for any of it.
//!
//! The crates of OpenTelemetry read the variables of the process, which here are those of one client of many.

mod answer;
mod collector;
mod encode;
mod send;
mod span;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::mem;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use self::answer::Rejected;
pub use self::collector::Collector;
use self::send::{Sender, Sent};
pub use self::span::{Span, Value};

/// Spans that wait at most. One takes half a KB, and 5 KB at most.
const MOST: usize = 8192;
/// Spans in one request at most.
const BATCH: usize = 512;
/// How long a span waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// How long the thread stays without spans.
const IDLE: Duration = Duration::from_secs(30);
/// The pauses before a batch is sent again.
const RETRIES: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4)];
/// The most that the end of the process waits for collectors.
const LAST: Duration = Duration::from_millis(800);
/// How often the log says that spans are not exported.
const SAY_AGAIN: Duration = Duration::from_mins(1);

/// Every exporter of the process. Locked only to add or to copy.
static EXPORTERS: Mutex<Vec<Weak<SpanExporter>>> = Mutex::new(Vec::new());
static EXPORTED: AtomicU64 = AtomicU64::new(0);
static DROPPED: AtomicU64 = AtomicU64::new(0);

/// Sends spans to one collector.
pub struct SpanExporter {
    collector: Collector,
    /// The configurations that name its collector.
    users: AtomicUsize,
    /// Locked only to add or to take.
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    /// Batches, the last of which is being filled.
    waiting: VecDeque<Batch>,
    /// The spans in them.
    count: usize,
    /// Whether the thread runs.
    has_thread: bool,
    /// The spans that it sends.
    sending: usize,
    /// Until when everything is to be sent.
    flush_until: Option<Instant>,
    said: Option<Instant>,
}

/// Encoded spans.
#[derive(Default)]
struct Batch {
    count: usize,
    spans: Vec<u8>,
}

impl Queue {
    fn add(&mut self, span: &Span<'_>) {
        if self.waiting.back().is_none_or(|last| last.count == BATCH) {
            self.waiting.push_back(Batch::default());
        }
        if let Some(last) = self.waiting.back_mut() {
            encode::add(&mut last.spans, span);
            last.count += 1;
            self.count += 1;
        }
    }

    fn take(&mut self) -> Option<Batch> {
        let batch = self.waiting.pop_front()?;
        self.count -= batch.count;
        Some(batch)
    }
}

impl SpanExporter {
    fn of(collector: &Collector) -> Arc<Self> {
        let mut exporters = EXPORTERS.lock();
        exporters.retain(|exporter| exporter.strong_count() > 0);
        let known = exporters.iter().filter_map(Weak::upgrade).find(|known| known.collector == *collector);
        known.unwrap_or_else(|| {
            let (collector, users) = (collector.clone(), AtomicUsize::new(0));
            let exporter = Arc::new(Self { collector, users, queue: Mutex::default(), changed: Condvar::new() });
            exporters.push(Arc::downgrade(&exporter));
            exporter
        })
    }

    /// Queues a span.
    pub fn add(self: &Arc<Self>, span: &Span<'_>) {
        let mut queue = self.queue.lock();
        if queue.count >= MOST {
            drop(queue);
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        queue.add(span);
        if !queue.has_thread {
            let exporter = Arc::clone(self);
            let thread = std::thread::Builder::new().name("spans".to_owned());
            queue.has_thread = thread.spawn(move || exporter.work()).is_ok();
        } else if queue.count == 1 || queue.count == BATCH {
            self.changed.notify_all();
        }
    }

    fn work(self: Arc<Self>) {
        let _panicked = Panicked(&self);
        let mut sender = Sender::to(&self.collector);
        while let Some(batch) = self.next() {
            let count = batch.count as u64;
            let body = encode::request(&self.collector.resource, &batch.spans);
            drop(batch);
            let (lost, why) = match self.send(&mut sender, &body) {
                Ok(Rejected { count: 0, .. }) => (0, String::new()),
                Ok(Rejected { count: rejected, message }) => {
                    (rejected.min(count), format!("the collector rejected {rejected} of {count} spans: {message}"))
                }
                Err(why) => (count, why),
            };
            EXPORTED.fetch_add(count - lost, Ordering::Relaxed);
            if lost > 0 {
                DROPPED.fetch_add(lost, Ordering::Relaxed);
                self.say(&why);
            }
        }
    }

    /// The next batch; `None` ends the thread.
    fn next(&self) -> Option<Batch> {
        let mut queue = self.queue.lock();
        queue.sending = 0;
        self.changed.notify_all();
        while queue.waiting.is_empty() {
            let is_late = self.changed.wait_for(&mut queue, IDLE).timed_out();
            if is_late && queue.waiting.is_empty() {
                queue.has_thread = false;
                return None;
            }
        }
        let is_few = |queue: &mut Queue| queue.count < BATCH && queue.flush_until.is_none();
        self.changed.wait_while_for(&mut queue, is_few, DELAY);
        let Some(batch) = queue.take() else {
            queue.has_thread = false;
            return None;
        };
        queue.sending = batch.count;
        Some(batch)
    }

    /// Sends a batch, again after a while where that may help.
    fn send(&self, sender: &mut Sender, body: &[u8]) -> Result<Rejected, String> {
        let mut pauses = RETRIES.into_iter();
        loop {
            let limit = self.left(&self.queue.lock());
            match (sender.send(body, limit), pauses.next()) {
                (Sent::Taken(rejected), _) => return Ok(rejected),
                (Sent::Later(_, asked), Some(usual)) if self.pause(asked.unwrap_or(usual)) => {}
                (Sent::Refused(why) | Sent::Later(why, _), _) => return Err(why),
            }
        }
    }

    /// Waits before another attempt; false if everything is to be sent now.
    fn pause(&self, pause: Duration) -> bool {
        let mut queue = self.queue.lock();
        self.changed.wait_while_for(&mut queue, |queue| queue.flush_until.is_none(), pause);
        queue.flush_until.is_none()
    }

    fn left(&self, queue: &MutexGuard<'_, Queue>) -> Duration {
        let left = queue.flush_until.map(|end| end.saturating_duration_since(Instant::now()));
        left.map_or(self.collector.timeout, |left| left.min(self.collector.timeout))
    }

    fn say(&self, why: &str) {
        let mut queue = self.queue.lock();
        if queue.said.is_none_or(|said| said.elapsed() >= SAY_AGAIN) {
            queue.said = Some(Instant::now());
            drop(queue);
            let (collector, dropped) = (self.collector.shown(), DROPPED.load(Ordering::Relaxed));
            tracing::warn!(collector, why, dropped, "spans are not exported");
        }
    }

    /// Waits until everything is sent, at most until then; counts the rest as dropped.
    fn flush(&self, until: Instant) {
        let mut queue = self.queue.lock();
        queue.flush_until = Some(until);
        self.changed.notify_all();
        let is_under_way = |queue: &mut Queue| queue.has_thread && (queue.sending > 0 || !queue.waiting.is_empty());
        self.changed.wait_while_until(&mut queue, is_under_way, until);
        queue.flush_until = None;
        let rest = mem::take(&mut queue.count);
        queue.waiting.clear();
        let is_late = queue.sending > 0;
        drop(queue);
        DROPPED.fetch_add(rest as u64, Ordering::Relaxed);
        if rest > 0 || is_late {
            self.say("hostler ended before the collector had taken them");
        }
    }
}

/// Held by a thread that sends. If it panics, its batch is lost, and the next span starts another thread.
struct Panicked<'a>(&'a SpanExporter);

impl Drop for Panicked<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let mut queue = self.0.queue.lock();
        queue.has_thread = false;
        DROPPED.fetch_add(mem::take(&mut queue.sending) as u64, Ordering::Relaxed);
        self.0.changed.notify_all();
    }
}

/// The exporter of a configuration, as long as that is in force.
pub struct SpanExport(Arc<SpanExporter>);

impl SpanExport {
    /// To a collector, by the exporter which all that name the same share.
    pub fn to(collector: &Collector) -> Self {
        let exporter = SpanExporter::of(collector);
        exporter.users.fetch_add(1, Ordering::Relaxed);
        Self(exporter)
    }

    /// What a call adds its span to.
    pub fn exporter(&self) -> Arc<SpanExporter> {
        Arc::clone(&self.0)
    }
}

impl Drop for SpanExport {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Sends what waits, for at most 800 ms, and drops the rest.
pub fn flush_spans() {
    flush(|_| true);
}

/// The same for the collectors that no configuration names any more.
pub fn flush_unused_spans() {
    flush(|exporter| exporter.users.load(Ordering::Relaxed) == 0);
}

fn flush(which: impl Fn(&SpanExporter) -> bool) {
    let until = Instant::now() + LAST;
    let exporters: Vec<_> = EXPORTERS.lock().iter().filter_map(Weak::upgrade).collect();
    let exporters: Vec<_> = exporters.into_iter().filter(|exporter| which(exporter)).collect();
    std::thread::scope(|scope| {
        let Some((last, others)) = exporters.split_last() else { return };
        for exporter in others {
            let _ = std::thread::Builder::new().spawn_scoped(scope, || exporter.flush(until));
        }
        last.flush(until);
    });
}

/// How many spans were exported, and how many were dropped, since the process started.
pub fn span_counts() -> (u64, u64) {
    (EXPORTED.load(Ordering::Relaxed), DROPPED.load(Ordering::Relaxed))
}
