//! The mode that a person has set, which counts over the one in the configuration until it is cleared or its time is over. It is kept in a
//! file for each project file, and one for all that has none.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::environment::{Environment, state};
use super::load::{Config, ConfigError, ConfigOptions, project_file};
use super::mode::{KnownMode, Mode, Modes};
use super::origin::{Origin, Setting};
use super::private_file::replace;
use super::value::Word;

/// A mode that a person has set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptMode {
    /// Its word. Whether there is such a mode, the configuration says.
    pub mode: String,
    /// When it was set, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it ends, likewise; `None` if somebody has to end it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Why it was set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether no person has set it: it was reached by itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_automatic: bool,
}

/// The mode in force, and why.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct ModeInForce {
    /// The mode.
    pub mode: Mode,
    /// The mode whose rules hold in it, too, if it is one of the operator's own.
    pub like: Option<KnownMode>,
    /// What set it: `hostler mode`, or a file and its line.
    pub origin: String,
    /// The `hostler.toml` for whose sessions it counts, or what else they have in common.
    pub counts_for: String,
    /// When it was set, in milliseconds since 1970; null for a mode of the configuration.
    pub since_ms: Option<u64>,
    /// When it ends by itself, likewise.
    pub until_ms: Option<u64>,
    /// Why it was set.
    pub reason: Option<String>,
    /// What will be in force when it has ended.
    pub otherwise: OtherMode,
    /// The modes that can be set.
    pub modes: Vec<String>,
}

/// A mode of the configuration.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct OtherMode {
    /// The mode.
    pub mode: Mode,
    /// What set it.
    pub origin: String,
}

impl ModeInForce {
    /// Of a mode in the files, and one that a person has set over it.
    pub(super) fn of(
        modes: &Modes,
        mode: &Setting<Mode>,
        kept: Option<&(Setting<Mode>, KeptMode)>,
        project: Option<&Path>,
    ) -> Self {
        let of_files = kept.map_or(mode, |(of_files, _)| of_files);
        let kept = kept.map(|(_, kept)| kept);
        let no_project = || "sessions without a hostler.toml".to_owned();
        Self {
            mode: mode.value,
            like: mode.value.is_own().then(|| mode.value.like()),
            origin: mode.origin.to_string(),
            counts_for: project.map_or_else(no_project, |file| file.display().to_string()),
            since_ms: kept.map(|kept| kept.since_ms),
            until_ms: kept.and_then(|kept| kept.until_ms),
            reason: kept.and_then(|kept| kept.reason.clone()),
            otherwise: OtherMode { mode: of_files.value, origin: of_files.origin.to_string() },
            modes: modes.names().map(str::to_owned).collect(),
        }
    }
}

/// Milliseconds since 1970.
fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

