//! Tables that are the value of one key, such as `sandbox = { … }`: read whole, with an error that names the key within.

use toml::de::{DeTable, DeValue};

use super::origin::Diagnosis;
use super::section::nearest;
use super::value::mismatch;

/// A table with these keys alone. `expected` and `fix` are said of what is no table.
pub(super) fn table_of<'v, 'i>(
    value: &'v DeValue<'i>,
    keys: &[&str],
    expected: &str,
    fix: &str,
) -> Result<&'v DeTable<'i>, Diagnosis> {
    let table = value.as_table().ok_or_else(|| mismatch(expected, value, fix))?;
    match table.keys().map(toml::Spanned::get_ref).find(|key| !keys.contains(&&***key)) {
        None => Ok(table),
        Some(unknown) => {
            let near = nearest(unknown, keys.iter().copied()).map(|near| format!("did you mean `{near}`?"));
            let fix = near.unwrap_or_else(|| format!("the keys here are {}", keys.join(", ")));
            Err(Diagnosis::new(format!("unknown key `{unknown}`"), fix))
        }
    }
}

/// The value of a key, if the table has it.
pub(super) fn taken<T>(
    table: &DeTable<'_>,
    key: &str,
    read: impl FnOnce(&DeValue<'_>) -> Result<T, Diagnosis>,
) -> Result<Option<T>, Diagnosis> {
    let Some(value) = table.get(key) else { return Ok(None) };
    let of_key = |wrong: Diagnosis| Diagnosis { what: format!("`{key}`: {}", wrong.what), ..wrong };
    read(value.get_ref()).map(Some).map_err(of_key)
}
