//! `hostler warm`

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};

use super::call::Feedback;
use super::options::Warm;
use super::style::{self, Refusal};
use crate::environment::{Lease, Pruned};
use crate::outcome::{Code, Fault};
use crate::pool::Listener;
use crate::registry::FileEntry;
use crate::runtime::Workspace;
use crate::words::plural;

/// The result for one tool file.
struct Warmed {
    pack: String,
    seconds: f64,
    built: Result<bool, Fault>,
}

pub(super) async fn run(app: &Workspace, args: &Warm) -> Result<ExitCode, Refusal> {
    let files = chosen(app, &args.names)?;
    let signals = style::signals()?;
    let feedback = Feedback::new();
    let done = tokio::select! {
        done = warm(app, files, &feedback) => Ok(done),
        // A dropped build is killed and its files are removed.
        name = signals.first() => Err(name),
    };
    // The leases protect these environments from the pruning.
    let (warmed, leases) = match done {
        Ok(done) => done,
        Err(name) => {
            feedback.end();
            return Err(Refusal::cancelled(format!("CANCELLED: building was interrupted by {name}")));
        }
    };
    let pruned = args.prune.then(|| app.calls.pools.environments().prune(args.unused_for));
    drop(leases);
    feedback.end();
    if args.json {
        style::answer_json(&as_json(&warmed, pruned.as_ref()));
    } else {
        as_text(&warmed, pruned.as_ref());
    }
    let failed = warmed.iter().find_map(|one| one.built.as_ref().err());
    Ok(failed.map_or(ExitCode::SUCCESS, |fault| ExitCode::from(fault.code.exit_status())))
}

/// Builds one environment after the other, and returns their leases.
async fn warm(app: &Workspace, files: Vec<Arc<FileEntry>>, feedback: &Feedback) -> (Vec<Warmed>, Vec<Lease>) {
    let (mut warmed, mut leases) = (Vec::new(), Vec::new());
    for entry in files {
        let began = Instant::now();
        let lease = match entry.broken() {
            None => app.calls.pools.warm(&entry, &|line| feedback.note(line)).await,
            Some(reason) => Err(Fault::new(Code::StartupFailed, reason)),
        };
        let built = lease.map(|lease| {
            let built = lease.built;
            leases.push(lease);
            built
        });
        let seconds = began.elapsed().as_secs_f64();
        warmed.push(Warmed { pack: entry.file.pack.clone(), seconds, built });
    }
    (warmed, leases)
}

fn chosen(app: &Workspace, names: &[String]) -> Result<Vec<Arc<FileEntry>>, Refusal> {
    let catalogue = app.calls.registry.catalogue();
    if names.is_empty() {
        return Ok(catalogue.files.iter().filter(|entry| entry.serving().has_environment()).cloned().collect());
    }
    let find = |name: &String| {
        let pack = catalogue.files.iter().find(|entry| entry.file.pack == *name).cloned();
        pack.or_else(|| catalogue.resolve(name).ok().map(|tool| Arc::clone(&tool.entry))).ok_or_else(|| {
            Refusal::not_found(format!("there is no pack or tool {name}"), "`hostler list` shows all tools")
        })
    };
    names.iter().map(find).collect()
}

fn as_json(warmed: &[Warmed], pruned: Option<&Pruned>) -> Value {
    let tools = warmed.iter().map(|one| {
        json!({
            "pack": one.pack,
            "ready": one.built.is_ok(),
            "built": one.built.as_ref().is_ok_and(|built| *built),
            "seconds": (one.seconds * 1000.0).round() / 1000.0,
            "error": one.built.as_ref().err(),
        })
    });
    json!({"tools": tools.collect::<Value>(), "pruned": pruned.map(|pruned| &pruned.removed)})
}

fn as_text(warmed: &[Warmed], pruned: Option<&Pruned>) {
    let rows: Vec<Vec<String>> = warmed
        .iter()
        .map(|one| {
            let state = match &one.built {
                Ok(true) => format!("built in {:.1} s", one.seconds),
                Ok(false) => "ready".to_owned(),
                Err(_) => "failed".to_owned(),
            };
            vec![style::plain(&one.pack), state]
        })
        .collect();
    if rows.is_empty() && pruned.is_none() {
        style::note("nothing to build: no tool has an environment");
    } else if !rows.is_empty() {
        style::answer(&style::table(&rows, None));
    }
    for (name, fault) in warmed.iter().filter_map(|one| Some((&one.pack, one.built.as_ref().err()?))) {
        style::error(&format!("{name}: {fault}"));
    }
    if let Some(pruned) = pruned {
        let removed = plural(pruned.removed.len(), "unused environment");
        style::answer(&format!("removed {removed}, kept {}", pruned.kept));
    }
}
