//! Faults found before a worker runs: unknown names, and arguments that do not match the schema.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{CallRequest, CallService, Layer, OfProcess, Watch};
use crate::approvals::{Approvals, Remembered};
use crate::builtin::Builtins;
use crate::config::{Config, ConfigOptions, Environment};
use crate::environment::{EnvironmentSettings, Environments};
use crate::executor::{BuiltIns, Makers, OneShots, PoolStore, Pools, caps};
use crate::outcome::{Code, Fault};
use crate::pool::BrokerHandle;
use crate::process::EnvFilter;
use crate::registry::Registry;
use crate::worker::{Shims, Sources};

const TOOL: &str = r#"
from typing import Literal, Optional, TypedDict, Union

class Spot(TypedDict):
    name: int

def f(mode: Literal["fast", "slow"] = "fast", size: Union[int, bool, None] = None, spots: Optional[list[Spot]] = None,
      spot: Optional[Spot] = None, count: int = 1):
    """Do it."""

def nothing():
    """Take nothing."""

def need(name: str, spot: Spot):
    """Take two."""
"#;

fn service(folder: &Path, config: &str) -> Arc<CallService> {
    service_with(folder, config, Builtins::default(), Vec::new())
}

/// A service with these built-in tools and layers.
pub(super) fn service_with(
    folder: &Path,
    config: &str,
    tools: Builtins,
    layers: Vec<Arc<dyn Layer>>,
) -> Arc<CallService> {
    std::fs::write(folder.join("hostler.toml"), config).unwrap();
    let wanted = ConfigOptions { tools: vec![folder.join("tools")], ..ConfigOptions::default() };
    let config = Arc::new(Config::load(&wanted, folder).unwrap());
    let environments = Environments::in_cache(folder, EnvironmentSettings::default());
    let registry = Arc::new(Registry::with(Arc::clone(&config), None, tools.files()));
    let (shims, sources) = (Shims::in_cache(folder), Sources::in_cache(folder));
    let env_filter = EnvFilter::default();
    let makers = Makers { environments: Arc::new(environments), shims, sources, env_filter, session: None };
    let store = PoolStore::new(Arc::new(BrokerHandle::new(caps(&config))), false);
    let pools = Pools::new(Arc::clone(&registry), makers, Arc::clone(&store));
    let one_shots = OneShots::new(Arc::clone(&store.broker), EnvFilter::default());
    let built_ins = BuiltIns::new(tools, Arc::clone(&store.broker), EnvFilter::default(), Arc::clone(&pools.secrets));
    let process = OfProcess {
        watch: Watch::new(store),
        journal: None,
        approvals: Approvals::new(Remembered::of(&Environment::default())),
        signing: crate::audit::Signing::default(),
    };
    CallService::new(registry, pools, one_shots, built_ins, layers, process)
}

async fn fault(folder: &Path, tool: &str, arguments: Value) -> Fault {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let outcome = service(folder, "").call(CallRequest::new(tool, arguments)).await;
    assert_eq!(outcome.metadata.worker, None);
    outcome.ended.clone().unwrap_err()
}

async fn mistake(tool: &str, arguments: Value) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    std::fs::write(folder.path().join("tools/engine.py"), TOOL).unwrap();
    let fault = fault(folder.path(), tool, arguments).await;
    assert_eq!(fault.code, Code::InvalidParams);
    fault.message.split_once(" was not called: ").unwrap().1.to_owned()
}

#[tokio::test]
async fn a_mismatched_argument_names_what_the_schema_expects() {
    let long = "x".repeat(59);
    for (tool, arguments, expected) in [
        ("engine.f", json!({"mode": "quick"}), "`mode`: expected one of [\"fast\",\"slow\"], got the string \"quick\""),
        ("engine.f", json!({"size": "big"}), "`size`: expected integer or boolean or null, got the string \"big\""),
        ("engine.f", json!({"count": null}), "`count`: expected integer, got null"),
        (
            "engine.f",
            json!({"count": "x".repeat(100)}),
            &format!("`count`: expected integer, got the string \"{long}…"),
        ),
        ("engine.f", json!({"qqq": 1}), "unknown argument `qqq`, expected mode, size, spots, spot, count"),
        ("engine.nothing", json!({"x": 1}), "unknown argument `x`, expected none"),
        ("engine.need", json!({"spot": {}}), "missing argument `name` (string); missing field `spot.name` (integer)"),
    ] {
        assert_eq!(mistake(tool, arguments).await, expected);
    }
    let large = mistake("engine.need", json!({"spot": {"name": 1e300}, "name": ""})).await;
    assert!(large.starts_with("`spot.name`: expected an exact integer"), "{large}");
}

