//! `hostler calls prune`: removes calls that are kept no longer.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::kept_calls::unreadable;
use super::style::{self, Refusal};
use crate::config::{Config, ConfigOptions, Environment};
use crate::journal::{Keep, KeptSources, LazyStore, Place, StoreAddress, StoreError, excess, prune};
use crate::telemetry::unix_ms;
use crate::words::plural;

pub(super) fn run(
    environment: &Arc<Environment>,
    is_json: bool,
    time: Option<Duration>,
    calls: Option<u64>,
    is_dry: bool,
) -> Result<ExitCode, Refusal> {
    let options = ConfigOptions { environment: Arc::clone(environment), ..ConfigOptions::default() };
    let usual = Keep::from(&Config::of_person(&options)?.journal);
    let keep = Keep { time: time.unwrap_or(usual.time), calls: calls.unwrap_or(usual.calls), ..usual };
    let (store, sources) = (LazyStore::new(StoreAddress::of(environment)), Place::of(environment).sources());
    let has_store = store.address().may_exist();
    let done =
        if has_store { pruned(&store, &sources, keep, is_dry).map_err(|error| unreadable(&error))? } else { (0, 0) };
    let (gone, left) = done;
    if is_json {
        style::answer_json(&json!({"removed": gone, "kept": left, "dry_run": is_dry}));
    } else {
        let what = if is_dry { "would go" } else { "removed" };
        style::note(&format!("{} {what}, {left} kept", plural(usize::try_from(gone).unwrap_or(usize::MAX), "call")));
    }
    Ok(ExitCode::SUCCESS)
}

/// How many calls went, or would go, and how many are left.
fn pruned(store: &LazyStore, sources: &KeptSources, keep: Keep, is_dry: bool) -> Result<(u64, u64), StoreError> {
    let (held, now) = (store.with(|store| store.held())?, unix_ms());
    let gone = if is_dry {
        store.with(|store| store.count(excess(held, keep, now), now))?
    } else {
        prune(store, sources, keep, now, || true)?
    };
    Ok((gone, held.calls.saturating_sub(gone)))
}
