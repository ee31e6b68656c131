//! Calls that go on without their client. Each runs in a workspace like that of the client, as long as such calls run in it.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, watch};

use super::{Runtime, Workspace};
use crate::builtin::Builtins;
use crate::call::{BackgroundCalls, CallHandle, CallRequest, Resumed, Session};
use crate::config::call_site::CallSite;
use crate::config::{Config, ConfigError, Environment};
use crate::journal::{Claimed, Keyed, State, digest};
use crate::outcome::{Cancelled, Canceller, Code, Fault};
use crate::process::edge;
use crate::registry::Watching;
use crate::threads::blocking;

/// Why there are no background calls where nothing is written down.
const WITHOUT_JOURNAL: &str = "background calls need the journal, which is off here: set `enabled = true` under `[journal]`, and see the log for what it lacks";

/// How many calls that were not begun by a client of this process it has at once.
const AT_ONCE: usize = 128;

/// How often the journal is asked for a call that another request makes.
const LOOK: Duration = Duration::from_millis(20);
/// How long that call may not be in the store.
const PATIENCE: Duration = Duration::from_secs(30);

/// A call that goes on.
pub struct Begun {
    /// Its id.
    pub id: String,
    /// The call, if it was begun now: one that was made before with its key is not.
    pub handle: Option<CallHandle>,
}

/// A workspace that follows changes of its files.
struct Open {
    app: Workspace,
    _watching: Watching,
}

/// The background calls of a process.
pub struct Background {
    runtime: Weak<Runtime>,
    /// The variables of calls whose client's are not known any more.
    environment: OnceLock<Arc<Environment>>,
    /// Where such calls run. Locked only to look up or to add.
    open: Mutex<Vec<(CallSite, Weak<Open>)>>,
    /// How many calls go on.
    running: watch::Sender<usize>,
    /// Locked while one is opened: calls of one site share it.
    opening: AsyncMutex<()>,
    /// Room for calls of hostlers that are gone, and of queues: the others wait in the store.
    pub(super) room: Arc<Semaphore>,
    /// The calls that were taken from the store and have not ended. Locked only briefly.
    pub(super) taken: Mutex<HashSet<String>>,
}

impl Background {
    /// Those of a runtime.
    pub(super) fn of(runtime: Weak<Runtime>) -> Self {
        Self {
            runtime,
            environment: OnceLock::new(),
            open: Mutex::default(),
            running: watch::Sender::new(0),
            opening: AsyncMutex::default(),
            room: Arc::new(Semaphore::new(AT_ONCE)),
            taken: Mutex::default(),
        }
    }

    /// Sets the variables of calls whose client's are not known any more.
    pub fn run_with(&self, environment: Arc<Environment>) {
        let _ = self.environment.set(environment);
    }

    /// The site of a call that was written down.
    pub fn site(&self, written: Option<&str>) -> CallSite {
        let nothing = || Arc::<Environment>::default();
        CallSite::read(written, &self.environment.get().cloned().unwrap_or_else(nothing))
    }

    /// Starts a call, which goes on until it ends, whoever leaves. When this returns, it will not be lost.
    pub async fn start(&self, site: CallSite, request: CallRequest) -> Result<Begun, Fault> {
        let ended = || Fault::new(Code::ShuttingDown, "hostler is shutting down");
        let runtime = self.runtime.upgrade().ok_or_else(ended)?;
        // In a task of its own: if the client goes while a key is taken, nobody else would ever get that key.
        let starting = tokio::spawn(async move { runtime.background.begin(&runtime, site, request).await });
        starting.await.map_err(|_| ended())?
    }

    async fn begin(&self, runtime: &Arc<Runtime>, site: CallSite, request: CallRequest) -> Result<Begun, Fault> {
        if runtime.journal.is_none() {
            return Err(Fault::new(Code::NotSupported, WITHOUT_JOURNAL));
        }
        let open = self.workspace(runtime, &site).await?;
        let app = &open.app;
        app.calls.registry.asked_for(&request.tool).await;
        let request = match self.claimed(runtime, app, request).await? {
            Ok(request) => request,
            Err(first) => return Ok(Begun { id: first, handle: None }),
        };
        let is_resumed = request.resumed.is_some() && request.key.is_none();
        let hold = runtime.sessions.hold();
        let session = Session::of_many(Arc::clone(&app.calls));
        let request = CallRequest { background: true, workspace: Some(site.written()), ..request };
        let handle = session.start(request);
        let observer = handle.observer();
        // One that was recovered is remembered as it was.
        let forgotten = if is_resumed { None } else { self.forgotten(&handle).await };
        self.running.send_modify(|count| *count += 1);
        let running = self.running.clone();
        tokio::spawn(async move {
            let _ = handle.outcome().await;
            running.send_modify(|count| *count -= 1);
            drop(session);
            if let Some(Open { app, .. }) = Arc::into_inner(open) {
                app.close().await;
            }
            drop(hold);
        });
        if let Some(fault) = forgotten {
            return Err(fault);
        }
        edge("background.before-acknowledgement");
        Ok(Begun { id: observer.id().to_owned(), handle: Some(observer) })
    }

