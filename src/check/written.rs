//! Secrets that somebody wrote into a file: how they are recognised, and those in `hostler.toml`.

use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Report, rule};
use crate::config::Config;
use crate::config::section::Source;

impl Report {
    /// Adds secrets that stand in the settings of tools.
    pub(super) fn written_secrets(&mut self, config: &Config) {
        for path in &config.files {
            let Ok(text) = std::fs::read_to_string(path) else { continue };
            let source = Source { file: Arc::new(path.clone()), text: text.into(), first_line: 1, is_header: false };
            let Ok(table) = source.parse() else { continue };
            let mut found = Vec::new();
            // What tools get. Other tables hold places of secrets, and addresses whose password has no other place.
            if let Some(tools) = table.get("tool") {
                look("tool", tools, &mut found);
            }
            for (key, offset, what) in found {
                let name = key.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
                let what = what.map_or_else(|| format!("the value of `{key}`"), |form| format!("{form} in `{key}`"));
                let message = format!("{what} looks like a secret written into the file");
                let fix = format!(
                    "run `hostler secrets set {name}`, add \"{name}\" to the tool's `secrets`, and remove it here"
                );
                self.add(&source.place_at(offset), &rule::WRITTEN_SECRET, message, fix);
            }
        }
    }
}

type Found = Vec<(String, usize, Option<&'static str>)>;

fn look(key: &str, value: &Spanned<DeValue<'_>>, found: &mut Found) {
    match value.get_ref() {
        DeValue::String(text) => {
            let form = known_form(text);
            if form.is_some() || is_secret_name(key) && looks_secret(text) {
                found.push((key.to_owned(), value.span().start, form));
            }
        }
        DeValue::Array(items) => items.iter().for_each(|item| look(key, item, found)),
        DeValue::Table(members) => look_into(members, found),
        _ => {}
    }
}

fn look_into(members: &DeTable<'_>, found: &mut Found) {
    members.iter().for_each(|(key, value)| look(key.get_ref(), value, found));
}

/// Whether values under this name are usually secret.
pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = ["key", "token", "secret", "password", "passwd", "credential", "credentials", "authorization"];
    let harmless = ["public_key", "primary_key", "foreign_key", "sort_key", "group_key", "cache_key", "partition_key"];
    let last = name.rsplit('_').next().unwrap_or(&name);
    // `key` alone is what dictionaries and sorts have; `api_key` is not.
    (ends.contains(&last) && name != "key" && !harmless.iter().any(|one| name.ends_with(one)))
        || ["apikey", "secretkey", "accesstoken"].iter().any(|one| name.ends_with(one))
}

/// Whether a string could be a secret, not a word, a path or a placeholder.
pub(super) fn looks_secret(text: &str) -> bool {
    let placeholder = ["your", "xxx", "example", "changeme", "placeholder", "...", "<", "{", "todo", "dummy", "test"];
    let lower = text.to_ascii_lowercase();
    let is_mixed =
        text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_one_word =
        !text.contains(char::is_whitespace) && !text.contains("://") && !text.starts_with(['/', '.', '$']);
    text.len() >= 8 && is_one_word && is_mixed && !placeholder.iter().any(|word| lower.contains(word))
}

/// Forms that only secrets have: prefix, least length, what it is.
const FORMS: &[(&str, usize, &str)] = &[
    ("sk-", 24, "an API key"),
    ("ghp_", 40, "a GitHub token"),
    ("gho_", 40, "a GitHub token"),
    ("ghs_", 40, "a GitHub token"),
    ("github_pat_", 60, "a GitHub token"),
    ("glpat-", 24, "a GitLab token"),
    ("AKIA", 20, "an AWS access key"),
    ("ASIA", 20, "an AWS access key"),
    ("AIza", 39, "a Google API key"),
    ("xoxb-", 24, "a Slack token"),
    ("xoxp-", 24, "a Slack token"),
    ("hf_", 34, "a Hugging Face token"),
    ("SG.", 60, "a SendGrid key"),
    ("npm_", 40, "an npm token"),
    ("pypi-AgEI", 60, "a PyPI token"),
];

/// What a text is that has a form only secrets have.
pub(super) fn known_form(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    if let Some((_, rest)) = text.split_once("://")
        && let Some((person, _)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
        && let Some((_, password)) = person.split_once(':')
        && !password.is_empty()
        && !person.contains(char::is_whitespace)
        && !password.contains(['{', '<', '[', '$', '%', '*'])
        && !["pass", "password", "passwd", "pwd", "secret", "xxx"].contains(&password.to_ascii_lowercase().as_str())
    {
        return Some("the password in this address");
    }
    let is_token = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    FORMS
        .iter()
        .find(|(start, least, _)| text.starts_with(start) && text.len() >= *least && is_token(text))
        .map(|form| form.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_secret_in_a_configuration_is_found_with_its_line() {
        let text = "[secrets]\nAPI_KEY = { file = \"x1\" }\n[tool.a]\nconfig = { api_key = \"8f14e45fceea167a\", name = \"8f14e45fceea167a\" }\n\
                    [tool.a.env]\nDB = [\"postgres://me:pa55@db/x\"]\n";
        let table = DeTable::parse(text).unwrap();
        let mut found = Vec::new();
        look_into(table.get_ref(), &mut found);
        let found: Vec<_> =
            found.iter().map(|(key, at, form)| (key.as_str(), text[..*at].lines().count(), *form)).collect();
        assert_eq!(found, [("api_key", 4, None), ("DB", 6, Some("the password in this address"))]);
    }

    #[test]
    fn secrets_are_recognised_by_name_and_by_form() {
        for name in ["API_KEY", "apikey", "client_secret", "Authorization", "db_password", "X-Api-Key"] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["key", "keyboard", "primary_key", "tokens_used", "monkey"] {
            assert!(!is_secret_name(name), "{name}");
        }
        assert!(looks_secret("8f14e45fceea167a") && looks_secret("hunter2hunter2"));
        for text in ["password", "your-key-123", "https://x.y/1", "two words 12", "/etc/key1.pem", "{token1234}"] {
            assert!(!looks_secret(text), "{text}");
        }
        assert_eq!(known_form("postgres://me:pa55@db/x"), Some("the password in this address"));
        assert!(known_form("AKIAIOSFODNN7EXAMPLE").is_some() && known_form("sk-learn").is_none());
        for example in ["https://user:{password}@host", "redis://user:pass@host", "see http://a.b, or u:p4ss@x"] {
            assert!(known_form(example).is_none(), "{example}");
        }
    }
}
