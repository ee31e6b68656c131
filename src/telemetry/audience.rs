//! Who reads what is logged. In a shared hostler, what concerns one session goes to its client's standard error at its own
//! level, and everything else to the log.
//!
//! Tasks and threads that work for a session carry its [`Audience`]: [`spawn`] and [`carry`] pass on that of the current one.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::task::JoinHandle;
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Metadata, Subscriber, callsite};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{self, Layer};

use super::format::LogFormat;

thread_local! {
    static CURRENT: RefCell<Option<Audience>> = const { RefCell::new(None) };
}

/// How many audiences want each level.
static WANTED: [AtomicUsize; 6] = [const { AtomicUsize::new(0) }; 6];

/// A reader of a part of the log, who has a level of its own.
#[derive(Clone)]
pub struct Audience(Arc<Reader>);

struct Reader {
    targets: Targets,
    format: LogFormat,
    tell: Box<dyn Fn(&str) + Send + Sync>,
}

impl Audience {
    /// A reader at a level, which gets whole lines in this format. `tell` must not block.
    pub fn new(level: &str, format: LogFormat, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let (targets, unusable) = super::targets(level);
        let highest = highest(&targets);
        let is_first = WANTED[place(highest)].fetch_add(1, Ordering::Relaxed) == 0;
        if is_first {
            callsite::rebuild_interest_cache();
        }
        let audience = Self(Arc::new(Reader { targets, format, tell: Box::new(tell) }));
        if unusable {
            audience.hear(|| super::report_unusable(level));
        }
        audience
    }

    /// The audience of this task or thread.
    pub fn current() -> Option<Self> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Runs something for this audience.
    pub fn hear<T>(&self, run: impl FnOnce() -> T) -> T {
        let _back = Back(CURRENT.replace(Some(self.clone())));
        run()
    }

    /// Gives a future this audience.
    pub fn of<F: Future>(self, future: F) -> Carried<F> {
        Carried { audience: Some(self), future: Box::pin(future) }
    }

    /// How it wants lines to be written.
    pub(super) fn format(&self) -> LogFormat {
        self.0.format
    }

    /// Tells it whole lines, whatever its level.
    pub fn tell(&self, text: &str) {
        (self.0.tell)(text);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let is_last = WANTED[place(highest(&self.targets))].fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last {
            callsite::rebuild_interest_cache();
        }
    }
}

/// Restores the audience before.
struct Back(Option<Audience>);

impl Drop for Back {
    fn drop(&mut self) {
        CURRENT.replace(self.0.take());
    }
}

/// Spawns a task for the current audience.
pub fn spawn<F: Future<Output: Send> + Send + 'static>(future: F) -> JoinHandle<F::Output> {
    match Audience::current() {
        None => tokio::spawn(future),
        Some(audience) => tokio::spawn(audience.of(future)),
    }
}

/// A future for the current audience, whichever task polls it.
pub fn carried<F: Future>(future: F) -> Carried<F> {
    Carried { audience: Audience::current(), future: Box::pin(future) }
}

/// A piece of work for the current audience, whichever thread runs it.
pub fn carry<T>(work: impl FnOnce() -> T) -> impl FnOnce() -> T {
    let audience = Audience::current();
    move || match audience {
        None => work(),
        Some(audience) => audience.hear(work),
    }
}

/// A future with an audience.
pub struct Carried<F> {
    audience: Option<Audience>,
    future: Pin<Box<F>>,
}

impl<F: Future> Future for Carried<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { audience, future } = &mut *self;
        // Moved, not cloned: this runs with each step of each call.
        let _lent = Lent { before: CURRENT.replace(audience.take()), lender: audience };
        future.as_mut().poll(context)
    }
}

/// Gives the current audience back to its future, and restores the one before.
struct Lent<'a> {
    before: Option<Audience>,
    lender: &'a mut Option<Audience>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        *self.lender = CURRENT.replace(self.before.take());
    }
}

/// What is logged: for an audience by its level, otherwise by the level of the process.
pub(super) struct Levels(pub(super) Targets);

impl<S: Subscriber> Layer<S> for Levels {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: layer::Context<'_, S>) -> bool {
        CURRENT.with_borrow(|audience| {
            let targets = audience.as_ref().map_or(&self.0, |audience| &audience.0.targets);
            targets.would_enable(metadata.target(), metadata.level())
        })
    }

    /// Below the highest, an event costs a comparison.
    fn max_level_hint(&self) -> Option<LevelFilter> {
        let is_wanted = |level: &LevelFilter| WANTED[place(*level)].load(Ordering::Relaxed) > 0;
        let highest_wanted = LEVELS.into_iter().rev().find(is_wanted).unwrap_or(LevelFilter::OFF);
        Some(highest(&self.0).max(highest_wanted))
    }
}

const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

fn place(level: LevelFilter) -> usize {
    LEVELS.iter().position(|other| *other == level).unwrap_or_default()
}

fn highest(targets: &Targets) -> LevelFilter {
    let own = targets.iter().map(|(_, level)| level);
    own.chain(targets.default_level()).max().unwrap_or(LevelFilter::OFF)
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// An audience that keeps what it gets.
    fn audience() -> (Audience, Arc<Mutex<String>>) {
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        (Audience::new("info", LogFormat::Text, move |text| heard.lock().push_str(text)), said)
    }

    fn say(text: &str) {
        Audience::current().unwrap().tell(text);
    }

    #[tokio::test]
    async fn tasks_and_threads_keep_the_audience_of_who_started_them() {
        let ((one, said), (other, nothing)) = (audience(), audience());
        let inner = async {
            say("task ");
            tokio::task::yield_now().await;
            let spawned = spawn(async { say("spawned ") });
            spawned.await.unwrap();
            let thread = std::thread::spawn(carry(|| say("thread ")));
            thread.join().unwrap();
            other.hear(|| say("x"));
            say("task");
        };
        one.of(inner).await;
        assert!(Audience::current().is_none());
        assert_eq!((&**said.lock(), &**nothing.lock()), ("task spawned thread task", "x"));
    }

    #[test]
    fn levels_are_wanted_as_long_as_their_audience_is() {
        let wanted = |level| WANTED[place(level)].load(Ordering::Relaxed);
        let audience = Audience::new("warn,tool=trace", LogFormat::Text, |_| {});
        assert_eq!(wanted(LevelFilter::TRACE), 1);
        drop(audience);
        assert_eq!(wanted(LevelFilter::TRACE), 0);
    }
}
