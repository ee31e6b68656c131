//! Threads that read offered files and store large results. Both can block, so they have threads, few at once, and for clients that
//! do not read no file is read.

use rmcp::ErrorData;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::connection::MAX_UNREAD_ANSWERS;
use crate::process::Outbox;
use crate::threads::{blocking, blocking_or_here, holding};

/// How many threads read at once, and how many store: a file system that hangs holds up no result.
static FREE: Semaphore = Semaphore::const_new(4);
static STORING: Semaphore = Semaphore::const_new(4);

/// Runs work on a thread. The thread counts until the work is done, also if nothing waits for it any more.
pub(super) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    on_thread_with(turn().await?, work).await
}

/// The same for what must be stored in any case: here, if there is no thread.
pub(super) async fn on_thread_or_here<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let turn = STORING.acquire().await.ok();
    blocking_or_here(holding(turn, work)).await
}

/// The same for an answer, which is not made while its client leaves too much unread: lines of files are long, and requests short.
pub(super) async fn when_read<T: Send + 'static>(
    outbox: Outbox,
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    loop {
        if outbox.waiting() > MAX_UNREAD_ANSWERS {
            outbox.caught_up().await;
        }
        let turn = turn().await?;
        // Others may have answered meanwhile.
        if outbox.waiting() <= MAX_UNREAD_ANSWERS {
            return on_thread_with(turn, work).await;
        }
    }
}

async fn turn() -> Result<SemaphorePermit<'static>, ErrorData> {
    FREE.acquire().await.map_err(|error| no_thread(&error))
}

async fn on_thread_with<T: Send + 'static>(
    turn: SemaphorePermit<'static>,
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    blocking(holding(turn, work)).map_err(|error| no_thread(&error))?.await
}

fn no_thread(why: &dyn std::error::Error) -> ErrorData {
    ErrorData::internal_error(format!("the files cannot be read now: {why}"), None)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex, mpsc};

    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn the_thread_of_a_cancelled_request_counts_until_it_is_done() {
        let (begun, starts) = mpsc::channel();
        let (release, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let slow = |_| {
            let (begun, gate) = (begun.clone(), Arc::clone(&gate));
            tokio::spawn(on_thread(move || {
                begun.send(()).unwrap();
                let _ = gate.lock().unwrap().recv();
                Ok(())
            }))
        };
        let requests: Vec<_> = (0..4).map(slow).collect();
        tokio::task::yield_now().await;
        (0..4).for_each(|_| starts.recv().unwrap());
        for request in requests {
            request.abort();
            assert!(request.await.unwrap_err().is_cancelled());
        }
        assert!(FREE.try_acquire().is_err(), "four threads are at work");
        drop(release);
        assert_eq!(on_thread(|| Ok(7)).await, Ok(7));
    }

    #[tokio::test]
    async fn an_answer_is_not_made_while_too_much_is_unread() {
        let (ours, mut client) = tokio::io::duplex(1 << 20);
        let outbox = Outbox::new(Box::new(ours));
        let unread = vec![b'x'; MAX_UNREAD_ANSWERS + (2 << 20)];
        outbox.send(&unread);
        let (made, sizes) = mpsc::channel();
        let waiting = outbox.clone();
        let answer = when_read(outbox, move || {
            made.send(waiting.waiting()).unwrap();
            Ok(())
        });
        let mut read = vec![0; unread.len()];
        let (answer, read) = tokio::join!(answer, client.read_exact(&mut read));
        assert!(answer.is_ok() && read.is_ok());
        assert_eq!(sizes.recv(), Ok(0), "unread when it was made");
    }
}
