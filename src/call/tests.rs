//! What is said of a call before any worker is asked: names that are none, arguments that do not fit.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{CallRequest, CallService};
use crate::builtin::Builtins;
use crate::config::{Config, ConfigOptions};
use crate::environment::{EnvironmentSettings, Environments};
use crate::executor::{BuiltIns, Makers, OneShots, PoolStore, Pools, caps};
use crate::outcome::{Code, Fault};
use crate::pool::Shared;
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
    std::fs::write(folder.join("hostler.toml"), config).unwrap();
    let wanted = ConfigOptions { tools: vec![folder.join("tools")], ..ConfigOptions::default() };
    let config = Arc::new(Config::load(&wanted, folder).unwrap());
    let environments = Environments::in_cache(folder, EnvironmentSettings::default());
    let registry = Arc::new(Registry::open(Arc::clone(&config)));
    let (shims, sources) = (Shims::in_cache(folder), Sources::in_cache(folder));
    let env_filter = EnvFilter::default();
    let makers = Makers { environments: Arc::new(environments), shims, sources, env_filter, directory: None };
    let store = PoolStore::new(Arc::new(Shared::new(caps(&config))));
    let pools = Pools::new(Arc::clone(&config), Arc::clone(&registry), makers, Arc::clone(&store));
    let one_shots = OneShots::new(Arc::clone(&config), Arc::clone(&store.broker), EnvFilter::default(), None);
    let built_ins =
        BuiltIns::new(Arc::clone(&config), Builtins::default(), Arc::clone(&store.broker), EnvFilter::default());
    CallService::new(config, registry, pools, one_shots, built_ins, Vec::new())
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
async fn what_does_not_fit_is_told_with_what_would() {
    let long = "x".repeat(59);
    for (tool, arguments, told) in [
        (
            "engine.f",
            json!({"mode": "quick"}),
            "`mode` must be one of [\"fast\",\"slow\"], and the string \"quick\" came",
        ),
        ("engine.f", json!({"size": "big"}), "`size` must be integer or boolean or null, and the string \"big\" came"),
        ("engine.f", json!({"count": null}), "`count` must be integer, and null came"),
        (
            "engine.f",
            json!({"count": "x".repeat(100)}),
            &format!("`count` must be integer, and the string \"{long}… came"),
        ),
        ("engine.f", json!({"qqq": 1}), "unknown argument `qqq`, it takes mode, size, spots, spot, count"),
        ("engine.nothing", json!({"x": 1}), "unknown argument `x`, it takes none"),
        (
            "engine.need",
            json!({"spot": {"y": 1}}),
            "missing argument `name` (string); missing field `spot.name` (integer)",
        ),
    ] {
        assert_eq!(mistake(tool, arguments).await, told);
    }
    let large = mistake("engine.need", json!({"spot": {"name": 1e300}, "name": ""})).await;
    assert!(large.starts_with("`spot.name` must be an integer, and one this large does not arrive exactly"), "{large}");
}

#[tokio::test]
async fn what_may_be_missing_is_told_by_what_is_wrong_within_it() {
    for (arguments, told) in [
        (json!({"spots": [{"name": 1}, {"name": "y"}]}), "`spots[1].name` must be integer, and the string \"y\" came"),
        (json!({"spot": {}}), "missing field `spot.name` (integer)"),
        (json!({"spots": 7}), "`spots` must be array or null, and the number 7 came"),
        (
            json!({"spots": "[1]"}),
            "`spots` must be array or null, and the string \"[1]\" came; that string holds JSON: leave out the quotes \
             around it, and send the list itself",
        ),
        (json!({"spots": "{}"}), "`spots` must be array or null, and the string \"{}\" came"),
    ] {
        assert_eq!(mistake("engine.f", arguments).await, told);
    }
}

#[tokio::test]
async fn where_no_file_has_a_function_the_files_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join("tools").join(name), text).unwrap();
    let none = async || fault(folder.path(), "engine.f", json!({})).await.message;
    write("lame.py", "x = (\n");
    assert_eq!(
        none().await,
        "there is no tool engine.f; `hostler list` shows every tool",
        "what is broken is told as that"
    );
    let silent = |files: &str| {
        let told = format!("no file has a public function ({files}); see `hostler check`");
        format!("there is no tool engine.f; there are no tools: {told}")
    };
    write("a.py", "def _one(): ...\n");
    assert_eq!(none().await, silent("a.py"));
    write("b.py", "class One: ...\n");
    assert_eq!(none().await, silent("a.py, b.py"));
}

#[tokio::test]
async fn a_name_that_is_none_is_answered_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let none = fault(folder.path(), "engine.f", json!({})).await;
    assert_eq!(none.code, Code::ToolNotFound);
    assert!(none.message.contains("--tools DIR"), "{}", none.message);
    for (name, own) in [("write_file", "write_file"), ("file_write", "write_file"), ("web", "web")] {
        let told = fault(folder.path(), name, json!({})).await.message;
        assert!(told.contains(&format!("add \"{own}\" to `enable` under [builtin]")), "{told}");
    }
    std::fs::create_dir(folder.path().join("tools")).unwrap();
    std::fs::write(folder.path().join("tools/engine.py"), TOOL).unwrap();
    let near = fault(folder.path(), "engine.neet", json!({})).await;
    assert_eq!(near.details.near, ["engine.need", "engine.f", "engine.nothing"]);
    let bare = fault(folder.path(), "nede", json!({})).await;
    assert_eq!(bare.message, "there is no tool nede; did you mean engine.need?");
    for path in ["tools/engine.py", "./engine.py", "engine.py"] {
        let told = fault(folder.path(), path, json!({})).await.message;
        let right = "use the name of a tool, FILE.FUNCTION: engine.f (it has engine.f, engine.need, engine.nothing)";
        assert_eq!(told, format!("there is no tool {path}; {right}"));
    }
    std::fs::write(folder.path().join("tools/my-tool.py"), "import plain\ndef greet() -> int:\n    return 1\n")
        .unwrap();
    std::fs::write(folder.path().join("tools/plain.py"), "def gear() -> int:\n    return 1\n").unwrap();
    std::fs::write(folder.path().join("tools/grep.py"), "def own() -> int:\n    return 1\n").unwrap();
    let own = fault(folder.path(), "grep", json!({})).await.message;
    assert_eq!(own, "there is no tool grep; use the name of a tool, FILE.FUNCTION: grep.own", "a file's own name");
    let broken = fault(folder.path(), "my_tool.greet", json!({})).await;
    assert!(broken.message.contains("my-tool.py is broken: `my-tool` is not a valid pack name"), "{}", broken.message);
    let helper = fault(folder.path(), "plain.gear", json!({})).await;
    assert!(helper.message.contains("plain.py is a helper of my-tool.py, which imports it"), "{}", helper.message);
    let far = fault(folder.path(), "qqqqq", json!({})).await;
    assert_eq!(far.message, "there is no tool qqqqq; `hostler list` shows every tool");
}
