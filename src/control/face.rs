//! The control face of a process: what its clients steer, and whether it shall end.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

use super::pages::Pages;
use super::started::Started;
use crate::runtime::Runtime;

/// How long it may take to listen for HTTP.
const TO_LISTEN: Duration = Duration::from_secs(5);

/// What is known of this hostler from its start on.
#[derive(Debug, Clone)]
pub struct About {
    /// Its build.
    pub build: String,
    /// Its key, if processes look for it.
    pub key: Option<String>,
    /// Its log, unless that is standard error.
    pub log: Option<PathBuf>,
}

/// A request to end hostler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wish {
    /// End now; sessions have their usual time.
    Stop,
    /// Accept no session, and end after the last one.
    Drain,
}

/// The control face of a runtime.
pub struct Control {
    runtime: Arc<Runtime>,
    about: About,
    pub(super) since: Instant,
    wishes: watch::Sender<Option<Wish>>,
    /// Whether it is ending: new clients start the next one.
    over: watch::Sender<bool>,
    /// Whether new sessions are accepted.
    accepts: watch::Sender<bool>,
    /// Where HTTP is served.
    listens_at: watch::Sender<Option<SocketAddr>>,
    /// Whether a page was asked for, which needs HTTP.
    wants_http: watch::Sender<bool>,
    /// Who may use the page.
    pub pages: Pages,
    /// Background calls that were started here.
    pub(super) background: Started,
}

impl Control {
    /// The face of a runtime.
    pub fn new(runtime: Arc<Runtime>, about: About) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            about,
            since: Instant::now(),
            wishes: watch::Sender::new(None),
            over: watch::Sender::new(false),
            accepts: watch::Sender::new(true),
            listens_at: watch::Sender::new(None),
            wants_http: watch::Sender::new(false),
            pages: Pages::default(),
            background: Started::default(),
        })
    }

    /// What it reports on.
    pub fn runtime(&self) -> &Arc<Runtime> {
        &self.runtime
    }

    /// What is known of this hostler.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// HTTP is served from now on.
    pub fn listens_at(&self, address: SocketAddr) {
        self.listens_at.send_replace(Some(address));
    }

    /// Where HTTP is served.
    pub fn address(&self) -> Option<SocketAddr> {
        *self.listens_at.borrow()
    }

    /// Becomes true once a page is asked for. Whoever holds it listens for HTTP then.
    pub fn wants_http(&self) -> watch::Receiver<bool> {
        self.wants_http.subscribe()
    }

    /// Where HTTP is served, if need be from now on. `None` if it cannot be.
    pub(super) async fn served(&self) -> Option<SocketAddr> {
        if self.wants_http.send(true).is_err() {
            return self.address();
        }
        let mut listens_at = self.listens_at.subscribe();
        let address = timeout(TO_LISTEN, listens_at.wait_for(Option::is_some)).await;
        address.ok()?.ok().and_then(|address| *address)
    }

    /// No session begins from here on.
    pub fn close(&self) {
        self.accepts.send_if_modified(|accepts| std::mem::replace(accepts, false));
        self.over.send_replace(true);
    }

    /// Whether new sessions are accepted, now and as it changes.
    pub fn accepts(&self) -> watch::Receiver<bool> {
        self.accepts.subscribe()
    }

    /// Whether no session begins any more.
    pub fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits until no session begins any more.
    pub async fn closed(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    /// Whether new sessions are refused.
    pub fn is_draining(&self) -> bool {
        self.wishes.borrow().is_some()
    }

    /// Waits until this hostler shall end: when asked to stop, or asked to drain and without sessions.
    pub async fn wished(&self) -> &'static str {
        let mut wishes = self.wishes.subscribe();
        let stop = async {
            let _ = wishes.wait_for(|wish| *wish == Some(Wish::Stop)).await;
        };
        let mut drains = self.wishes.subscribe();
        let drain = async {
            let _ = drains.wait_for(|wish| *wish == Some(Wish::Drain)).await;
            let _ = self.runtime.sessions.counted().wait_for(|count| *count == 0).await;
        };
        tokio::select! {
            () = stop => "`hostler stop`",
            () = drain => "`hostler drain`",
        }
    }

    pub(super) fn wish(&self, wish: Wish) {
        tracing::info!(?wish, "asked to end");
        // Stopping goes further than draining.
        self.wishes.send_if_modified(|wished| {
            let is_more = *wished != Some(Wish::Stop);
            *wished = if is_more { Some(wish) } else { *wished };
            is_more
        });
        self.accepts.send_if_modified(|accepts| std::mem::replace(accepts, false));
    }
}
