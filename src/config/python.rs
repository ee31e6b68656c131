//! The interpreter that the operator wants environments built on.

use toml::de::DeValue;

use super::value::FromToml;

/// A Python as uv understands it: a version, a range, a name, a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonWish(pub String);

/// The minor versions of Python 3 from the oldest that workers run on to beyond what there will be in some years.
const MINORS: std::ops::Range<u64> = 9..40;

impl FromToml for PythonWish {
    /// Whether it is there shows when something is built; a version that can be nowhere is a slip of the pen.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, String> {
        let wish = String::from_toml(value)?;
        let mut numbers = wish.split('.').map_while(|part| part.parse::<u64>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(2), _) => Err(too_old(&wish)),
            (Some(3), Some(minor)) if minor < MINORS.start => Err(too_old(&wish)),
            (Some(3), Some(minor)) if minor < MINORS.end => Ok(Self(wish)),
            (Some(_), Some(_)) => Err(format!("there is no Python {wish}: write one that there is, like \"3.12\"")),
            _ => Ok(Self(wish)),
        }
    }
}

fn too_old(wish: &str) -> String {
    format!("workers run on Python 3.9 and newer, not on {wish}: write \"3.9\" or newer")
}
