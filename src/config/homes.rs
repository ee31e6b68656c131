//! Where keys belong that stand in another table: a key under the wrong head is as common as a misspelt one.

use super::facts::Facts;

/// Keys of a tool that its header may set, and hostler.toml too.
const OF_TOOLS: [&str; 13] = [
    "timeout",
    "startup_timeout",
    "idle_timeout",
    "max_queue",
    "max_memory",
    "max_workers",
    "concurrency",
    "max_calls",
    "max_lifetime",
    "max_rss",
    "effects",
    "secrets",
    "protocol",
];
/// Keys of a tool that only an operator may set.
const OF_OPERATORS: [&str; 8] =
    ["min_workers", "launcher", "validate", "host_access", "pass_env", "env", "config", "functions"];
/// Keys of uv.
const OF_UV: [&str; 6] = ["sources", "index", "exclude-newer", "index-url", "extra-index-url", "find-links"];

/// Whether a key may stand under `[tool.NAME]`.
pub(super) fn is_of_packs(key: &str) -> bool {
    OF_TOOLS.contains(&key) || Facts::KEYS.contains(&key) || OF_OPERATORS.contains(&key)
}

/// Whether a key is one of `[tool.hostler]`.
pub(crate) fn is_ours(key: &str) -> bool {
    key == "pack" || OF_TOOLS.contains(&key) || Facts::KEYS.contains(&key)
}

/// What other files call the keys of a header.
pub(super) fn called_otherwise(key: &str, is_list: bool) -> Option<&'static str> {
    match key {
        "requires" | "install_requires" | "install-requires" | "requirements" | "packages" | "deps" if is_list => {
            Some("dependencies")
        }
        "python_requires" | "python-requires" | "requires_python" | "python" | "python-version" | "python_version"
            if !is_list =>
        {
            Some("requires-python")
        }
        _ => None,
    }
}

/// Where a key of a header belongs, if it is one.
pub(super) fn in_header(key: &str) -> Option<String> {
    let place = match key {
        "dependencies" | "requires-python" => "it belongs above the first [table] of the header".to_owned(),
        "pack" => "it belongs under [tool.hostler]".to_owned(),
        "hostler" => "the table is called [tool.hostler]".to_owned(),
        "uv" => "the table is called [tool.uv]".to_owned(),
        "project" => "a header has no [project]: `dependencies` and `requires-python` stand at its top".to_owned(),
        key if is_ours(key) => "it belongs under [tool.hostler]".to_owned(),
        key if OF_OPERATORS.contains(&key) => {
            "a header cannot set it: it belongs under [tool.NAME] in hostler.toml".to_owned()
        }
        key if OF_UV.contains(&key) => "it belongs under [tool.uv]".to_owned(),
        _ => return None,
    };
    Some(place)
}

/// Where a key of hostler.toml belongs, if it is one.
pub(super) fn in_file(key: &str) -> Option<String> {
    let place = match key {
        "tools" | "log" => "it belongs above the first [table]",
        "uv" | "python" | "build_timeout" | "keep" => "it belongs under [environment]",
        "max_output" | "max_concurrent_calls" => "it belongs under [limits]",
        "schema_timeout" | "on_schema_failure" => "it belongs under [executables]",
        "ignore" => "it belongs under [check]",
        "envelope" => "it belongs under [mcp]",
        "enable" | "disable" | "roots" => "it belongs under [builtin]",
        "pack" | "dependencies" | "requires-python" => "it belongs into the header of the tool file",
        "config" | "env" | "protocol" | "functions" => "it belongs under [tool.NAME], with the name of a pack",
        key if is_of_packs(key) => "it belongs under [tool] for every tool, or under [tool.NAME] for one",
        key if key.contains('_') && key.chars().all(|c| c.is_ascii_uppercase() || c == '_') => {
            "variables for uv belong under [environment.env], secrets under [secrets]"
        }
        _ => return None,
    };
    Some(place.to_owned())
}
