//! How TOML values become typed settings. An error is the fix: the sentence says what would have been right.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

use super::section::describe;

/// A type that a setting can have.
pub trait FromToml: Sized {
    /// Reads the value, or says what to write instead.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String>;
}

impl FromToml for bool {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| "write true or false".to_owned())
    }
}

impl FromToml for String {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| match value {
            DeValue::Integer(number) => format!("write it in quotes: \"{number}\""),
            DeValue::Float(number) => format!("write it in quotes: \"{number}\""),
            _ => "write a string in quotes".to_owned(),
        })
    }
}

impl FromToml for PathBuf {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        value.as_str().map(Self::from).ok_or_else(|| "write a path in quotes".to_owned())
    }
}

impl FromToml for toml::Table {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let table = value.as_table().ok_or_else(|| "write a table".to_owned())?;
        Ok(table.iter().map(|(key, item)| (key.get_ref().to_string(), plain(item.get_ref()))).collect())
    }
}

/// A value without its places.
fn plain(value: &DeValue<'_>) -> toml::Value {
    match value {
        DeValue::String(text) => toml::Value::String(text.to_string()),
        DeValue::Integer(number) => {
            toml::Value::Integer(i64::from_str_radix(number.as_str(), number.radix()).unwrap_or(i64::MAX))
        }
        DeValue::Float(number) => toml::Value::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => toml::Value::Boolean(*flag),
        DeValue::Datetime(time) => toml::Value::Datetime(*time),
        DeValue::Array(items) => toml::Value::Array(items.iter().map(|item| plain(item.get_ref())).collect()),
        DeValue::Table(table) => toml::Value::Table(
            table.iter().map(|(key, item)| (key.get_ref().to_string(), plain(item.get_ref()))).collect(),
        ),
    }
}

impl FromToml for usize {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        integer(value).ok_or_else(|| "write a whole number, 0 or more".to_owned())
    }
}

/// How a fix begins that is for one item of a list.
pub(super) const ITEM: &str = "that item is ";

impl<T: FromToml> FromToml for Vec<T> {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let items = value.as_array().ok_or_else(|| match value.as_str() {
            Some(text) => format!("write a list: [\"{text}\"]"),
            None => "write a list: [\"…\"]".to_owned(),
        })?;
        let read = |item: &DeValue<'_>| T::from_toml(item).map_err(|fix| format!("{ITEM}{}: {fix}", describe(item)));
        items.iter().map(|item| read(item.get_ref())).collect()
    }
}

impl FromToml for Duration {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let fix = "write a duration like \"30s\", \"5m\" or \"1h 30m\" (a bare number is seconds)";
        if let Some(seconds) = integer(value) {
            let duration = Self::from_secs(seconds as u64);
            return if duration > LONGEST { Err("ten years are the longest".to_owned()) } else { Ok(duration) };
        }
        let written = value.as_float().map(|number| number.as_str().to_owned());
        let written = written.or_else(|| value.as_str().map(str::to_owned)).unwrap_or_default();
        parse_duration(&written).ok_or_else(|| fix.to_owned())
    }
}

/// A duration that must not be zero: a limit of nothing would let nothing through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Duration);

impl FromToml for Limit {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let fix = "write a duration longer than nothing, like \"30s\"";
        Duration::from_toml(value).and_then(|limit| if limit.is_zero() { Err(fix.to_owned()) } else { Ok(Self(limit)) })
    }
}

/// How long an idle worker stays: a time, or for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Leave this long after the end of the last call; zero leaves at once.
    For(Duration),
    /// Stay until hostler ends.
    Forever,
}

impl FromToml for Patience {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        if value.as_str() == Some("never") {
            return Ok(Self::Forever);
        }
        let wish = Duration::from_toml(value).map(Self::For);
        wish.map_err(|fix| format!("{fix}, or \"never\" to keep the worker"))
    }
}

/// A number of things of which there must be at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub usize);

impl FromToml for Count {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let count = integer(value).filter(|count| *count > 0);
        count.map(Self).ok_or_else(|| "write a whole number, 1 or more".to_owned())
    }
}

/// A number of bytes: `"64MB"`, `"1 GiB"` or a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub usize);

impl FromToml for ByteCount {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let fix = "write a size like \"1MB\" or \"64MB\" (a bare number is bytes)";
        let from_text = || value.as_str().and_then(parse_bytes);
        integer(value).or_else(from_text).map(Self).ok_or_else(|| fix.to_owned())
    }
}

/// A number of bytes that something can live within.
#[derive(Debug, Clone, Copy)]
pub struct Room(pub ByteCount);

/// Less memory than this holds no interpreter.
const SMALLEST_ROOM: usize = 16_000_000;

impl FromToml for Room {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let size = ByteCount::from_toml(value).map_err(|_| "write a size like \"512MB\" or \"2GB\"".to_owned())?;
        let fix = "an interpreter alone needs 16 MB: write a larger size like \"512MB\", or leave it out for no limit";
        if size.0 < SMALLEST_ROOM { Err(fix.to_owned()) } else { Ok(Self(size)) }
    }
}

/// Names of functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionNames(pub Vec<String>);

impl FromToml for FunctionNames {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let names = Vec::<String>::from_toml(value)?;
        let is_name = |name: &String| {
            let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            plain && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        };
        match names.iter().find(|name| !is_name(name)) {
            Some(odd) => {
                Err(format!("letters, digits and _ can be in a name, and no digit first, which \"{odd}\" is not"))
            }
            None if names.is_empty() => Err("name at least one".to_owned()),
            None => Ok(Self(names)),
        }
    }
}

/// Longer than any hostler runs. What is beyond no clock can add up.
const LONGEST: Duration = Duration::from_hours(10 * 365 * 24);

/// A duration as people write one: `30s`, `5m`, `1h 30m`; a bare number is seconds.
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

/// Reads one of a few words; the fix lists them all.
pub fn choice<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, String> {
    let found = value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        format!("write one of {}", list.join(", "))
    })
}
