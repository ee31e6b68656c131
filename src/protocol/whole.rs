//! Whole numbers of workers. Languages in which every number is a float write `5.0` or `5e0`.

use serde::de::{Deserialize, Deserializer, Error};
use serde_json::Number;

/// The whole number that a text of JSON is.
pub(super) fn whole_of(text: &str) -> Option<u64> {
    /// From here on a float has left out whole numbers.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    if let Ok(whole) = text.parse() {
        return Some(whole);
    }
    let number: f64 = text.parse().ok().filter(|number| (0.0..LARGEST).contains(number) && number.fract() == 0.0)?;
    format!("{number}").parse().ok()
}

/// A field that is one.
pub(super) fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>>(deserializer: D) -> Result<T, D::Error> {
    read(&Number::deserialize(deserializer)?)
}

/// A field that is one, or `null`.
pub(super) fn maybe_whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Option::<Number>::deserialize(deserializer)?.as_ref().map(read).transpose()
}

fn read<T: TryFrom<u64>, E: Error>(number: &Number) -> Result<T, E> {
    let whole = number.as_u64().or_else(|| whole_of(&number.to_string()));
    let fitting = whole.and_then(|whole| T::try_from(whole).ok());
    fitting.ok_or_else(|| E::custom(format_args!("{number} is no whole number that fits")))
}
