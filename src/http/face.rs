//! What the HTTP server serves: the control face, and the tools of one workspace, which is opened with the first request that needs it.

use std::any::Any;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tokio::time::{sleep, timeout};

use crate::call::{CallService, Session};
use crate::control::{Control, Requests, Scope};
use crate::mcp::ClientInfo;
use crate::process::Signals;
use crate::runtime::{OpenSession, Present};

/// How long running calls have when their session ends, and their answers after that.
const CALLS: Duration = Duration::from_millis(500);
const ANSWERS: Duration = Duration::from_millis(50);
/// The longest that all of this takes.
pub const FAREWELL: Duration = Duration::from_millis(650);
/// The name of these clients in reports.
const NAME: &str = "http";

/// Opens the workspace whose tools are served.
pub trait House: Send + Sync {
    /// Called once it is needed, and again if that failed. The error is a sentence.
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Opened, String>> + Send + '_>>;
}

/// A workspace that is served.
pub struct Opened {
    /// Runs its calls.
    pub service: Arc<CallService>,
    /// Its number in reports.
    pub number: u64,
    /// What it needs besides, as long as it is served.
    #[expect(dead_code, reason = "it is held, not used")]
    pub keep: Box<dyn Any + Send + Sync>,
}

/// A workspace that is open already.
pub struct Given {
    /// Runs its calls.
    pub service: Arc<CallService>,
    /// Its number in reports.
    pub number: u64,
}

impl House for Given {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Opened, String>> + Send + '_>> {
        let opened = Opened { service: Arc::clone(&self.service), number: self.number, keep: Box::new(()) };
        Box::pin(std::future::ready(Ok(opened)))
    }
}

/// What the server answers from.
pub struct Face {
    control: Arc<Control>,
    house: Box<dyn House>,
    open: OnceCell<Open>,
    /// Locked to look or to replace.
    attendance: Mutex<Weak<Attendance>>,
}

struct Open {
    opened: Opened,
    /// The clients that send each request for itself, by what they may do.
    requests: [Requests; 3],
}

/// That some client is there: as long as one is, they are a session of this hostler.
pub struct Attendance {
    _present: Option<Present>,
    ended: Signals,
    control: Arc<Control>,
    /// Runs its calls.
    service: Option<Arc<CallService>>,
}

impl Attendance {
    /// Waits until its session is ended, by `sessions.end` or because hostler ends, and its running calls had their time.
    pub async fn ended(&self) {
        tokio::select! {
            _ = self.ended.first() => {}
            () = self.control.closed() => {}
        }
        if let Some(service) = &self.service {
            let _ = timeout(CALLS, service.all_idle()).await;
            sleep(ANSWERS).await;
        }
    }

    fn is_over(&self) -> bool {
        self.ended.first().now_or_never().is_some()
    }
}

impl Face {
    /// The face of a process, with the tools of this house.
    pub fn new(control: Arc<Control>, house: Box<dyn House>) -> Arc<Self> {
        Arc::new(Self { control, house, open: OnceCell::new(), attendance: Mutex::default() })
    }

    pub fn control(&self) -> &Arc<Control> {
        &self.control
    }

    async fn open(&self) -> Result<&Open, String> {
        let open = self.open.get_or_try_init(|| async {
            let opened = self.house.open().await?;
            let one = |scope| Requests::of(&self.control, Some(Session::of_many(Arc::clone(&opened.service))), scope);
            let all = [one(Scope::Observe), one(Scope::Call), one(Scope::Operate)];
            let [Ok(observe), Ok(call), Ok(operate)] = all else { return Err("a method is there twice".to_owned()) };
            Ok(Open { opened, requests: [observe, call, operate] })
        });
        open.await
    }

    /// The tools that are served, or why there are none.
    pub(super) async fn service(&self) -> Result<&Arc<CallService>, String> {
        Ok(&self.open().await?.opened.service)
    }

    /// The client of requests that come each for itself.
    pub(super) async fn requests(&self, scope: Scope) -> Result<&Requests, String> {
        Ok(&self.open().await?.requests[scope as usize])
    }

    /// Counts a client until what is returned is dropped.
    pub(super) async fn attend(&self) -> Arc<Attendance> {
        // Without its tools there is no session to show.
        let opened = self.open().await.ok().map(|open| &open.opened);
        let mut attendance = self.attendance.lock();
        if let Some(attendance) = attendance.upgrade().filter(|attendance| !attendance.is_over()) {
            return attendance;
        }
        let (relay, ended) = Signals::relayed();
        let present = opened.map(|opened| {
            let present = self.control.runtime().sessions.accept(opened.number);
            let service = Arc::downgrade(&opened.service);
            let view = move || {
                let running = service.upgrade()?.running();
                Some(ClientInfo { client: Some(NAME.to_owned()), running })
            };
            let service = Arc::clone(&opened.service);
            let pid = std::process::id();
            present.begin(OpenSession { pid, service, view: Box::new(view), relay, since: Instant::now() });
            present
        });
        let (control, service) = (Arc::clone(&self.control), opened.map(|opened| Arc::clone(&opened.service)));
        let fresh = Arc::new(Attendance { _present: present, ended, control, service });
        *attendance = Arc::downgrade(&fresh);
        fresh
    }
}
