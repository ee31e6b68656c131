//! Threads for work that may block: reading files, asking the system. The runtime's own pool is not used, because it
//! panics when the system refuses a thread.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::telemetry::carry;

/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// All threads. Their number is bounded by what asks: running calls, and a few tasks of hostler itself.
static POOL: Pool = Pool { state: Mutex::new(State { jobs: VecDeque::new(), idle: 0 }), wake: Condvar::new() };

struct Pool {
    state: Mutex<State>,
    wake: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    /// Threads that wait for work.
    idle: usize,
}

/// Runs work on a thread. It runs to its end also if nothing waits for it. Fails if the system gives no thread.
pub fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> io::Result<Blocking<T>> {
    let (job, result) = job(work);
    POOL.submit(job, start).map_err(|(error, _)| error)?;
    Ok(result)
}

/// The same for work that must be done in any case: on this thread, which it blocks, if there is no other.
pub async fn blocking_or_here<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (job, result) = job(work);
    if let Err((_, job)) = POOL.submit(job, start) {
        job();
    }
    result.await
}

/// The same for work of which so much is done at once as the semaphore, which is never closed, has permits: more threads would only
/// wait for each other.
pub async fn blocking_within<T: Send + 'static>(
    turns: &'static Semaphore,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<T> {
    let turn = turns.acquire().await;
    Ok(blocking(holding(turn, work))?.await)
}

/// Work that has something until it is done, such as its turn.
pub fn holding<T>(
    held: impl Send + 'static,
    work: impl FnOnce() -> T + Send + 'static,
) -> impl FnOnce() -> T + Send + 'static {
    move || {
        let _held = held;
        work()
    }
}

/// Work on threads that the end of the process waits for.
#[derive(Debug, Clone)]
pub struct Unfinished(watch::Sender<usize>);

impl Default for Unfinished {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Unfinished {
    /// Runs work on a thread. It is dropped if the system gives no thread.
    pub fn start(&self, work: impl FnOnce() + Send + 'static) {
        self.0.send_modify(|left| *left += 1);
        let counted = Counted(self.0.clone());
        let _ = blocking(move || {
            let _counted = counted;
            work();
        });
    }

    /// Waits until all of it has ended, for at most this long.
    pub async fn ended(&self, limit: Duration) {
        let _ = tokio::time::timeout(limit, self.0.subscribe().wait_for(|left| *left == 0)).await;
    }
}

/// Counts until it is dropped, also by a panic.
struct Counted(watch::Sender<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|left| *left -= 1);
    }
}

/// A panic of the work belongs to whom its result is for.
fn job<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> (Job, Blocking<T>) {
    let (done, result) = oneshot::channel();
    let work = carry(work);
    let job = move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    };
    (Box::new(job), Blocking(result))
}

fn start(work: Job) -> io::Result<()> {
    thread::Builder::new().name("blocking".to_owned()).spawn(work).map(drop)
}

/// The result of work on a thread. It panics as the work did.
#[derive(Debug)]
pub struct Blocking<T>(oneshot::Receiver<thread::Result<T>>);

impl<T> Future for Blocking<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.0).poll(context)) {
            Ok(Ok(done)) => Poll::Ready(done),
            Ok(Err(panic)) => resume_unwind(panic),
            // A job is always run: its thread waits for it or is started for it.
            Err(_) => Poll::Pending,
        }
    }
}

impl Pool {
    /// Fails with the job if no thread can be started.
    fn submit(&'static self, job: Job, start: impl FnOnce(Job) -> io::Result<()>) -> Result<(), (io::Error, Job)> {
        let mut state = self.state.lock();
        state.jobs.push_back(job);
        if state.idle >= state.jobs.len() {
            self.wake.notify_one();
            return Ok(());
        }
        // Under the lock, so that the job is still the last one if no thread is there to take it.
        match start(Box::new(|| self.work())) {
            Ok(()) => Ok(()),
            Err(error) => Err((error, state.jobs.pop_back().unwrap_or_else(|| Box::new(|| {})))),
        }
    }

    fn work(&self) {
        let mut state = self.state.lock();
        loop {
            while let Some(job) = state.jobs.pop_front() {
                MutexGuard::unlocked(&mut state, job);
            }
            state.idle += 1;
            let is_late = self.wake.wait_for(&mut state, IDLE).timed_out();
            state.idle -= 1;
            if is_late && state.jobs.is_empty() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn work_of_many_at_once_is_done() {
        let gate = std::sync::Arc::new(std::sync::Barrier::new(8));
        let works = (0..8_usize).map(|number| {
            let gate = std::sync::Arc::clone(&gate);
            // Each needs a thread of its own to pass.
            blocking(move || (gate.wait(), number).1).unwrap()
        });
        let works: Vec<_> = works.collect();
        let mut sum = 0;
        for work in works {
            sum += work.await;
        }
        assert_eq!(sum, 28);
    }

    #[tokio::test]
    async fn no_more_work_than_has_turns_is_done_at_once() {
        static TURNS: Semaphore = Semaphore::const_new(2);
        let (now, most) = (std::sync::Arc::new(AtomicUsize::new(0)), std::sync::Arc::new(AtomicUsize::new(0)));
        let works = (0..40).map(|_| {
            let (now, most) = (std::sync::Arc::clone(&now), std::sync::Arc::clone(&most));
            tokio::spawn(blocking_within(&TURNS, move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
            }))
        });
        for work in works.collect::<Vec<_>>() {
            work.await.unwrap().unwrap();
        }
        assert!(most.load(Ordering::SeqCst) <= 2);
        let panics = tokio::spawn(blocking_within(&TURNS, || panic!("on purpose")));
        assert!(panics.await.unwrap_err().is_panic());
        assert_eq!(TURNS.available_permits(), 2);
    }

    #[tokio::test]
    async fn a_panic_is_the_callers() {
        let work = blocking(|| panic!("on purpose")).unwrap();
        let task = tokio::spawn(work);
        assert!(task.await.unwrap_err().is_panic());
        assert_eq!(blocking(|| 7).unwrap().await, 7, "the thread goes on");
    }

    #[test]
    fn work_without_a_thread_is_refused_and_forgotten() {
        static ALONE: Pool = Pool { state: Mutex::new(State { jobs: VecDeque::new(), idle: 0 }), wake: Condvar::new() };
        let (sender, receiver) = std::sync::mpsc::channel();
        let job = Box::new(move || sender.send(7).unwrap());
        let (error, job) = ALONE.submit(job, |_| Err(io::ErrorKind::WouldBlock.into())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        job();
        assert_eq!(receiver.recv(), Ok(7), "the job comes back");
        assert!(ALONE.state.lock().jobs.is_empty());
    }
}
