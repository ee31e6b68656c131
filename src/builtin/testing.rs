//! A test bench for built-in tools.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Builtins, Call, Roots, Unregistered};
use crate::outcome::{Code, Fault};
use crate::pool::NoopListener;
use crate::process::{EnvFilter, UsageLimits};

/// Tools over a temporary folder.
pub(super) struct Bench {
    pub folder: tempfile::TempDir,
    tools: Builtins,
}

impl Bench {
    pub fn of(add: impl Fn(&mut Builtins, &Roots) -> Result<(), Unregistered>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("root")).unwrap();
        let mut tools = Builtins::default();
        add(&mut tools, &Roots::new(vec![folder.path().join("root")])).unwrap();
        Self { folder, tools }
    }

    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.folder.path().join("root").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.folder.path().join("root").join(path)).unwrap()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Result<Value, Fault> {
        let call = Call {
            id: "1".to_owned(),
            begun: Instant::now(),
            timeout: Duration::from_secs(30),
            max_output: 100_000,
            new_privileges: false,
            walls: None,
            launcher: None,
            limits: UsageLimits::default(),
            env_filter: EnvFilter::of(std::sync::Arc::new(crate::config::Environment::of_process())),
            secrets: Arc::new(|_| Box::pin(async { Ok(None) })),
            listener: Arc::new(NoopListener),
            host: None,
            arguments: to_raw_value(&arguments).unwrap(),
            trace: None,
            asks: None,
        };
        let answer = self.tools.call(name, call.arguments.clone(), call).await?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    }

    /// The code and message of a failing call, without the folder's own path.
    pub async fn fault(&self, name: &str, arguments: Value) -> (Code, String) {
        let fault = self.call(name, arguments.clone()).await.expect_err(&arguments.to_string());
        let own = self.folder.path().display().to_string();
        (fault.code, fault.message.replace(&own, "…"))
    }

    pub async fn fails(&self, name: &str, arguments: Value, code: Code, words: &str) {
        let (got, message) = self.fault(name, arguments).await;
        assert!(got == code && message.contains(words), "{got}: {message}");
    }
}

/// Arguments with only a path.
pub(super) fn at(path: &str) -> Value {
    json!({"path": path})
}
