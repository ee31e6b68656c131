//! Spans of calls, exported by OTLP over HTTP. A thread per collector sends them in batches; what does not fit in its queue or is
//! not taken by the collector is dropped and counted. No call waits for any of it.
//!
//! The crates of OpenTelemetry read the variables of the process, which here are those of one client of many.

mod encode;
mod send;

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use self::send::{Sender, Sent};

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

/// Where spans go, and what they say of their process.
#[derive(Clone, PartialEq, Eq)]
pub struct Collector {
    /// The address that takes traces.
    pub address: String,
    /// Headers of each request, which may be secret.
    pub headers: Vec<(String, String)>,
    /// The longest that a request may take.
    pub timeout: Duration,
    /// Attributes of the resource, `service.name` among them.
    pub resource: Vec<(String, String)>,
}

impl fmt::Debug for Collector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Collector").field("address", &self.shown()).finish_non_exhaustive()
    }
}

impl Collector {
    /// The address without what may be secret in it.
    fn shown(&self) -> String {
        let address = self.address.split(['?', '#']).next().unwrap_or_default();
        match address.split_once("://") {
            Some((scheme, rest)) => {
                let host = rest.find('/').unwrap_or(rest.len());
                let from = rest[..host].rfind('@').map_or(0, |at| at + 1);
                format!("{scheme}://{}", &rest[from..])
            }
            None => address.to_owned(),
        }
    }
}

/// An ended call as a span.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// The trace, in hexadecimal, as are the other ids.
    pub trace: &'a str,
    /// Its own id.
    pub id: &'a str,
    /// The span in which it was made.
    pub parent: Option<&'a str>,
    /// The `tracestate` of its trace.
    pub state: Option<&'a str>,
    /// Its name.
    pub name: &'a str,
    /// Whether it answers a request of another process.
    pub is_server: bool,
    /// Nanoseconds since 1970.
    pub began: u64,
    /// The same.
    pub ended: u64,
    /// What is known of it.
    pub attributes: &'a [(&'static str, Value<'a>)],
    /// Why it failed.
    pub error: Option<&'a str>,
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    String(&'a str),
    Bool(bool),
    Int(i64),
    Double(f64),
}

/// Sends spans to one collector.
pub struct SpanExporter {
    collector: Collector,
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
    is_sending: bool,
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
    /// The exporter for a collector, which all that name the same share.
    pub fn of(collector: &Collector) -> Arc<Self> {
        let mut exporters = EXPORTERS.lock();
        exporters.retain(|exporter| exporter.strong_count() > 0);
        let known = exporters.iter().filter_map(Weak::upgrade).find(|known| known.collector == *collector);
        known.unwrap_or_else(|| {
            let exporter =
                Arc::new(Self { collector: collector.clone(), queue: Mutex::default(), changed: Condvar::new() });
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
        let mut sender = Sender::to(&self.collector);
        while let Some(batch) = self.next() {
            let count = batch.count as u64;
            let body = encode::request(&self.collector.resource, &batch.spans);
            drop(batch);
            match self.send(&mut sender, &body) {
                Ok(()) => drop(EXPORTED.fetch_add(count, Ordering::Relaxed)),
                Err(why) => {
                    DROPPED.fetch_add(count, Ordering::Relaxed);
                    self.say(&why);
                }
            }
        }
    }

    /// The next batch; `None` ends the thread.
    fn next(&self) -> Option<Batch> {
        let mut queue = self.queue.lock();
        queue.is_sending = false;
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
        queue.is_sending = true;
        queue.take()
    }

    /// Sends a batch, again after a while where that may help.
    fn send(&self, sender: &mut Sender, body: &[u8]) -> Result<(), String> {
        let mut pauses = RETRIES.into_iter();
        loop {
            let limit = self.left(&self.queue.lock());
            match (sender.send(body, limit), pauses.next()) {
                (Sent::Taken, _) => return Ok(()),
                (Sent::Later(_), Some(pause)) if self.pause(pause) => {}
                (Sent::Refused(why) | Sent::Later(why), _) => return Err(why),
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
        let is_under_way = |queue: &mut Queue| queue.has_thread && (queue.is_sending || !queue.waiting.is_empty());
        self.changed.wait_while_until(&mut queue, is_under_way, until);
        queue.flush_until = None;
        let rest = mem::take(&mut queue.count);
        queue.waiting.clear();
        let is_late = queue.is_sending;
        drop(queue);
        DROPPED.fetch_add(rest as u64, Ordering::Relaxed);
        if rest > 0 || is_late {
            self.say("hostler ended before the collector had taken them");
        }
    }
}

/// Sends what waits, for at most 800 ms.
pub fn flush_spans() {
    let until = Instant::now() + LAST;
    let exporters: Vec<_> = EXPORTERS.lock().iter().filter_map(Weak::upgrade).collect();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn exporter(address: &str) -> Arc<SpanExporter> {
        let headers = vec![("x-key".to_owned(), "hunter2".to_owned())];
        let address = address.to_owned();
        SpanExporter::of(&Collector { address, headers, timeout: Duration::from_secs(1), resource: Vec::new() })
    }

    fn span() -> Span<'static> {
        let (trace, id) = ("0123456789abcdef0123456789abcdef", "0123456789abcdef");
        let (parent, state, attributes, error) = (None, None, &[], None);
        Span { trace, id, parent, state, name: "a", is_server: false, began: 1, ended: 2, attributes, error }
    }

    #[test]
    fn a_collector_that_takes_nothing_costs_bounded_memory_and_every_span_is_counted() {
        // It accepts connections and never answers.
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let exporter = exporter(&format!("http://{}/v1/traces", socket.local_addr().unwrap()));
        let before = span_counts().1;
        for _ in 0..MOST + BATCH + 100 {
            exporter.add(&span());
        }
        assert!(exporter.queue.lock().count <= MOST);
        assert!(span_counts().1 - before >= 100);
        let began = Instant::now();
        flush_spans();
        assert!(began.elapsed() < LAST + Duration::from_millis(500));
        assert!(exporter.queue.lock().waiting.is_empty());
        assert!(span_counts().1 - before >= (MOST + 100) as u64);
    }

    #[test]
    fn an_address_is_shown_without_what_may_be_secret() {
        let exporter = exporter("https://me:hunter2@collector.example:4318/v1/traces?key=hunter2#hunter2");
        assert_eq!(exporter.collector.shown(), "https://collector.example:4318/v1/traces");
        assert!(!format!("{:?}", exporter.collector).contains("hunter2"));
    }

    #[test]
    fn those_with_the_same_collector_share_an_exporter() {
        let (one, again, other) = (exporter("http://a/x"), exporter("http://a/x"), exporter("http://b/x"));
        assert!(Arc::ptr_eq(&one, &again) && !Arc::ptr_eq(&one, &other));
    }
}
