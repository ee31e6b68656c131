//! Puts the modes in force that are reached by themselves: measures, asks `policy/automatic.rs`, and keeps the mode where a person's is kept,
//! so that every hostler of that configuration follows.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::audit::record_mode;
use crate::call::CallService;
use crate::config::Config;
use crate::config::environment::state;
use crate::config::kept_mode::KeptMode;
use crate::config::mode::KnownMode;
use crate::config::value::Word;
use crate::policy::{AutomaticModes, Calls, InForce, Reading, Step};
use crate::threads::blocking_or_here;

/// The pauses between two measurements: a part of the time that something has to last.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Follows a service until it ends.
pub(super) async fn follow(service: Weak<CallService>) {
    let Some(mut changes) = service.upgrade().map(|service| service.reconfigurations()) else { return };
    let began = Instant::now();
    // Why the mode could not be changed, as it was said.
    let mut said: Option<String> = None;
    let mut watched: Option<(AutomaticModes, Option<System>)> = None;
    loop {
        let Some((config, calls)) = service.upgrade().map(|service| (service.config(), service.counted())) else {
            return;
        };
        let Some(rules) = config.automatic.as_ref().map(|set| set.value.clone()) else {
            watched = None;
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        };
        let pause = (rules.after / 5).clamp(PAUSES.0, PAUSES.1);
        let (mut modes, system) = match watched.take() {
            Some((modes, system)) if *modes.rules() == rules => (modes, system),
            _ => (AutomaticModes::new(rules), None),
        };
        let folder = state(&config.environment);
        let (system, reading) = blocking_or_here(move || measured(system, &folder, calls)).await;
        let step = modes.step(began.elapsed(), &reading, in_force(&config));
        watched = Some((modes, system));
        if let Step::Reach(mode, reason, lasts) = step {
            let (file, kept) = (config.own_mode_file(), KeptMode::reached(mode, reason, lasts));
            let config = Arc::clone(&config);
            let written = blocking_or_here(move || {
                // A lease that is renewed is no change.
                if kept.write_unless_set(&file)? {
                    let project = config.project();
                    record_mode(
                        &config.environment,
                        &config.audit,
                        project.as_deref(),
                        Some(&kept),
                        "[policy.automatic]",
                    );
                }
                Ok::<_, std::io::Error>(())
            });
            let written = written.await;
            let failed = written.err().map(|error| error.to_string());
            if let Some(error) = failed.as_ref().filter(|_| failed != said) {
                tracing::warn!(%error, "the mode should be {}, and cannot be changed", mode.word().to_uppercase());
            }
            said = failed;
        }
        tokio::time::sleep(pause).await;
    }
}

fn in_force(config: &Config) -> InForce {
    match &config.kept_mode {
        Some((_, kept)) if kept.is_automatic => InForce::Reached(config.mode.value.like(), kept.left()),
        None if config.mode.value == KnownMode::Normal.into() => InForce::Normal,
        _ => InForce::Set,
    }
}

/// `system` is what was looked at before, if something was.
fn measured(system: Option<System>, folder: &Path, calls: Calls) -> (Option<System>, Reading) {
    let mut reading = Reading { disk: disk_of(folder), calls, ..Reading::default() };
    let kinds = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing().with_usage())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let has_measured = system.is_some();
    let Some(mut system) = system.or_else(|| System::new_with_specifics(RefreshKind::nothing()).ok()) else {
        return (None, reading);
    };
    system.refresh_specifics(kinds);
    let (whole, free) = (system.total_memory(), system.available_memory());
    reading.memory = (whole > 0).then(|| percent(whole.saturating_sub(free), whole));
    // It is measured between two looks.
    reading.cpu = has_measured.then(|| f64::from(system.global_cpu_usage()));
    (Some(system), reading)
}

/// How full the disk is that a folder is on, or will be.
fn disk_of(folder: &Path) -> Option<f64> {
    let existing: PathBuf = folder.ancestors().find(|path| path.exists())?.to_owned();
    let about = rustix::fs::statvfs(&existing).ok()?;
    let used = about.f_blocks.saturating_sub(about.f_bfree);
    // What only root may use is not free.
    let whole = used + about.f_bavail;
    (whole > 0).then(|| percent(used, whole))
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}
