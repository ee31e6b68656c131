//! How TOML values become typed settings.

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeValue;

/// Why a value is not of the type that a setting has, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct Mismatch {
    /// What was expected and what was found.
    pub what: String,
    /// What to write.
    pub fix: String,
}

impl Mismatch {
    fn new(expected: &str, value: &DeValue<'_>, fix: impl Into<String>) -> Self {
        Self { what: format!("expected {expected}, got {}", describe(value)), fix: fix.into() }
    }
}

/// A value as a message shows it.
pub(super) fn describe(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(_) => "a date".to_owned(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// A type that a setting can have.
pub trait FromToml: Sized {
    /// Reads the value.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch>;
}

impl FromToml for bool {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        value.as_bool().ok_or_else(|| Mismatch::new("a boolean", value, "write true or false"))
    }
}

impl FromToml for String {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        value.as_str().map(str::to_owned).ok_or_else(|| Mismatch::new("a string", value, "write it in quotes"))
    }
}

impl FromToml for PathBuf {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        value.as_str().map(Self::from).ok_or_else(|| Mismatch::new("a path", value, "write it in quotes"))
    }
}

impl FromToml for toml::Table {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        match plain(value) {
            toml::Value::Table(table) => Ok(table),
            _ => Err(Mismatch::new("a table", value, "write `{ key = value }`")),
        }
    }
}

/// A value without its spans.
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
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        integer(value).ok_or_else(|| Mismatch::new("an integer", value, "write 0 or more"))
    }
}

impl<T: FromToml> FromToml for Vec<T> {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let items = value.as_array().ok_or_else(|| {
            let item = value.as_str().unwrap_or("…");
            Mismatch::new("a list", value, format!("write [\"{item}\"]"))
        })?;
        let read = |(index, item): (usize, &toml::Spanned<DeValue<'_>>)| {
            T::from_toml(item.get_ref())
                .map_err(|wrong| Mismatch { what: format!("item {}: {}", index + 1, wrong.what), ..wrong })
        };
        items.iter().enumerate().map(read).collect()
    }
}

impl FromToml for Duration {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let seconds = integer(value).map(|seconds| seconds.to_string());
        let seconds = seconds.or_else(|| value.as_float().map(|number| number.as_str().to_owned()));
        let written = seconds.or_else(|| value.as_str().map(str::to_owned)).unwrap_or_default();
        let fix = "write \"30s\", \"5m\" or \"1h 30m\", at most ten years (a number is in seconds)";
        parse_duration(&written).ok_or_else(|| Mismatch::new("a duration", value, fix))
    }
}

/// A duration longer than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit(pub Duration);

impl FromToml for Limit {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let limit = Duration::from_toml(value)?;
        if limit.is_zero() {
            return Err(Mismatch::new("a duration longer than zero", value, "write one like \"30s\""));
        }
        Ok(Self(limit))
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
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        if value.as_str() == Some("never") {
            return Ok(Self::Never);
        }
        let time = Duration::from_toml(value).map(Self::After);
        time.map_err(|wrong| Mismatch { fix: format!("{}, or \"never\"", wrong.fix), ..wrong })
    }
}

/// A number of at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub usize);

impl FromToml for Count {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let count = integer(value).filter(|count| *count > 0);
        count.map(Self).ok_or_else(|| Mismatch::new("a positive integer", value, "write 1 or more"))
    }
}

/// A number of bytes: `"64MB"`, `"1 GiB"` or a bare number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteCount(pub usize);

impl FromToml for ByteCount {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let size = integer(value).or_else(|| value.as_str().and_then(parse_bytes));
        let fix = "write one like \"64MB\" or \"2GiB\" (a number is in bytes)";
        size.map(Self).ok_or_else(|| Mismatch::new("a size", value, fix))
    }
}

/// A limit on the memory of a process.
#[derive(Debug, Clone, Copy)]
pub struct MemoryLimit(pub ByteCount);

/// A Python interpreter alone needs this much.
const LEAST_MEMORY: usize = 16_000_000;

impl FromToml for MemoryLimit {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let size = ByteCount::from_toml(value)?;
        if size.0 < LEAST_MEMORY {
            let fix = "write one like \"512MB\", or remove it for no limit";
            return Err(Mismatch::new("a size of at least 16MB, which an interpreter needs", value, fix));
        }
        Ok(Self(size))
    }
}

/// Names of functions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FunctionNames(pub Vec<String>);

impl FromToml for FunctionNames {
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let names = Vec::<String>::from_toml(value)?;
        let is_name = |name: &String| {
            let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            is_plain && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        };
        match names.iter().find(|name| !is_name(name)) {
            Some(odd) => Err(Mismatch {
                what: format!("\"{odd}\" is not a valid function name"),
                fix: "use letters, digits and _, and no digit first".to_owned(),
            }),
            None if names.is_empty() => {
                Err(Mismatch { what: "expected at least one name".to_owned(), fix: "write [\"…\"]".to_owned() })
            }
            None => Ok(Self(names)),
        }
    }
}

/// The interpreter that environments are built on, as uv understands it: a version, a range, a name, a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonRequest(pub String);

impl FromToml for PythonRequest {
    /// Refuses versions that cannot exist or that workers do not run on. Whether it is installed is seen at a build.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, Mismatch> {
        let request = String::from_toml(value)?;
        let mut numbers = request.split('.').map_while(|part| part.parse::<u64>().ok());
        let is_valid = match (numbers.next(), numbers.next()) {
            (Some(3), Some(minor)) => (9..40).contains(&minor),
            (Some(major), Some(_)) => major == 3,
            (major, _) => major != Some(2),
        };
        if !is_valid {
            return Err(Mismatch::new("a Python from 3.9 on", value, "write a version like \"3.12\""));
        }
        Ok(Self(request))
    }
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

/// Reads one of a few words.
pub fn choice<T: Copy>(value: &DeValue<'_>, words: &[(&str, T)]) -> Result<T, Mismatch> {
    let found = value.as_str().and_then(|text| words.iter().find(|(word, _)| *word == text));
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let list: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        Mismatch::new(&format!("one of {}", list.join(", ")), value, "write one of them")
    })
}
