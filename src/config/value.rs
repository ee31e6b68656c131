//! How TOML values become typed settings.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use toml::de::{DeValue, ValueDeserializer};

use super::origin::Diagnosis;

/// Another value than expected.
pub fn mismatch(expected: &str, value: &DeValue<'_>, fix: impl Into<String>) -> Diagnosis {
    Diagnosis::new(format!("expected {expected}, got {}", describe(value)), fix)
}

/// A value as a message shows it.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        other => kind(other).to_owned(),
    }
}

/// The kind of a value, where the value itself may be a secret in the wrong place.
pub(super) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// A type that a setting can have.
pub trait FromToml: Sized {
    /// Reads the value.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis>;
}

impl FromToml for bool {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        value.as_bool().ok_or_else(|| mismatch("a boolean", value, "write true or false"))
    }
}

impl FromToml for String {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        value.as_str().map(str::to_owned).ok_or_else(|| mismatch("a string", value, "write it in quotes"))
    }
}

impl FromToml for PathBuf {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        value.as_str().map(Self::from).ok_or_else(|| mismatch("a path", value, "write it in quotes"))
    }
}

impl FromToml for toml::Table {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let table = Self::deserialize(ValueDeserializer::from(toml::Spanned::new(0..0, value.clone())));
        table.map_err(|_| Diagnosis::new(format!("expected a table, got {}", kind(value)), "write `{ key = value }`"))
    }
}

impl FromToml for usize {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        integer(value).ok_or_else(|| mismatch("an integer", value, "write 0 or more"))
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let items = value.as_array().ok_or_else(|| {
            let item = value.as_str().unwrap_or("…");
            mismatch("a list", value, format!("write [\"{item}\"]"))
        })?;
        let read = |(index, item): (usize, &toml::Spanned<DeValue<'_>>)| {
            T::from_toml(item.get_ref())
                .map_err(|wrong| Diagnosis { what: format!("item {}: {}", index + 1, wrong.what), ..wrong })
        };
        items.iter().enumerate().map(read).collect()
    }
}

impl FromToml for Duration {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let seconds = integer(value).map(|seconds| seconds.to_string());
        let seconds = seconds.or_else(|| value.as_float().map(|number| number.as_str().to_owned()));
        let written = seconds.or_else(|| value.as_str().map(str::to_owned)).unwrap_or_default();
        let fix = "write \"30s\", \"5m\" or \"1h 30m\", at most ten years (a number is in seconds)";
        parse_duration(&written).ok_or_else(|| mismatch("a duration", value, fix))
    }
}

/// A type whose values are a few words.
pub trait Word: Copy + PartialEq + 'static {
    /// Every value with its word.
    const WORDS: &'static [(&'static str, Self)];

    /// Its word in files and in `--json`.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, value)| *value == self).map_or("", |(word, _)| word)
    }

    /// The value with this word.
    fn of(text: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
    }
}

impl<T: Word> FromToml for T {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        value.as_str().and_then(Self::of).ok_or_else(|| {
            let words: Vec<String> = Self::WORDS.iter().map(|(word, _)| format!("\"{word}\"")).collect();
            mismatch(&format!("one of {}", words.join(", ")), value, "write one of them")
        })
    }
}

/// When an idle worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdleTimeout {
    /// This long after its last call.
    After(Duration),
    /// When hostler ends.
    Never,
}

impl FromToml for IdleTimeout {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        if value.as_str() == Some("never") {
            return Ok(Self::Never);
        }
        let time = Duration::from_toml(value).map(Self::After);
        time.map_err(|wrong| Diagnosis { fix: format!("{}, or \"never\"", wrong.fix), ..wrong })
    }
}

/// A number of bytes: `"64MB"`, `"1 GiB"` or a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub usize);

impl FromToml for ByteCount {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Diagnosis> {
        let size = integer(value).or_else(|| value.as_str().and_then(parse_bytes));
        let fix = "write one like \"64MB\" or \"2GiB\" (a number is in bytes)";
        size.map(Self).ok_or_else(|| mismatch("a size", value, fix))
    }
}

