//! Hearing of the ends of calls that other machines run: the database says them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;

use super::store::{ENDED, PostgresStore, Server, StoreAddress};

/// How often the store is read although the server would say an end, and how long a connection without waiters is kept.
const LOOK: Duration = Duration::from_secs(10);
/// The pause after the server could not be heard.
const AGAIN: Duration = Duration::from_secs(2);

/// What ends in the store.
pub(super) struct Ends {
    /// `None` where nothing says ends: the store is a file.
    server: Option<Arc<Server>>,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    /// The calls that are waited for.
    calls: HashMap<String, watch::Sender<()>>,
    /// Whether there is a thread that listens, and whether the server says ends to it.
    has_thread: bool,
    is_heard: bool,
}

impl Ends {
    pub fn of(address: &StoreAddress) -> Self {
        let server = match address {
            StoreAddress::Server(server) => Some(Arc::new((**server).clone())),
            StoreAddress::File(_) => None,
        };
        Self { server, waiting: Arc::default() }
    }

    /// The end of a call. Ask for it before you read the store, or it may come in between.
    pub fn end(&self, id: &str) -> CallEnd {
        let Some(server) = &self.server else { return CallEnd { id: id.to_owned(), heard: None } };
        let mut waiting = self.waiting.lock();
        let said = waiting.calls.entry(id.to_owned()).or_insert_with(|| watch::channel(()).0).subscribe();
        if !waiting.has_thread {
            let (server, shared) = (Arc::clone(server), Arc::clone(&self.waiting));
            let thread = std::thread::Builder::new().name("journal-ends".to_owned());
            waiting.has_thread = thread.spawn(move || listen(&server, &shared)).is_ok();
        }
        CallEnd { id: id.to_owned(), heard: Some((said, Arc::clone(&self.waiting))) }
    }
}

/// Until nobody waits any more.
fn listen(server: &Server, waiting: &Mutex<Waiting>) {
    loop {
        let heard = PostgresStore::open(server).and_then(|mut store| store.listen(ENDED, LOOK, |id| hear(waiting, id)));
        let Err(error) = heard else { return };
        tracing::debug!(%error, "the ends of calls are not heard");
        waiting.lock().is_heard = false;
        if is_over(&mut waiting.lock()) {
            return;
        }
        std::thread::sleep(AGAIN);
    }
}

/// The server said the end of this call, or may have said any. Whether there is more to hear.
fn hear(waiting: &Mutex<Waiting>, id: Option<&str>) -> bool {
    let mut waiting = waiting.lock();
    waiting.is_heard = true;
    match id {
        Some(id) => waiting.calls.get(id).into_iter().for_each(|call| call.send_replace(())),
        None => waiting.calls.values().for_each(|call| call.send_replace(())),
    }
    !is_over(&mut waiting)
}

fn is_over(waiting: &mut Waiting) -> bool {
    let is_over = waiting.calls.is_empty();
    (waiting.has_thread, waiting.is_heard) = (!is_over, waiting.is_heard && !is_over);
    is_over
}

/// The end of a call of another process, as long as it is waited for.
pub struct CallEnd {
    id: String,
    heard: Option<(watch::Receiver<()>, Arc<Mutex<Waiting>>)>,
}

impl CallEnd {
    /// Whether it is the end of this call.
    pub fn is_of(&self, id: &str) -> bool {
        self.id == id
    }

    /// Waits until it is worth to read the store: after this pause where nothing says the end.
    pub async fn may_have_come(&mut self, pause: Duration) {
        let Some((said, waiting)) = &mut self.heard else { return tokio::time::sleep(pause).await };
        let limit = if waiting.lock().is_heard { LOOK } else { pause };
        let _ = tokio::time::timeout(limit, said.changed()).await;
    }
}

impl Drop for CallEnd {
    fn drop(&mut self) {
        let Some((said, waiting)) = self.heard.take() else { return };
        drop(said);
        let mut waiting = waiting.lock();
        if waiting.calls.get(&self.id).is_some_and(|call| call.receiver_count() == 0) {
            waiting.calls.remove(&self.id);
        }
    }
}