impl KeptMode {
    /// A mode from now on.
    pub fn new(mode: &str, lasts: Option<Duration>, reason: Option<String>) -> Self {
        let since_ms = now_ms();
        let until = |lasts: Duration| since_ms.saturating_add(u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
        Self { mode: mode.to_owned(), since_ms, until_ms: lasts.map(until), reason, is_automatic: false }
    }

    /// A mode that was reached by itself.
    pub fn reached(mode: KnownMode, reason: String, lasts: Option<Duration>) -> Self {
        Self { is_automatic: true, ..Self::new(mode.word(), lasts, Some(reason)) }
    }

    /// Where it is kept for a project file, or for everything without one.
    pub fn file(environment: &Environment, project: Option<&Path>) -> PathBuf {
        let name = project.map_or_else(
            || "person".to_owned(),
            |path| {
                let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
                let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
                digest.iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
            },
        );
        state(environment).join("modes").join(format!("{name}.json"))
    }

    /// What is kept there, unless its time is over.
    pub fn read(file: &Path) -> io::Result<Option<Self>> {
        let text = match std::fs::read(file) {
            Ok(text) => text,
            // Where no file can be seen, none can have been written.
            Err(error) if file.symlink_metadata().is_err() => {
                tracing::debug!("no mode is kept: {error}");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let kept: Self = serde_json::from_slice(&text)?;
        Ok(Some(kept).filter(|kept| !kept.left().is_some_and(|left| left.is_zero())))
    }

    /// How long it still lasts, if it ends by itself.
    pub fn left(&self) -> Option<Duration> {
        self.until_ms.map(|until| Duration::from_millis(until.saturating_sub(now_ms())))
    }

    /// How long ago it was set.
    pub fn age(&self) -> Duration {
        Duration::from_millis(now_ms().saturating_sub(self.since_ms))
    }

    /// Keeps it there, in place of another one.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        let _turn = turn(made(file)?)?;
        replace(file, &serde_json::to_vec(self)?)
    }

    /// The same, unless a person has set a mode. Whether it was written in the place of another mode, or of none.
    pub fn write_unless_set(&self, file: &Path) -> io::Result<bool> {
        let _turn = turn(made(file)?)?;
        let before = Self::read(file)?;
        let is_set = before.as_ref().is_some_and(|kept| !kept.is_automatic);
        if !is_set {
            replace(file, &serde_json::to_vec(self)?)?;
        }
        Ok(!is_set && before.is_none_or(|before| before.mode != self.mode))
    }

    /// Ends it. Whether there was one.
    pub fn remove(file: &Path) -> io::Result<bool> {
        let _turn = match turn(folder_of(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            turn => turn?,
        };
        match std::fs::remove_file(file) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

/// The folder of a file, which is made if it is missing.
fn made(file: &Path) -> io::Result<&Path> {
    let folder = folder_of(file);
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    Ok(folder)
}

/// The right to change what a folder has, until it is dropped: one process has it at a time.
fn turn(folder: &Path) -> io::Result<File> {
    let folder = File::open(folder)?;
    flock(&folder, FlockOperation::LockExclusive)?;
    Ok(folder)
}

impl Config {
    /// Where the mode is kept that a person has set for a directory.
    pub fn mode_file(options: &ConfigOptions, directory: &Path) -> PathBuf {
        KeptMode::file(&options.environment, project_file(options, directory).as_deref())
    }

    /// Where the mode is kept that a person has set for this configuration.
    pub fn own_mode_file(&self) -> PathBuf {
        KeptMode::file(&self.environment, self.project().as_deref())
    }

    /// Takes the mode that a person has set. One that cannot be read may be a stricter one.
    pub(super) fn follow_person(&mut self) -> Result<(), ConfigError> {
        let file = self.own_mode_file();
        let kept = KeptMode::read(&file).map_err(|error| ConfigError::Unreadable {
            path: file.display().to_string(),
            error,
            fix: "set the mode again with `hostler mode MODE`, or run `hostler mode --clear`",
        })?;
        let of_files = self.kept_mode.take().map_or_else(|| self.mode.clone(), |(of_files, _)| of_files);
        let Some(kept) = kept else {
            self.mode = of_files;
            return Ok(());
        };
        let by = if kept.is_automatic { "[policy.automatic]" } else { "hostler mode" };
        let value = self.modes.named(&kept.mode).ok_or_else(|| ConfigError::Unreadable {
            path: file.display().to_string(),
            error: io::Error::other(format!("the mode that is set, {:?}, does not exist", kept.mode)),
            fix: "define it in [policy.modes], set another one with `hostler mode MODE`, or run `hostler mode --clear`",
        })?;
        self.mode = Setting { value, origin: Origin::Command(by) };
        self.kept_mode = Some((of_files, kept));
        Ok(())
    }

    /// This configuration with the mode that is set now, if that is another one: a mode counts also while the files cannot be used.
    pub fn with_mode_of_now(&self) -> Option<Self> {
        let mut changed = self.clone();
        changed.follow_person().ok()?;
        (changed.mode != self.mode || changed.kept_mode != self.kept_mode).then_some(changed)
    }

    /// The mode in force, and why.
    pub fn mode_in_force(&self) -> ModeInForce {
        ModeInForce::of(&self.modes, &self.mode, self.kept_mode.as_ref(), self.project().as_deref())
    }

    /// How long the mode that a person has set still lasts, if it ends by itself.
    pub fn mode_left(&self) -> Option<Duration> {
        self.kept_mode.as_ref().and_then(|(_, kept)| kept.left())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_persons_mode_is_not_replaced_by_one_that_was_reached() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("modes/x.json");
        let mode = || KeptMode::read(&file).unwrap().map(|kept| (kept.mode, kept.is_automatic));
        let set_by = |mode: KnownMode, is_automatic| Some((mode.word().to_owned(), is_automatic));
        let reached = |mode| KeptMode::reached(mode, "why".to_owned(), None);
        reached(KnownMode::Degraded).write_unless_set(&file).unwrap();
        reached(KnownMode::Alert).write_unless_set(&file).unwrap();
        assert_eq!(mode(), set_by(KnownMode::Alert, true));
        KeptMode::new("recovery", None, None).write(&file).unwrap();
        reached(KnownMode::Lockdown).write_unless_set(&file).unwrap();
        assert_eq!(mode(), set_by(KnownMode::Recovery, false));
        assert!(KeptMode::remove(&file).unwrap() && !KeptMode::remove(&file).unwrap());
        assert_eq!(mode(), None);
    }
}
