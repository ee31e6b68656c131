//! One call of a built-in tool: who hears of it, what it may ask, and how it learns that nobody waits for it any more.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::outcome::{Code, Fault};
use crate::pool::Listener;
use crate::process::Withheld;
use crate::protocol::HostMethod;
use crate::worker::{Ask, HostAccess};

/// Looks a secret up where the configuration says it is, or in hostler's own environment; `None` when it is not set.
pub type LookUp =
    Arc<dyn Fn(&str) -> Pin<Box<dyn Future<Output = Result<Option<String>, Fault>> + Send>> + Send + Sync>;

/// A call under way.
pub struct Call {
    /// Its id.
    pub id: String,
    /// When it began.
    pub begun: Instant,
    /// How long it may run.
    pub timeout: Duration,
    /// The most output of a program that is kept, in bytes.
    pub most: usize,
    /// What programs that it starts do not get of hostler's own environment.
    pub withheld: Withheld,
    /// Where secrets come from.
    pub secrets: LookUp,
    /// Who hears how it goes.
    pub listener: Arc<dyn Listener>,
    /// What it may ask of hostler: other tools, the catalogue, the client's model.
    pub host: Option<Arc<dyn HostAccess>>,
}

/// Says to work on a thread that nobody waits for it any more. To be looked at wherever it goes round.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Whether to stop.
    pub fn is_said(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Says so.
    pub(super) fn say(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Says so when the call's future is dropped.
struct SaysStop(Stop);

impl Drop for SaysStop {
    fn drop(&mut self) {
        self.0.say();
    }
}

impl Call {
    /// The environment of programs that it starts: hostler's own, without what may be secret.
    pub fn env(&self) -> BTreeMap<OsString, OsString> {
        self.withheld.for_programs()
    }

    /// A program on hostler's `PATH`.
    pub fn find_program(&self, name: &str) -> Option<PathBuf> {
        self.withheld.environment().find_program(name)
    }

    /// A secret, as it is now; `None` when it is not set.
    pub async fn secret(&self, name: &str) -> Result<Option<String>, Fault> {
        (self.secrets)(name).await
    }

    /// Calls another tool, by either of its names, and gives its result. Its fault's code stands in the fault's text.
    pub async fn tool(&self, name: &str, arguments: Value) -> Result<Value, Fault> {
        self.ask(HostMethod::Call, &json!({"tool": name, "arguments": arguments})).await
    }

    /// Asks hostler what a tool in Python could ask, too.
    pub async fn ask(&self, method: HostMethod, params: &impl Serialize) -> Result<Value, Fault> {
        let wrong = |error: serde_json::Error| Fault::new(Code::SystemError, error.to_string());
        let host = self.host.as_ref().ok_or_else(|| {
            let message =
                "this tool may not use hostler; let it with `host_access = true` under [tool.NAME] in hostler.toml";
            Fault::new(Code::PermissionDenied, message)
        })?;
        let params = to_raw_value(params).map_err(wrong)?;
        let left = self.timeout.saturating_sub(self.begun.elapsed());
        let answer = host.answer(Ask { method, params, left }).await;
        let answer = answer.map_err(|error| Fault::new(Code::ToolError, error.message))?;
        serde_json::from_str(answer.get()).map_err(wrong)
    }

    /// Does what would hold up everybody, such as reading files, on a thread of its own. It hears of it when the call is
    /// cancelled or its time is over.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Stop) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Fault> {
        let stop = Stop::default();
        let _says = SaysStop(stop.clone());
        match tokio::task::spawn_blocking(move || work(&stop)).await {
            Ok(done) => done,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            Err(_) => Err(Fault::new(Code::ShuttingDown, "hostler is ending")),
        }
    }
}
