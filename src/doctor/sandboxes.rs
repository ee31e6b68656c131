//! Sandboxes: which walls this system has, tried out, and what the tools that ask for some get.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{CheckResult, State};
use crate::config::sandbox::Sandbox;
use crate::process::{Launch, WallLayer, Walls, run, wall_layers, worker_environment};
use crate::registry::FileEntry;
use crate::runtime::Workspace;
use crate::words::plural;

/// How long a shell may take to try to read a file.
const LIMIT: Duration = Duration::from_secs(5);

/// The walls of this system, and how many tools have some.
pub(super) async fn walls(app: &Workspace) -> CheckResult {
    let catalogue = app.calls.registry.catalogue();
    let walled =
        catalogue.files.iter().filter(|entry| entry.settings.sandbox.iter().any(Sandbox::limits_access)).count();
    let open = catalogue.files.iter().filter(|entry| entry.is_unwalled()).count();
    let environment = &app.config().environment;
    let of_entry = |entry: &Arc<FileEntry>| Walls::of(&entry.settings.sandbox, Vec::new(), environment);
    let all_walls: Vec<Arc<Walls>> = catalogue.files.iter().filter_map(of_entry).collect();
    let missing_for: Vec<Vec<WallLayer>> = all_walls.iter().map(|walls| walls.missing()).collect();
    let is_refused = all_walls.iter().zip(&missing_for).any(|(walls, missing)| walls.are_refused_without(missing));
    let lacked: Vec<WallLayer> = missing_for.concat();
    let layers = wall_layers();
    let here: Vec<String> =
        layers.iter().filter_map(|(layer, by)| Some(format!("{} ({})", layer.word(), by.as_ref()?))).collect();
    let missing: Vec<&str> = layers.iter().filter(|(_, by)| by.is_none()).map(|(layer, _)| layer.word()).collect();
    let count = format!("{} with a sandbox, {open} without", plural(walled, "tool file"));
    if WallLayer::Files.is_here() && !hold(app).await {
        let found = format!("this system offers walls and does not keep them; {count}");
        return CheckResult::new(
            "sandbox",
            State::Bad,
            found,
            "run only tools you trust, and report this (docs/security.md)",
        );
    }
    if missing.is_empty() {
        return CheckResult::good("sandbox", format!("walls for {}; {count}", here.join(", ")));
    }
    let walls = if here.is_empty() { String::new() } else { format!("walls for {}; ", here.join(", ")) };
    let found = format!("{walls}no walls for {}; {count}", missing.join(", "));
    if lacked.is_empty() {
        return CheckResult::good("sandbox", found);
    }
    let state = if is_refused { State::Bad } else { State::Doubtful };
    let fix = if cfg!(target_os = "macos") {
        "do without chosen hosts and `processes`, which macOS has no walls for (docs/sandbox.md)"
    } else if lacked.iter().all(|layer| matches!(layer, WallLayer::Hosts | WallLayer::Hiding | WallLayer::Processes)) {
        "allow user namespaces (`sysctl user.max_user_namespaces`; on Ubuntu also kernel.apparmor_restrict_unprivileged_userns=0), or \
         do without chosen hosts and `hide` (docs/sandbox.md)"
    } else {
        "use Linux 6.12 or newer with Landlock and seccomp (docs/security.md)"
    };
    CheckResult::new("sandbox", state, found, fix)
}

/// The files and folders of sandboxes that are not there: a name may be wrong. A hidden one may be missing for good reasons.
pub(super) fn absent(app: &Workspace) -> Option<CheckResult> {
    let catalogue = app.calls.registry.catalogue();
    let sandboxes = || catalogue.files.iter().flat_map(|entry| &entry.settings.sandbox);
    let of_key = |key: &str, paths: &mut dyn Iterator<Item = &PathBuf>| -> Vec<String> {
        let missing: BTreeSet<&PathBuf> = paths.filter(|path| !path.exists()).collect();
        missing.into_iter().map(|path| format!("`{key}` {}", path.display())).collect()
    };
    let mut needed = of_key("read", &mut sandboxes().flat_map(|one| one.read.iter().flatten()));
    needed.extend(of_key("write", &mut sandboxes().flat_map(|one| one.write.iter().flatten())));
    let hidden = of_key("hide", &mut sandboxes().flat_map(|one| &one.hide));
    let found = format!("not there: {}", needed.iter().chain(&hidden).cloned().collect::<Vec<_>>().join(", "));
    match (needed.is_empty(), hidden.is_empty()) {
        (true, true) => None,
        (true, false) => Some(CheckResult::good("sandbox", found)),
        (false, _) => Some(CheckResult::new(
            "sandbox",
            State::Doubtful,
            found,
            "make them, or correct the names (docs/sandbox.md)",
        )),
    }
}

/// Whether a shell within walls starts, and cannot read a file outside of them. True where that cannot be tried.
async fn hold(app: &Workspace) -> bool {
    let closed = app.calls.pools.environments().cache().join(format!(".doctor.{}", std::process::id()));
    if std::fs::write(&closed, "closed\n").is_err() {
        // Said by the line about the cache.
        return true;
    }
    let script = "echo started; read line < \"$1\" && echo read";
    let launch = Launch::new("/bin/sh").args(["-c", script, "sh"]).arg(&closed);
    let launch = launch.envs(worker_environment(&app.config().environment, &[]));
    let done =
        run(&launch.with_walls(Walls::of(&[Sandbox::pure()], Vec::new(), &app.config().environment)), LIMIT, |_| {})
            .await;
    let _ = std::fs::remove_file(&closed);
    done.is_ok_and(|done| done.stdout.trim() == "started")
}
