//! `hostler mode`: the mode in force, and setting another one.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use humantime::format_duration;
use serde_json::json;

use super::options::SetMode;
use super::style::{self, Refusal};
use crate::audit::record_mode;
use crate::config::audit::AuditSettings;
use crate::config::kept_mode::KeptMode;
use crate::config::load::project_file;
use crate::config::mode::{Mode, Modes};
use crate::config::section::nearest;
use crate::config::value::Word;
use crate::config::{Config, ConfigOptions};
use crate::process::{is_below_hostler, is_marked};

pub(super) fn run(args: &SetMode, wanted: &ConfigOptions, directory: &Path) -> Result<ExitCode, Refusal> {
    let file = Config::mode_file(wanted, directory);
    if (args.clear || args.mode.is_some()) && (is_marked(&wanted.environment) || is_below_hostler()) {
        return Err(Refusal::new("a tool may not set the mode", "set it from a terminal that no tool has started"));
    }
    // A broken file keeps no mode from being set.
    let files = Config::of_files(wanted, directory);
    let audit = match &files {
        Ok(config) => config.audit.clone(),
        Err(_) => Config::of_person(wanted).map_or_else(|_| AuditSettings::unknown(), |own| own.audit),
    };
    let project = project_file(wanted, directory);
    let record =
        |kept: Option<&KeptMode>| record_mode(&wanted.environment, &audit, project.as_deref(), kept, "hostler mode");
    let failed = |error| Refusal::io(format!("cannot write {}", file.display()), error);
    if args.clear {
        // It may be what makes the configuration unusable.
        if KeptMode::remove(&file).map_err(failed)? {
            record(None);
        }
    }
    if let Some(mode) = &args.mode {
        let mode = named(mode, || Ok(files?.modes))?;
        let kept = KeptMode::new(mode.word(), args.lasts, args.reason.clone());
        kept.write(&file).map_err(failed)?;
        record(Some(&kept));
    }
    let config = Config::load(wanted, directory)?;
    show(&config, args.json);
    Ok(ExitCode::SUCCESS)
}

/// The mode with this name. One of the five is known without the files, which may be what is wrong.
pub(super) fn named(name: &str, modes: impl FnOnce() -> Result<Modes, Refusal>) -> Result<Mode, Refusal> {
    if let Some(mode) = Modes::default().named(name) {
        return Ok(mode);
    }
    let modes = modes()?;
    modes.named(name).ok_or_else(|| {
        let near = nearest(name, modes.names()).map(|near| format!("did you mean `{near}`? "));
        let known = modes.names().collect::<Vec<_>>().join(", ");
        let fix = format!("{}the modes are {known}; define others in [policy.modes]", near.unwrap_or_default());
        Refusal::new(format!("no mode `{name}`"), fix)
    })
}

fn show(config: &Config, is_json: bool) {
    let found = config.mode_in_force();
    if is_json {
        return style::answer_json(&json!(found));
    }
    let mut rows = vec![row("mode", &described(found.mode, &found.origin)), row("counts for", &found.counts_for)];
    if let Some((_, kept)) = &config.kept_mode {
        let until = kept.left().map(|left| format!(", for another {}", seconds(left))).unwrap_or_default();
        rows.push(row("set", &format!("{} ago{until}", seconds(kept.age()))));
        rows.extend(kept.reason.iter().map(|reason| row("reason", reason)));
        rows.push(row("otherwise", &described(found.otherwise.mode, &found.otherwise.origin)));
    }
    if !config.modes.own().is_empty() {
        rows.push(row("modes", &config.modes.names().collect::<Vec<_>>().join(", ")));
    }
    if let Some(automatic) = &config.automatic {
        rows.push(row("automatic", &format!("{} ({})", automatic.value, automatic.origin)));
    }
    style::answer(&style::table(&rows, style::terminal_width()));
}

fn described(mode: Mode, origin: &str) -> String {
    let like = if mode.is_own() { format!(", like {}", mode.like().word().to_uppercase()) } else { String::new() };
    format!("{}{like} ({origin})", mode.word().to_uppercase())
}

fn row(name: &str, value: &str) -> Vec<String> {
    vec![name.to_owned(), style::plain(value)]
}

fn seconds(time: Duration) -> String {
    format_duration(Duration::from_secs(time.as_secs())).to_string()
}