    /// Why a call is not made after all: it would be lost if hostler died. One that its tool has by then goes on.
    async fn forgotten(&self, call: &CallHandle) -> Option<Fault> {
        let why = call.remembered().await.err()?;
        if !call.was_sent() {
            call.cancel(Cancelled::by(Canceller::Caller));
            call.outcome().await;
        }
        let fault =
            || Fault::new(Code::ResourceExhausted, format!("{why}; the call was not made, because it would be lost"));
        (!call.was_sent()).then(fault)
    }

    /// Ends the workers of all calls, and waits for what becomes of these.
    pub(super) async fn end(&self, limit: Duration) {
        let (Some(runtime), false) = (self.runtime.upgrade(), *self.running.borrow() == 0) else { return };
        let ended = async {
            runtime.pools.end().await;
            let _ = self.running.subscribe().wait_for(|count| *count == 0).await;
        };
        let _ = tokio::time::timeout(limit, ended).await;
    }

    /// The request if it is the first with its key, or else the id of the call that was. Otherwise a repeated request would wait for
    /// the end of the first to learn its id.
    async fn claimed(
        &self,
        runtime: &Runtime,
        app: &Workspace,
        request: CallRequest,
    ) -> Result<Result<CallRequest, String>, Fault> {
        let (Some(key), Some(journal)) = (&request.key, &runtime.journal) else { return Ok(Ok(request)) };
        let (tool, arguments) = app.calls.prepared(request.role, &request.tool, request.arguments.clone())?;
        let arguments = serde_json::from_str(arguments.get()).unwrap_or_default();
        let id = app.calls.new_id();
        let asked = Keyed { tool, key: key.clone(), digest: digest(&arguments), call: id.clone() };
        // Whether the store has everything that this process knows of the first.
        let mut is_current = false;
        let began = Instant::now();
        loop {
            match journal.claim_key(asked.clone()).await {
                Ok(Claimed::Known { is_same: true, call, row: Some(row) }) => {
                    let is_over = row.state.is_some_and(State::is_final) || is_current;
                    if is_over || !journal.is_own(&row) || runtime.watch.handle(&call).is_some() {
                        return Ok(Err(call));
                    }
                    // It has ended here, and gives its key back if it was not begun.
                    let _ = journal.in_store().await;
                    is_current = true;
                }
                // It has the key, and may die before it is written down.
                Ok(Claimed::Known { is_same: true, call, row: None }) => {
                    let first = runtime.watch.handle(&call).filter(|first| !first.has_ended());
                    if let Some(first) = first
                        && first.remembered().await.is_ok()
                        && !first.has_ended()
                    {
                        return Ok(Err(call));
                    }
                    if began.elapsed() > PATIENCE {
                        return Err(Fault::new(
                            Code::ResourceExhausted,
                            format!("the call {call} has the key, and is not in the store"),
                        ));
                    }
                    tokio::time::sleep(LOOK).await;
                }
                // With other arguments, the call itself says so.
                _ => return Ok(Ok(CallRequest { resumed: Some(Resumed { id, ..Resumed::default() }), ..request })),
            }
        }
    }

    async fn workspace(&self, runtime: &Arc<Runtime>, site: &CallSite) -> Result<Arc<Open>, Fault> {
        let _one = self.opening.lock().await;
        let known = {
            let mut open = self.open.lock();
            open.retain(|(_, known)| known.strong_count() > 0);
            open.iter().find(|(known, _)| known == site).and_then(|(_, known)| known.upgrade())
        };
        if let Some(known) = known {
            // A rule that was saved just now counts for this call.
            known.app.catch_up().await;
            return Ok(known);
        }
        let (runtime, here, wanted) = (Arc::clone(runtime), Handle::current(), site.clone());
        let opening = blocking(move || {
            let _inside = here.enter();
            let config = Config::load(wanted.options(), wanted.directory())?;
            let tools = Builtins::of(&config);
            Ok(Workspace::build_in(runtime, config, tools, Vec::new()))
        });
        let failed = |what: String| Fault::new(Code::SystemError, what);
        let opened: Result<Workspace, ConfigError> = opening.map_err(|error| failed(error.to_string()))?.await;
        let app = opened.map_err(|error| Fault::new(Code::InvalidParams, error.to_string()))?;
        app.ask();
        let open = Arc::new(Open { _watching: app.watch(), app });
        self.open.lock().push((site.clone(), Arc::downgrade(&open)));
        Ok(open)
    }
}

impl BackgroundCalls for Runtime {
    fn hold(&self, call: CallHandle) {
        let (hold, running) = (self.sessions.hold(), self.background.running.clone());
        running.send_modify(|count| *count += 1);
        tokio::spawn(async move {
            call.outcome().await;
            running.send_modify(|count| *count -= 1);
            drop(hold);
        });
    }
}