#[tokio::test]
async fn a_mismatch_inside_an_optional_value_is_located() {
    for (arguments, expected) in [
        (json!({"spots": [{"name": 1}, {"name": "y"}]}), "`spots[1].name`: expected integer, got the string \"y\""),
        (json!({"spot": {}}), "missing field `spot.name` (integer)"),
        (json!({"spots": 7}), "`spots`: expected array or null, got the number 7"),
        (
            json!({"spots": "[1]"}),
            "`spots`: expected array or null, got the string \"[1]\"; the string contains JSON: remove the quotes \
             around it to send a list",
        ),
        (json!({"spots": "{}"}), "`spots`: expected array or null, got the string \"{}\""),
    ] {
        assert_eq!(mistake("engine.f", arguments).await, expected);
    }
}

#[tokio::test]
async fn an_unknown_tool_lists_files_without_a_public_function() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join("tools").join(name), text).unwrap();
    let none = async || fault(folder.path(), "engine.f", json!({})).await.message;
    write("lame.py", "x = (\n");
    assert_eq!(
        none().await,
        "there is no tool engine.f; `hostler list` shows every tool",
        "what is broken is expected as that"
    );
    let silent = |files: &str| {
        let expected = format!("no file has a public function ({files}); see `hostler check`");
        format!("there is no tool engine.f; there are no tools: {expected}")
    };
    write("a.py", "def _one(): ...\n");
    assert_eq!(none().await, silent("a.py"));
    write("b.py", "class One: ...\n");
    assert_eq!(none().await, silent("a.py, b.py"));
}

#[tokio::test]
async fn an_unknown_name_suggests_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let none = fault(folder.path(), "engine.f", json!({})).await;
    assert_eq!(none.code, Code::ToolNotFound);
    assert!(none.message.contains("--tools DIR"), "{}", none.message);
    for (name, own) in [("write_file", "write_file"), ("file_write", "write_file"), ("web", "web")] {
        let expected = fault(folder.path(), name, json!({})).await.message;
        assert!(expected.contains(&format!("add \"{own}\" to `enable` under [builtin]")), "{expected}");
    }
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    std::fs::write(folder.path().join("tools/engine.py"), TOOL).unwrap();
    let near = fault(folder.path(), "engine.neet", json!({})).await;
    assert_eq!(near.details.near, ["engine.need", "engine.f", "engine.nothing"]);
    let bare = fault(folder.path(), "nede", json!({})).await;
    assert_eq!(bare.message, "there is no tool nede; did you mean engine.need?");
    for path in ["tools/engine.py", "./engine.py", "engine.py"] {
        let expected = fault(folder.path(), path, json!({})).await.message;
        let right = "did you mean engine.f? Similar names: engine.need, engine.nothing";
        assert_eq!(expected, format!("there is no tool {path}; {right}"));
    }
    std::fs::write(folder.path().join("tools/my tööl.py"), "import plain\ndef greet() -> int:\n    return 1\n")
        .unwrap();
    std::fs::write(folder.path().join("tools/plain.py"), "def gear() -> int:\n    return 1\n").unwrap();
    std::fs::write(folder.path().join("tools/grep.py"), "def own() -> int:\n    return 1\n").unwrap();
    let own = fault(folder.path(), "grep", json!({})).await.message;
    assert_eq!(own, "there is no tool grep; did you mean grep.own?", "a file's own name");
    let broken = fault(folder.path(), "my_t__l.greet", json!({})).await;
    assert!(broken.message.contains("my tööl.py is broken: `my tööl` is not a valid pack name"), "{}", broken.message);
    let helper = fault(folder.path(), "plain.gear", json!({})).await;
    assert!(helper.message.contains("plain.py is a helper of my tööl.py, which imports it"), "{}", helper.message);
    let far = fault(folder.path(), "qqqqq", json!({})).await;
    assert_eq!(far.message, "there is no tool qqqqq; `hostler list` shows every tool");
}

/// Another thread runs the call, as in a program whose runtime has several.
#[test]
fn a_call_is_known_before_it_runs() {
    struct Ends(std::sync::mpsc::Sender<()>);
    impl crate::pool::Listener for Ends {
        fn ended(&self, _: &Arc<crate::outcome::Outcome>) {
            let _ = self.0.send(());
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let (inside, folder) = (runtime.handle().clone(), tempfile::tempdir().unwrap());
    let running = std::thread::spawn(move || runtime.block_on(stopped));
    let _entered = inside.enter();
    let (service, (sender, ended)) = (service(folder.path(), ""), std::sync::mpsc::channel());
    let request =
        CallRequest { listener: Arc::new(Ends(sender)), ..CallRequest::new("no.such", serde_json::Map::new()) };
    let handle = service.start_with(request, |handle| {
        // A call of an unknown tool ends at once.
        let early = ended.recv_timeout(std::time::Duration::from_millis(100));
        assert!(early.is_err(), "it ran before it was registered");
        handle
    });
    assert_eq!(inside.block_on(handle.outcome()).ended.as_ref().unwrap_err().code, Code::ToolNotFound);
    assert!(ended.recv().is_ok());
    drop(stop);
    assert!(running.join().unwrap().is_err());
}
