//! The rules for one tool, compiled: for each key the most specific setting, which is what the configuration has stacked.

use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::command::Words;
use super::decide::Because;
use super::patterns::PathPatterns;
use super::rates::{Rate, Scope};
use super::results::ResultRules;
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::mode::Mode;
use crate::config::origin::{Origin, Setting};

/// A setting, compiled.
#[derive(Debug, Clone)]
pub(super) struct Rule<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Rule<T> {
    pub(super) fn of<S>(setting: Option<&Setting<S>>, compile: impl Fn(&Setting<S>) -> T) -> Option<Self> {
        setting.map(|setting| Self { value: compile(setting), origin: setting.origin.clone() })
    }

    fn each<S>(settings: &[Setting<S>], compile: impl Fn(&Setting<S>) -> T) -> Vec<Self> {
        settings.iter().filter_map(|setting| Self::of(Some(setting), &compile)).collect()
    }
}

/// The rules for one tool.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub(super) allowed_modes: Option<Rule<Vec<Mode>>>,
    pub(super) forbidden_in_modes: Vec<Rule<Vec<Mode>>>,
    pub(super) requires_approval: Option<Rule<bool>>,
    pub(super) requires_approval_in_modes: Vec<Rule<Vec<Mode>>>,
    pub(super) rates: Vec<Rate>,
    pub(super) allowed_paths: Option<Rule<PathPatterns>>,
    pub(super) forbidden_paths: Vec<Rule<PathPatterns>>,
    /// In bytes.
    pub(super) max_file_size: Option<Rule<u64>>,
    pub(super) allowed_commands: Option<Rule<Vec<Words>>>,
    pub(super) forbidden_commands: Vec<Rule<Vec<Words>>>,
    pub(super) allowed_hosts: Option<Rule<Vec<String>>>,
    pub(super) results: ResultRules,
    /// Rules about arguments that the tool is not known to have.
    pub(super) unkept: Vec<Because>,
}

impl Rules {
    /// Those of a policy. Patterns of paths begin at these folders: that of `home`, and of the file that has the pattern. `real` follows
    /// the links of the folders that a pattern begins with.
    pub fn new(policy: &DeclaredPolicy, home: &Path, real: impl Fn(&Path) -> PathBuf) -> Self {
        let modes = |setting: &Setting<Vec<Mode>>| setting.value.clone();
        let paths = |setting: &Setting<Vec<String>>| {
            let folder = setting.origin.place().and_then(|place| place.file.parent()).unwrap_or(Path::new("/"));
            PathPatterns::new(&setting.value, home, folder, &real)
        };
        let commands = |setting: &Setting<Vec<String>>| {
            setting.value.iter().filter_map(|pattern| shlex::split(pattern)).collect::<Vec<Words>>()
        };
        let allowed_paths = Rule::of(policy.allowed_paths.as_ref(), paths);
        let forbidden_paths = Rule::each(&policy.forbidden_paths, paths);
        let of_paths = allowed_paths.iter().map(|rule| ("allowed_paths", rule));
        let of_paths = of_paths.chain(forbidden_paths.iter().map(|rule| ("forbidden_paths", rule)));
        let unkept = of_paths.filter(|(_, rule)| !rule.value.is_whole).map(|(key, rule)| Because {
            key,
            origin: rule.origin.clone(),
            reason: format!("`{key}` cannot be kept: it begins at a folder whose name is no text"),
        });
        Self {
            unkept: unkept.collect(),
            results: ResultRules::of(policy),
            allowed_modes: Rule::of(policy.allowed_modes.as_ref(), modes),
            forbidden_in_modes: Rule::each(&policy.forbidden_in_modes, modes),
            requires_approval: Rule::of(policy.requires_approval.as_ref(), |setting| setting.value),
            requires_approval_in_modes: Rule::each(&policy.requires_approval_in_modes, modes),
            rates: Vec::new(),
            allowed_paths,
            forbidden_paths,
            max_file_size: Rule::of(policy.max_file_size_mb.as_ref(), |setting| {
                (setting.value as u64).saturating_mul(1 << 20)
            }),
            allowed_commands: Rule::of(policy.allowed_commands.as_ref(), commands),
            forbidden_commands: Rule::each(&policy.forbidden_commands, commands),
            allowed_hosts: Rule::of(policy.allowed_hosts.as_ref(), |setting| setting.value.clone()),
        }
    }

    /// Adds the rates that a policy sets for the calls of a scope, which are counted under the name that what sets them has.
    pub fn limit(&mut self, policy: &DeclaredPolicy, scope: &Scope, name: impl Fn(&Origin) -> String) {
        self.rates.extend(Rate::of(policy, scope, name));
    }

    /// The rates. A call has to be in turn for all of them.
    pub fn rates(&self) -> &[Rate] {
        &self.rates
    }

    /// Those about results.
    pub fn results(&self) -> &ResultRules {
        &self.results
    }

    /// Denies every call where rules that are meant for this tool are about arguments that it is not known to have, though it may.
    /// `is_general` says whether a rule is for every tool: such a rule says nothing about tools without such arguments.
    pub fn keep_for(&mut self, arguments: &Arguments, is_general: impl Fn(&Origin) -> bool) {
        let origins = |rule: Option<&Origin>| rule.into_iter().cloned().collect::<Vec<_>>();
        let paths = [
            ("allowed_paths", origins(self.allowed_paths.as_ref().map(|rule| &rule.origin))),
            ("forbidden_paths", self.forbidden_paths.iter().map(|rule| rule.origin.clone()).collect()),
        ];
        let commands = [
            ("allowed_commands", origins(self.allowed_commands.as_ref().map(|rule| &rule.origin))),
            ("forbidden_commands", self.forbidden_commands.iter().map(|rule| rule.origin.clone()).collect()),
        ];
        let hosts =
            [("allowed_hosts", origins(self.allowed_hosts.as_ref().map(|rule| &rule.origin))), ("", Vec::new())];
        let of = [
            (paths, "path", "path_arguments"),
            (commands, "command", "command_arguments"),
            (hosts, "host", "host_arguments"),
        ];
        for ((rules, what, names), is_known) in of.into_iter().zip(arguments.is_known) {
            if is_known || !arguments.takes_text {
                continue;
            }
            for (key, origins) in rules {
                let reason = format!(
                    "`{key}` cannot be kept: no argument is known to be a {what}; name those that are in `{names}`, or []"
                );
                let unkept = origins.into_iter().filter(|origin| !is_general(origin));
                self.unkept.extend(unkept.map(|origin| Because { key, origin, reason: reason.clone() }));
            }
        }
    }

    /// Whether paths have to be resolved for a decision.
    pub fn judge_paths(&self) -> bool {
        self.allowed_paths.is_some() || !self.forbidden_paths.is_empty() || self.max_file_size.is_some()
    }

    /// Whether commands have to be parsed for a decision.
    pub fn judge_commands(&self) -> bool {
        self.allowed_commands.is_some() || !self.forbidden_commands.is_empty()
    }

    /// Whether hosts have to be known for a decision.
    pub fn judge_hosts(&self) -> bool {
        self.allowed_hosts.is_some()
    }

    /// Whether there is a rule about any call or result.
    pub fn are_any(&self) -> bool {
        let modes = self.allowed_modes.is_some() || !self.forbidden_in_modes.is_empty();
        let approval = self.requires_approval.is_some() || !self.requires_approval_in_modes.is_empty();
        let arguments = self.judge_paths() || self.judge_commands() || self.judge_hosts();
        modes || approval || arguments || !self.rates.is_empty() || self.results.are_any()
    }
}
