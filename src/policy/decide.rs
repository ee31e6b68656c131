//! The decision: mode, approval, rate, arguments, in the order of specification 002. A person is asked only about what would pass otherwise.

use std::fmt;
use std::path::PathBuf;

use super::command::{Commands, Unjudged, begins, has, interprets};
use super::patterns::PathPatterns;
use super::rates::Turn;
use super::rules::{Rule, Rules};
use crate::config::mode::{Mode, covers};
use crate::config::origin::Origin;

/// A path among the arguments.
#[derive(Debug, Clone)]
pub struct PathFact {
    /// As it was given.
    pub given: String,
    /// The same as a whole path, without following a link: what it names may be forbidden wherever it leads.
    pub named: PathBuf,
    /// Where it leads, with all links followed; or why that is not known.
    pub real: Result<PathBuf, String>,
    /// The length of the file there, in bytes.
    pub size: Option<u64>,
}

/// A host among the arguments.
#[derive(Debug, Clone)]
pub struct HostFact {
    /// As it was given.
    pub given: String,
    /// Its name or address in lower case; `None` if there is none.
    pub host: Option<String>,
}

/// What is known of a call.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The mode in force.
    pub mode: Mode,
    /// When each of the rates admits a call, in their order; empty if all do now.
    pub turns: Vec<Turn>,
    /// The paths among its arguments; empty if no rule asks for them, as in the two below.
    pub paths: Vec<PathFact>,
    /// The commands among them.
    pub commands: Vec<(String, Result<Commands, Unjudged>)>,
    /// The hosts among them.
    pub hosts: Vec<HostFact>,
    /// The length of all arguments, in bytes.
    pub bytes: u64,
}

/// A rule that decided, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Because {
    /// The key of the rule.
    pub key: &'static str,
    /// What set it.
    pub origin: Origin,
    /// What it means for this call.
    pub reason: String,
}

/// Whether a call is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is.
    Allowed,
    /// It is not. The first rule in the order of the specification gives the reason.
    Denied(Vec<Because>),
    /// A person decides.
    Ask(Vec<Because>),
}

impl Decision {
    /// The word for it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Denied(_) => "denied",
            Self::Ask(_) => "ask",
        }
    }

    /// The rules that led to it.
    pub fn because(&self) -> &[Because] {
        match self {
            Self::Allowed => &[],
            Self::Denied(because) | Self::Ask(because) => because,
        }
    }
}

impl Rules {
    /// Decides about a call.
    pub fn decide(&self, facts: &Facts) -> Decision {
        let mut denied = Reasons(self.unkept.clone());
        self.mode(facts.mode, &mut denied);
        self.rate(&facts.turns, &mut denied);
        self.paths(facts, &mut denied);
        self.commands(facts, &mut denied);
        self.hosts(facts, &mut denied);
        if !denied.0.is_empty() {
            return Decision::Denied(denied.0);
        }
        let mut ask = Reasons::default();
        self.approval(facts.mode, &mut ask);
        if ask.0.is_empty() { Decision::Allowed } else { Decision::Ask(ask.0) }
    }

    fn mode(&self, mode: Mode, denied: &mut Reasons) {
        let reason = || format!("Tool not allowed in {} mode", mode.word().to_uppercase());
        denied.add_if("forbidden_in_modes", &self.forbidden_in_modes, |modes| covers(modes, &mode), reason);
        denied.add_if("allowed_modes", self.allowed_modes.as_ref(), |modes| !covers(modes, &mode), reason);
    }

    fn rate(&self, turns: &[Turn], denied: &mut Reasons) {
        denied.0.extend(self.rates.iter().zip(turns).filter_map(|(rate, turn)| rate.denies(*turn)));
    }

