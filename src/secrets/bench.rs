//! Redaction as the benches time it.

use std::sync::Arc;

use super::Redactor;

/// What finds this many secrets in all their forms.
pub struct Redacting(Arc<Redactor>);

impl Redacting {
    /// Keys of 40 characters as services give them out.
    pub fn new(secrets: usize) -> Option<Self> {
        let value = |number: usize| format!("sk-{:032x}-{number:04}", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let all: Vec<(String, String)> = (0..secrets).map(|number| (format!("KEY_{number}"), value(number))).collect();
        Redactor::of(all.iter().map(|(name, value)| (name.as_str(), value.as_str()))).map(Self)
    }

    /// Whether the text, as pieces of this size, has no secret.
    pub fn is_clean(&self, text: &str, piece: usize) -> bool {
        let (mut held, mut length) = (String::new(), 0);
        for part in text.as_bytes().chunks(piece) {
            held.push_str(std::str::from_utf8(part).unwrap_or_default());
            let (clean, passed) = self.0.ready(&held);
            length += clean.len();
            held.drain(..passed);
        }
        length + held.len() == text.len()
    }
}