/// A duration longer than zero.
pub(super) fn limit(value: &DeValue<'_>) -> Result<Duration, Diagnosis> {
    let limit = Duration::from_toml(value)?;
    if limit.is_zero() {
        return Err(mismatch("a duration longer than zero", value, "write one like \"30s\""));
    }
    Ok(limit)
}

/// A number of at least one.
pub(super) fn count(value: &DeValue<'_>) -> Result<usize, Diagnosis> {
    let count = integer(value).filter(|count| *count > 0);
    count.ok_or_else(|| mismatch("a positive integer", value, "write 1 or more"))
}

/// A Python interpreter alone needs this much.
const LEAST_MEMORY: ByteCount = ByteCount(16_000_000);

/// A limit on the memory of processes.
pub(super) fn memory(value: &DeValue<'_>) -> Result<ByteCount, Diagnosis> {
    let size = ByteCount::from_toml(value)?;
    if size < LEAST_MEMORY {
        let fix = "write one like \"512MB\", or remove it for no limit";
        return Err(mismatch("a size of at least 16MB, which an interpreter needs", value, fix));
    }
    Ok(size)
}

/// Names of secrets. A value in place of names may be a secret, so it is not shown.
pub(super) fn secret_names(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let (what, fix) = ("expected a list of names".to_owned(), "write [\"NAME\"]".to_owned());
    Vec::from_toml(value).map_err(|_| Diagnosis { what, fix })
}

/// Whether a text may be the name of a function.
fn is_name(name: &str) -> bool {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_plain && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// A name that model providers accept.
pub(super) fn name_for_callers(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let name = String::from_toml(value)?;
    if is_name(&name) && name.len() <= 64 {
        return Ok(name);
    }
    let what = format!("{name:?} is not a valid name for a tool");
    Err(Diagnosis::new(what, "use at most 64 letters a-z, digits and _, and no digit first"))
}

/// The name of a program's option.
pub(super) fn option_word(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let word = String::from_toml(value)?;
    if is_option_word(&word) {
        return Ok(word);
    }
    Err(Diagnosis::new(
        format!("{word:?} is not a valid option"),
        "write it as the program takes it, like \"--execute\"",
    ))
}

/// Whether a text is one word that begins with a hyphen.
pub fn is_option_word(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.contains(|one: char| one.is_whitespace() || one.is_control())
}

/// Names of functions.
pub(super) fn function_names(value: &DeValue<'_>) -> Result<Vec<String>, Diagnosis> {
    let names = Vec::<String>::from_toml(value)?;
    if names.is_empty() || !names.iter().all(|name| is_name(name)) {
        let what = format!("expected names of functions, got {names:?}");
        let fix = "write at least one, of letters, digits and _, with no digit first".to_owned();
        return Err(Diagnosis { what, fix });
    }
    Ok(names)
}

/// The interpreter that environments are built on, as uv understands it: a version, a range, a name, a path. Versions that
/// cannot exist or that workers do not run on are refused. Whether it is installed is seen at a build.
pub(super) fn python(value: &DeValue<'_>) -> Result<String, Diagnosis> {
    let request = String::from_toml(value)?;
    let mut numbers = request.split('.').map_while(|part| part.parse::<u64>().ok());
    let is_valid = match (numbers.next(), numbers.next()) {
        (Some(3), Some(minor)) => (9..40).contains(&minor),
        (Some(major), Some(_)) => major == 3,
        (major, _) => major != Some(2),
    };
    if !is_valid {
        return Err(mismatch("a Python from 3.9 on", value, "write a version like \"3.12\""));
    }
    Ok(request)
}

/// Longer durations cannot be added to every point in time.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// A duration such as `30s`, `5m` or `1h 30m`; a number is in seconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let seconds = text.parse::<f64>().ok().map(Duration::try_from_secs_f64);
    let parsed = seconds.map_or_else(|| humantime::parse_duration(text).ok(), Result::ok);
    parsed.filter(|duration| *duration <= LONGEST)
}

fn parse_bytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: usize = text[..digits].parse().ok()?;
    let factor = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

fn integer(value: &DeValue<'_>) -> Option<usize> {
    let number = value.as_integer()?;
    usize::from_str_radix(number.as_str(), number.radix()).ok()
}
