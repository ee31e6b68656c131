//! The sandbox of an installed tool: proposed from what it declares, chosen by the person, kept in the person's own `hostler.toml`.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::preview::Preview;
use crate::cli::style::{self, Refusal};
use crate::config::private_file::replace_shared;
use crate::config::sandbox::{Preset, Sandbox, SandboxLayer};
use crate::config::sandbox_edit::with_sandbox;
use crate::config::tool::Effects;
use crate::config::value::Word;
use crate::config::{Config, environment};
use crate::registry::Tool;

/// What a tool's sandbox could be, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proposal {
    /// It has one already: by its header or by the configuration, at this place.
    Has(String),
    /// It declares what fits a preset.
    Preset(Preset, String),
    /// It says nothing that one follows from.
    Nothing,
}

impl Proposal {
    /// From what the tools of a file declare.
    pub fn of(preview: &Preview<'_>, config: &Config) -> Self {
        let Some(entry) = preview.entry else { return Self::Nothing };
        let own = config.packs.get(&entry.file.pack).and_then(|own| own.sandbox.last());
        if let Some(set) = own {
            return Self::Has(set.origin.to_string());
        }
        // What only says that there has to be a sandbox gets the one for readers, which need not be the one that fits.
        let requires = |tool: &Tool| tool.settings.policy.requires_sandbox.as_ref().is_some_and(|set| set.value);
        let is_implied = preview.catalogue.tools.iter().any(|tool| requires(tool));
        let says_nothing = |one: &Sandbox| one.is_unlimited() || (is_implied && one.preset == Some(Preset::Reader));
        if let Some(sandbox) = entry.settings.sandbox.iter().find(|one| !says_nothing(one)) {
            return Self::Has(sandbox.origin.to_string());
        }
        let has_secrets = !entry.settings.secrets.value.is_empty();
        let found: Option<Vec<_>> = preview.catalogue.tools.iter().map(|tool| declared(tool, has_secrets)).collect();
        let Some(found) = found else { return Self::Nothing };
        let mut presets: BTreeSet<&str> = found.iter().map(|(preset, _)| preset.word()).collect();
        // What needs more has what the others need.
        if presets.len() > 1 {
            presets.remove(Preset::Pure.word());
        }
        match found.into_iter().find(|(preset, _)| presets.contains(preset.word())) {
            Some((preset, why)) if presets.len() == 1 => Self::Preset(preset, why),
            _ => Self::Nothing,
        }
    }

    /// What is shown before the question.
    pub fn as_text(&self, chosen: Option<Preset>) -> Option<String> {
        match (chosen, self) {
            (Some(chosen), _) => Some(format!("{} (--sandbox)", chosen.word())),
            (None, Self::Has(origin)) => Some(format!("as set by {origin}")),
            (None, Self::Preset(preset, why)) => Some(format!("{} would fit: {why}", preset.word())),
            (None, Self::Nothing) => None,
        }
    }

    /// Asks for one on a terminal, if there is something to propose. `None` leaves the tool without.
    pub async fn ask(&self) -> Result<Option<Preset>, Refusal> {
        let Self::Preset(proposed, _) = self else { return Ok(None) };
        let words = || Preset::WORDS.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
        let question = format!("Sandbox ({})? [{}] ", words(), proposed.word());
        let Some(line) = style::line(&question, "nothing was installed").await? else {
            return Err(Refusal::cancelled("nothing was installed"));
        };
        let word = line.trim().to_lowercase();
        let known = if word.is_empty() { Some(*proposed) } else { Preset::of(&word) };
        known.map(Some).ok_or_else(|| {
            Refusal::new(format!("nothing was installed: no sandbox `{word}`"), format!("choose one of {}", words()))
        })
    }
}

/// What fits one function, and what it declares to that.
fn declared(tool: &Tool, has_secrets: bool) -> Option<(Preset, String)> {
    let (policy, effects) = (&tool.settings.policy, tool.settings.effects.value);
    let category = policy.category.as_ref().map(|category| category.value.as_str());
    let of_category = |preset: Preset, name: &str| Some((preset, format!("{} is in the category {name}", tool.name)));
    match category {
        Some(name @ "network") => of_category(Preset::Network, name),
        Some(name @ "read_only") if effects != Effects::Pure => of_category(Preset::Reader, name),
        _ if policy.allowed_hosts.is_some() => {
            Some((Preset::Network, format!("{} declares `allowed_hosts`", tool.name)))
        }
        _ if has_secrets => Some((Preset::Network, "it needs secrets, and so most likely a service".to_owned())),
        None | Some("read_only") if effects == Effects::Pure => {
            let preset = if takes_paths(tool) { Preset::Reader } else { Preset::Pure };
            Some((preset, format!("{} declares `effects = \"pure\"`", tool.name)))
        }
        _ => None,
    }
}

/// Whether an argument is a path.
fn takes_paths(tool: &Tool) -> bool {
    serde_json::to_string(tool.input_schema()).is_ok_and(|schema| schema.contains("\"format\":\"path\""))
}

/// A file of the person's, with the sandbox and as it was.
pub(super) struct Kept {
    file: PathBuf,
    before: Option<Vec<u8>>,
}

impl Kept {
    /// Writes the choice down, before the tool is there to be served without it.
    pub fn write(config: &Config, pack: &str, preset: Preset) -> Result<Self, Refusal> {
        let file = environment::user_config(&config.environment);
        let failed = |error| Refusal::io(format!("nothing was installed: cannot change {}", file.display()), error);
        let before = match std::fs::read(&file) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
        };
        let text = String::from_utf8(before.clone().unwrap_or_default());
        let text = text.map_err(|_| failed(io::ErrorKind::InvalidData.into()))?;
        let sandbox = SandboxLayer { preset: Some(preset), ..SandboxLayer::default() };
        let refused = |wrong: crate::config::origin::Diagnosis| {
            Refusal::new(format!("nothing was installed: {}", wrong.what), wrong.fix)
        };
        let after = with_sandbox(&text, pack, &sandbox).map_err(refused)?;
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        replace_shared(&file, after.as_bytes()).map_err(failed)?;
        Ok(Self { file, before })
    }

    /// Puts the file back: the tool could not be installed.
    pub fn undo(self) {
        let done = match &self.before {
            Some(bytes) => replace_shared(&self.file, bytes),
            None => std::fs::remove_file(&self.file),
        };
        if let Err(error) = done {
            style::warn(&format!("{} still has the sandbox: {error}", self.file.display()));
        }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }
}
