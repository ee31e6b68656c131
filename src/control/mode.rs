//! Methods about the mode in force for a session's folder.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

use super::client::Client;
use super::refusals::{invalid_params, not_changed, unusable};
use super::table::{Answer, Entry, Nothing, Scope, Table};
use crate::audit::record_mode;
use crate::config::kept_mode::{KeptMode, ModeInForce};
use crate::config::mode::{Mode, Modes};
use crate::config::{Config, ConfigError};
use crate::process::{is_below_hostler, is_marked};
use crate::threads::blocking_or_here;

pub(super) fn enter(table: &mut impl Table) {
    let about = "The mode in force for the session's `hostler.toml`, and why.";
    table.enter(Entry { name: "mode.get", scope: Scope::Observe, session: true, about }, get);
    let about = "Sets the mode for everything that uses the session's `hostler.toml`, as `hostler mode` does: over restarts, until it is \
                 cleared or its time is over. In force within a second; the event `mode_changed` says so.";
    table.enter(Entry { name: "mode.set", scope: Scope::Operate, session: true, about }, set);
    let about = "Ends the mode that a person has set. The one of the configuration counts again.";
    table.enter(Entry { name: "mode.clear", scope: Scope::Operate, session: true, about }, clear);
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SetMode {
    /// The mode, in any case: one of `modes` in the answer of `mode.get`.
    mode: String,
    /// How long it lasts; until it is cleared if left out.
    #[serde(default)]
    seconds: Option<u64>,
    /// Why.
    #[serde(default)]
    reason: Option<String>,
}

async fn get(client: Arc<Client>, _: Nothing) -> Answer<ModeInForce> {
    let config = client.service()?.config();
    Ok(blocking_or_here(move || config.mode_in_force()).await)
}

async fn set(client: Arc<Client>, params: SetMode) -> Answer<ModeInForce> {
    let SetMode { mode, seconds, reason } = params;
    if seconds == Some(0) {
        return Err(invalid_params(&"`seconds`: expected 1 or more"));
    }
    let reason = reason.filter(|reason| !reason.trim().is_empty());
    // Those that the files have now: the session's may be older.
    let config = client.service()?.config();
    let named = move || -> Result<Option<Mode>, ConfigError> {
        // One of the five needs no file, which may be what is wrong.
        match Modes::default().named(&mode) {
            None => Ok(Config::of_files(config.options(), &config.directory)?.modes.named(&mode)),
            known => Ok(known),
        }
    };
    let mode = blocking_or_here(named).await.map_err(|error| unusable(&error))?;
    let mode = mode.ok_or_else(|| invalid_params(&"`mode`: no such mode; `mode.get` lists them"))?;
    let kept = KeptMode::new(mode.word(), seconds.map(Duration::from_secs), reason);
    changed(&client, move |config| {
        kept.write(&config.own_mode_file())?;
        record(config, Some(&kept));
        Ok(())
    })
    .await
}

async fn clear(client: Arc<Client>, _: Nothing) -> Answer<ModeInForce> {
    changed(&client, |config| {
        if KeptMode::remove(&config.own_mode_file())? {
            record(config, None);
        }
        Ok(())
    })
    .await
}

fn record(config: &Config, kept: Option<&KeptMode>) {
    record_mode(&config.environment, &config.audit, config.project().as_deref(), kept, "control face");
}

/// Changes what is kept, and answers with the mode that then counts.
async fn changed(
    client: &Client,
    change: impl FnOnce(&Config) -> io::Result<()> + Send + 'static,
) -> Answer<ModeInForce> {
    let config = client.service()?.config();
    let done = move || -> Result<_, ConfigError> {
        // A tool could start a hostler of its own, and ask that.
        if is_marked(&config.environment) || is_below_hostler() {
            return Ok(Err(io::Error::new(io::ErrorKind::PermissionDenied, "a tool may not set the mode")));
        }
        if let Err(error) = change(&config) {
            return Ok(Err(error));
        }
        Ok(Ok(config.load_again()?.mode_in_force()))
    };
    let done = blocking_or_here(done).await.map_err(|error| unusable(&error))?;
    done.map_err(|error| not_changed(&error))
}
