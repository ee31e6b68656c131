//! Secrets: written into the file, or read without being declared.

use ruff_python_ast::visitor::{Visitor, walk_expr, walk_keyword, walk_stmt};
use ruff_python_ast::{Expr, ExprCall, Keyword, Stmt};

use super::file::Subject;
use super::text::bytes_of;
use super::{Finding, rule};
use crate::config::section::is_slip_of;

pub(super) fn check(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    Walk { subject, findings }.visit_body(subject.parsed.suite());
}

struct Walk<'b, 'c> {
    subject: &'b Subject<'b>,
    findings: &'c mut Vec<Finding>,
}

impl<'a> Visitor<'a> for Walk<'_, '_> {
    fn visit_stmt(&mut self, statement: &'a Stmt) {
        match statement {
            Stmt::Assign(assign) => assign.targets.iter().for_each(|target| self.assigned(target, &assign.value)),
            Stmt::AnnAssign(assign) => {
                if let Some(value) = &assign.value {
                    self.assigned(&assign.target, value);
                }
            }
            _ => {}
        }
        walk_stmt(self, statement);
    }

    fn visit_keyword(&mut self, keyword: &'a Keyword) {
        if let Some(name) = &keyword.arg {
            self.named(name, &keyword.value);
        }
        walk_keyword(self, keyword);
    }

    fn visit_expr(&mut self, expression: &'a Expr) {
        match expression {
            Expr::StringLiteral(literal) => {
                if let Some(what) = known_form(literal.value.to_str()) {
                    self.written(expression, what, "NAME");
                }
            }
            Expr::Dict(dict) => {
                for item in &dict.items {
                    if let Some(Expr::StringLiteral(key)) = &item.key {
                        self.named(key.value.to_str(), &item.value);
                    }
                }
            }
            Expr::Call(call) => self.call(call),
            _ => {}
        }
        walk_expr(self, expression);
    }
}

impl Walk<'_, '_> {
    fn assigned(&mut self, target: &Expr, value: &Expr) {
        match target {
            Expr::Name(name) => self.named(&name.id, value),
            Expr::Attribute(attribute) => self.named(&attribute.attr, value),
            Expr::Subscript(subscript) => {
                if let Expr::StringLiteral(key) = &*subscript.slice {
                    self.named(key.value.to_str(), value);
                }
            }
            _ => {}
        }
    }

    /// A text under a name that secrets have.
    fn named(&mut self, name: &str, value: &Expr) {
        let Expr::StringLiteral(literal) = value else { return };
        let text = literal.value.to_str();
        if is_secret_name(name) && looks_secret(text) && known_form(text).is_none() {
            let secret = name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
            self.written(value, &format!("what `{name}` is set to"), &secret);
        }
    }

    fn written(&mut self, value: &Expr, what: &str, name: &str) {
        let message = format!("{what} looks like a secret, and it stands in the file");
        let fix = declare_it(self.subject, name);
        self.findings.push(Finding::new(&rule::WRITTEN_SECRET, bytes_of(value), message, fix));
    }

    fn call(&mut self, call: &ExprCall) {
        if self.subject.names.dotted(&call.func).as_deref() == Some("hostler.secret")
            && let Some(argument @ Expr::StringLiteral(literal)) = call.arguments.args.first()
        {
            self.secret(literal.value.to_str(), argument);
        }
    }

    fn secret(&mut self, name: &str, argument: &Expr) {
        if self.subject.settings.secrets.value.iter().any(|declared| declared == name) {
            return;
        }
        let message = format!("the secret {name} is read and not declared, so it is never sent");
        let near = self.subject.settings.secrets.value.iter().find(|declared| is_slip_of(name, declared));
        let near = near.map(|near| format!("did you mean {near}, which is declared? If not, "));
        let fix = near.unwrap_or_default() + &declaring(self.subject, name);
        self.findings.push(Finding::new(&rule::UNDECLARED_SECRET, bytes_of(argument), message, fix));
    }
}

/// How the header declares it, with the line where it has one.
fn declaring(subject: &Subject<'_>, name: &str) -> String {
    match &subject.file.header {
        Some(header) => format!("in the header, {}", header.declaring_secret(name)),
        None => format!("give the file a header with `secrets = [\"{name}\"]` under [tool.hostler]"),
    }
}

/// How a secret comes to a tool. Secrets are sent with calls, so the top level of a file has none.
pub(super) fn declare_it(subject: &Subject<'_>, name: &str) -> String {
    let import =
        if subject.file.imports.iter().any(|module| module == "hostler") { "" } else { "`import hostler`, and " };
    let read =
        format!("read it with hostler.secret(\"{name}\") inside the function that needs it: secrets come with calls");
    if subject.settings.secrets.value.iter().any(|declared| declared == name) {
        return format!("it is declared as a secret: {import}{read}");
    }
    format!("declare it ({}), {import}{read}", declaring(subject, name))
}

pub(super) fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('-', "_");
    let ends = ["key", "token", "secret", "password", "passwd", "credential", "credentials", "authorization"];
    let harmless = ["public_key", "primary_key", "foreign_key", "sort_key", "group_key", "cache_key", "partition_key"];
    let last = name.rsplit('_').next().unwrap_or(&name);
    // `key` alone is what dictionaries and sorts have; `api_key` is not.
    (ends.contains(&last) && name != "key" && !harmless.iter().any(|one| name.ends_with(one)))
        || ["apikey", "secretkey", "accesstoken"].iter().any(|one| name.ends_with(one))
}

/// Whether a text could be a secret and not a word, a path or a place to put one.
fn looks_secret(text: &str) -> bool {
    let placeholder = ["your", "xxx", "example", "changeme", "placeholder", "...", "<", "{", "todo", "dummy", "test"];
    let lower = text.to_ascii_lowercase();
    let is_mixed =
        text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_one_word =
        !text.contains(char::is_whitespace) && !text.contains("://") && !text.starts_with(['/', '.', '$']);
    text.len() >= 8 && is_one_word && is_mixed && !placeholder.iter().any(|word| lower.contains(word))
}

/// Forms that only secrets have: how each begins, how long it is at least, whose it is.
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

fn known_form(text: &str) -> Option<&'static str> {
    if text.contains("-----BEGIN") && text.contains("PRIVATE KEY-----") {
        return Some("a private key");
    }
    if let Some((_, rest)) = text.split_once("://")
        && let Some((person, _)) = rest.split('/').next().unwrap_or_default().rsplit_once('@')
        && let Some((_, password)) = person.split_once(':')
        && !password.is_empty()
        && !password.contains(['{', '<', '$', '%'])
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
    use super::{is_secret_name, known_form, looks_secret};

    #[test]
    fn what_is_a_secret_and_what_only_looks_like_one() {
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
        assert!(known_form("https://user:{password}@host").is_none());
    }
}
