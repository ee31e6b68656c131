//! Modes: the five of specification 002, and the operator's own, each of which is like one of the five.

use std::fmt;

use serde::{Deserialize, Serialize};
use toml::de::DeValue;

use super::origin::Diagnosis;
use super::section::{Section, nearest};
use super::value::{Word, mismatch};

/// The state of the system that tools work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KnownMode {
    /// All is well.
    #[default]
    Normal,
    /// A person should look.
    Alert,
    /// Parts of it do not work.
    Degraded,
    /// As little as possible may happen.
    Lockdown,
    /// It is being restored.
    Recovery,
}

impl Word for KnownMode {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("normal", Self::Normal),
        ("alert", Self::Alert),
        ("degraded", Self::Degraded),
        ("lockdown", Self::Lockdown),
        ("recovery", Self::Recovery),
    ];
}

/// The longest name of an own mode, in bytes.
const LONGEST: usize = 24;

/// The name of an own mode, in place: modes are compared for every call.
#[derive(Clone, Copy, PartialEq, Eq)]
struct OwnName([u8; LONGEST]);

impl OwnName {
    /// A name in lower case: a letter, then letters, digits, `-` and `_`.
    fn new(text: &str) -> Option<Self> {
        let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_');
        let is_name = text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(is_part);
        let mut name = [0; LONGEST];
        name.get_mut(..text.len()).filter(|_| is_name)?.copy_from_slice(text.as_bytes());
        Some(Self(name))
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default().trim_end_matches('\0')
    }
}

/// One of the five modes, or one of the operator's own.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    own: Option<OwnName>,
    /// The one of the five that it is, or is like.
    known: KnownMode,
}

impl From<KnownMode> for Mode {
    fn from(known: KnownMode) -> Self {
        Self { own: None, known }
    }
}

impl Mode {
    /// One of the operator's own.
    #[cfg(test)]
    pub fn own(name: &str, like: KnownMode) -> Self {
        Self { own: OwnName::new(name), known: like }
    }

    /// Its word, in lower case.
    pub fn word(&self) -> &str {
        self.own.as_ref().map_or_else(|| self.known.word(), OwnName::text)
    }

    /// The one of the five whose rules hold in it.
    pub fn like(&self) -> KnownMode {
        self.known
    }

    /// Whether it is one of the operator's own.
    pub fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Whether what is said of this mode holds in another one: in itself, and in every own mode that is like it.
    pub fn covers(&self, other: &Self) -> bool {
        self == other || (self.own.is_none() && self.known == other.known)
    }
}

impl fmt::Debug for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl Serialize for Mode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// One of the five: only a configuration knows the others.
impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        KnownMode::deserialize(deserializer).map(Self::from)
    }
}

impl schemars::JsonSchema for Mode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string"})
    }
}

/// Whether what is said of these modes holds in another one.
pub fn covers(modes: &[Mode], mode: &Mode) -> bool {
    modes.iter().any(|one| one.covers(mode))
}

/// `[policy.modes]`: the operator's own modes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Modes(Vec<Mode>);

/// The five alone.
pub(super) static FIVE: Modes = Modes(Vec::new());

impl Modes {
    pub(super) fn read(section: &Section<'_>) -> Self {
        let mut own: Vec<Mode> = Vec::new();
        for entry in section.entries() {
            match own_mode(entry.key, entry.value) {
                Ok(mode) => {
                    match own.iter().find(|other| other.word() == mode.word()) {
                        None => own.push(mode),
                        Some(same) if *same == mode => {}
                        // Else a project could lift what the person forbids in it.
                        Some(other) => {
                            let what = format!("it is like \"{}\" elsewhere", other.known.word());
                            section.report(&entry, what, "give it the same one, or another name");
                        }
                    }
                }
                Err(Diagnosis { what, fix }) => section.report(&entry, what, fix),
            }
        }
        Self(own)
    }

    /// The mode with this name, in any case.
    pub fn named(&self, name: &str) -> Option<Mode> {
        let name = name.to_ascii_lowercase();
        let own = || self.0.iter().find(|mode| mode.word() == name).copied();
        KnownMode::of(&name).map(Mode::from).or_else(own)
    }

    /// The names of all: the five, and the operator's own.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        KnownMode::WORDS.iter().map(|(word, _)| *word).chain(self.0.iter().map(Mode::word))
    }

    /// The operator's own.
    pub fn own(&self) -> &[Mode] {
        &self.0
    }

    /// A mode in a file, in any case: specification 002 writes them in capitals.
    pub(super) fn mode(&self, value: &DeValue<'_>) -> Result<Mode, Diagnosis> {
        let named = value.as_str().and_then(|name| self.named(name));
        named.ok_or_else(|| {
            let words: Vec<String> = self.names().map(|word| format!("\"{word}\"")).collect();
            let near = value.as_str().and_then(|text| nearest(text, self.names()));
            let fix = near.map_or("write one of them".to_owned(), |near| format!("did you mean \"{near}\"?"));
            mismatch(&format!("one of {}", words.join(", ")), value, fix)
        })
    }

    /// A list of modes in a file.
    pub(super) fn list(&self, value: &DeValue<'_>) -> Result<Vec<Mode>, Diagnosis> {
        let items = value.as_array().ok_or_else(|| mismatch("a list of modes", value, "write [\"normal\"]"))?;
        items.iter().map(|item| self.mode(item.get_ref())).collect()
    }
}

fn own_mode(name: &str, like: &DeValue<'_>) -> Result<Mode, Diagnosis> {
    let name = name.to_ascii_lowercase();
    if KnownMode::of(&name).is_some() {
        return Err(Diagnosis::new("this mode is always there", "give your own mode another name"));
    }
    let own = OwnName::new(&name).ok_or_else(|| {
        let fix = format!("begin with a letter, and use at most {LONGEST} letters, digits, `-` and `_`");
        Diagnosis::new("not a name of a mode", fix)
    })?;
    let known = like.as_str().and_then(|word| KnownMode::of(&word.to_ascii_lowercase()));
    let known = known.ok_or_else(|| {
        let words: Vec<String> = KnownMode::WORDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let fix = format!("write the mode whose rules hold in it, too, like `{name} = \"lockdown\"`");
        mismatch(&format!("one of {}", words.join(", ")), like, fix)
    })?;
    Ok(Mode { own: Some(own), known })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_mode_holds_in_those_that_are_like_it() {
        let (frozen, audit) = (Mode::own("frozen", KnownMode::Lockdown), Mode::own("audit", KnownMode::Lockdown));
        let lockdown = Mode::from(KnownMode::Lockdown);
        assert!(lockdown.covers(&frozen) && lockdown.covers(&lockdown) && frozen.covers(&frozen));
        assert!(!frozen.covers(&lockdown) && !frozen.covers(&audit) && !Mode::default().covers(&frozen));
        assert_eq!((frozen.word(), lockdown.word()), ("frozen", "lockdown"));
    }

    #[test]
    fn names_are_short_words() {
        let longest = "m".repeat(LONGEST);
        for name in ["a", "change-freeze_2", &longest] {
            assert_eq!(OwnName::new(name).as_ref().map(OwnName::text), Some(name));
        }
        for name in ["", "1a", "A", "a b", "a\0", "é", "-a", &format!("{longest}m")] {
            assert!(OwnName::new(name).is_none(), "{name:?}");
        }
    }
}