    fn paths(&self, facts: &Facts, denied: &mut Reasons) {
        let (allowed, forbidden, longest) = (&self.allowed_paths, &self.forbidden_paths, &self.max_file_size);
        let megabytes = |bytes: u64| bytes >> 20;
        for PathFact { given, named, real, size } in &facts.paths {
            let unknown = real.as_ref().err();
            let leads_to = |patterns: &PathPatterns| real.as_ref().is_ok_and(|real| patterns.has(real));
            let is_forbidden = |patterns: &PathPatterns| unknown.is_some() || leads_to(patterns) || patterns.has(named);
            let why = |what: &str| {
                unknown.map_or_else(|| format!("Path {given} {what}"), |why| format!("Path {given} {why}"))
            };
            denied.add_if("forbidden_paths", forbidden, is_forbidden, || why("is forbidden"));
            denied.add_if(
                "allowed_paths",
                allowed.as_ref(),
                |patterns| !leads_to(patterns),
                || why("not in allowed paths"),
            );
            let is_longer = |most: &u64| size.is_some_and(|size| size > *most);
            let most = longest.as_ref().map_or(0, |most| megabytes(most.value));
            denied.add_if("max_file_size_mb", longest.as_ref(), is_longer, || {
                format!("The file {given} is larger than {most} MB")
            });
        }
        let most = longest.as_ref().map_or(0, |most| megabytes(most.value));
        denied.add_if(
            "max_file_size_mb",
            longest.as_ref(),
            |most| facts.bytes > *most,
            || format!("The arguments are larger than {most} MB"),
        );
    }

    fn commands(&self, facts: &Facts, denied: &mut Reasons) {
        let (allowed, forbidden) = (self.allowed_commands.as_ref(), &self.forbidden_commands);
        for (text, commands) in &facts.commands {
            let shown: String = text.chars().take(SHOWN).collect();
            let commands = match commands {
                Ok(commands) => commands,
                Err(Unjudged(why)) => {
                    let reason = || format!("Command {shown:?} cannot be judged: {why}");
                    denied.add_if("forbidden_commands", forbidden, |_| true, reason);
                    denied.add_if("allowed_commands", allowed, |_| true, reason);
                    continue;
                }
            };
            for words in &commands.words {
                let named = words.join(" ").chars().take(SHOWN).collect::<String>();
                let is_in = |patterns: &Vec<Vec<String>>| patterns.iter().any(|pattern| has(words, pattern));
                denied.add_if("forbidden_commands", forbidden, is_in, || format!("Command {named:?} is forbidden"));
                let is_hidden = |_: &Vec<Vec<String>>| interprets(words) || commands.varies;
                denied.add_if("forbidden_commands", forbidden, is_hidden, || {
                    format!("Command {named:?} cannot be judged: what it runs depends on more than its words")
                });
                let is_out = |patterns: &Vec<Vec<String>>| !patterns.iter().any(|pattern| begins(words, pattern));
                denied.add_if("allowed_commands", allowed, is_out, || {
                    format!("Command {named:?} not in allowed commands")
                });
            }
        }
    }

    fn hosts(&self, facts: &Facts, denied: &mut Reasons) {
        let allowed = self.allowed_hosts.as_ref();
        for HostFact { given, host } in &facts.hosts {
            let is_out = |patterns: &Vec<String>| {
                !host.as_ref().is_some_and(|host| patterns.iter().any(|one| is_host(one, host)))
            };
            denied.add_if("allowed_hosts", allowed, is_out, || {
                let named = host.as_deref().unwrap_or(given);
                format!("Host {named} not in allowed hosts")
            });
        }
    }

    fn approval(&self, mode: Mode, ask: &mut Reasons) {
        ask.add_if(
            "requires_approval",
            self.requires_approval.as_ref(),
            |is_needed| *is_needed,
            || "Approval is required".to_owned(),
        );
        let in_mode = &self.requires_approval_in_modes;
        ask.add_if(
            "requires_approval_in_modes",
            in_mode,
            |modes| covers(modes, &mode),
            || format!("Approval is required in {} mode", mode.word().to_uppercase()),
        );
    }
}

/// The most of a command that a reason shows.
const SHOWN: usize = 80;

/// Whether a host is the one of a pattern, or beneath it.
fn is_host(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix("*.") {
        Some(above) => host.strip_suffix(above).is_some_and(|name| name.ends_with('.') && name.len() > 1),
        None => pattern.trim_start_matches('[').trim_end_matches(']') == host,
    }
}

/// The rules that deny, or ask.
#[derive(Default)]
struct Reasons(Vec<Because>);

impl Reasons {
    fn add_if<'r, T: 'r>(
        &mut self,
        key: &'static str,
        rules: impl IntoIterator<Item = &'r Rule<T>>,
        holds: impl Fn(&T) -> bool,
        reason: impl Fn() -> String,
    ) {
        for rule in rules.into_iter().filter(|rule| holds(&rule.value)) {
            self.0.push(Because { key, origin: rule.origin.clone(), reason: reason() });
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}, {})", self.reason, self.key, self.origin)
    }
}
