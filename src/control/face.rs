//! The methods of the control face, and the lines in which they are called.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use jsonrpsee::types::{ErrorObjectOwned, Params};
use jsonrpsee::{Extensions, RpcModule};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::status::{Health, Status, Version};
use crate::process::resident_alone;
use crate::runtime::Runtime;

/// The longest line of a client.
const LONGEST: u64 = 1 << 20;

/// What is known of this hostler from its start on.
#[derive(Debug, Clone)]
pub struct About {
    /// Its build.
    pub build: String,
    /// Its key.
    pub key: String,
    /// Its log.
    pub log: PathBuf,
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
    since: Instant,
    wishes: watch::Sender<Option<Wish>>,
    /// It is ending: new clients start the next one.
    is_over: AtomicBool,
}

#[derive(Deserialize)]
struct SessionParams {
    session: u64,
}

type Answer<T> = Result<T, ErrorObjectOwned>;

impl Control {
    /// The face of a runtime.
    pub fn new(runtime: Arc<Runtime>, about: About) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            about,
            since: Instant::now(),
            wishes: watch::Sender::new(None),
            is_over: AtomicBool::new(false),
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

    /// No session begins from here on.
    pub fn close(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether no session begins any more.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
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

    /// Answers the lines of a connection. `first` was read already.
    pub async fn serve(self: &Arc<Self>, stream: UnixStream, first: Vec<u8>) -> io::Result<()> {
        let methods = self.methods().map_err(io::Error::other)?;
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(io::Cursor::new(first).chain(reader)).take(LONGEST);
        let mut line = String::new();
        loop {
            line.clear();
            lines.set_limit(LONGEST);
            if lines.read_line(&mut line).await? == 0 || !line.ends_with('\n') {
                return Ok(());
            }
            let answer = match methods.raw_json_request(&line, 1).await {
                Ok((answer, _)) => answer.get().to_owned(),
                Err(_) => invalid_request(),
            };
            writer.write_all(format!("{answer}\n").as_bytes()).await?;
        }
    }

    fn methods(self: &Arc<Self>) -> Result<RpcModule<Arc<Self>>, jsonrpsee::core::RegisterMethodError> {
        let mut methods = RpcModule::new(Arc::clone(self));
        methods.register_method("version", |_, face, _| face.version())?;
        methods.register_method("health", |_, face, _| face.health())?;
        methods.register_async_method("status", async |_: Params<'static>, face: Arc<Arc<Self>>, _: Extensions| {
            face.status().await
        })?;
        methods.register_method("sessions.list", |_, face, _| face.runtime.sessions.list())?;
        methods.register_method("sessions.end", |params, face, _| face.end_session(&params))?;
        methods.register_method("stop", |_, face, _| face.wish(Wish::Stop))?;
        methods.register_method("drain", |_, face, _| face.wish(Wish::Drain))?;
        Ok(methods)
    }

    fn version(&self) -> Version {
        let About { build, key, .. } = self.about.clone();
        Version { number: env!("CARGO_PKG_VERSION").to_owned(), build, key, pid: std::process::id() }
    }

    fn health(&self) -> Health {
        let sessions = self.runtime.sessions.list();
        let running = sessions.iter().map(|session| session.running).sum();
        Health { accepting: !self.is_draining(), sessions: sessions.len(), running }
    }

    async fn status(&self) -> Status {
        Status {
            version: self.version(),
            up_s: self.since.elapsed().as_secs(),
            draining: self.is_draining(),
            log: self.about.log.clone(),
            rss: resident_alone(std::process::id()),
            usage: self.runtime.pools.broker.usage(),
            sessions: self.runtime.sessions.list(),
            pools: self.runtime.pools.shared().await,
        }
    }

    fn end_session(&self, params: &Params<'_>) -> Answer<bool> {
        let SessionParams { session } = params.parse()?;
        if self.runtime.sessions.end(session, "`sessions.end`") {
            return Ok(true);
        }
        let message = format!("there is no session {session}; list them with `sessions.list`");
        Err(ErrorObjectOwned::owned(jsonrpsee::types::error::INVALID_PARAMS_CODE, message, None::<()>))
    }

    fn wish(&self, wish: Wish) -> bool {
        tracing::info!(?wish, "asked to end");
        // Stopping goes further than draining.
        self.wishes.send_if_modified(|wished| {
            let is_more = *wished != Some(Wish::Stop);
            *wished = if is_more { Some(wish) } else { *wished };
            is_more
        });
        true
    }
}

/// jsonrpsee reads requests with an id only.
fn invalid_request() -> String {
    let error =
        serde_json::json!({"code": -32600, "message": "expected a JSON-RPC 2.0 request with an id, on one line"});
    serde_json::json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string()
}

macro_rules! answers {
    ($($kind:ty),*) => {
        $(impl jsonrpsee::IntoResponse for $kind {
            type Output = Self;

            fn into_response(self) -> jsonrpsee::ResponsePayload<'static, Self> {
                jsonrpsee::ResponsePayload::success(self)
            }
        })*
    };
}

answers!(Version, Health, Status);
