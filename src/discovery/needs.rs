//! What the operator says that a Python file needs, in force over its header.

use std::str::FromStr;
use std::sync::Arc;

use pep440_rs::{Version, VersionSpecifiers};

use super::{Kind, ToolFile, Warning};
use crate::config::Config;
use crate::config::needs::Needs;
use crate::config::origin::{Diagnosis, Setting};
use crate::pep723::{Metadata, package_of};

/// The rule of `check` about what lies beside a file and cannot be used.
const RULE: &str = "requirements";

impl ToolFile {
    /// Applies what is said about its packages: by the operator for this file, in its header, by the operator for all files without a
    /// header, in its folder. The first that says something counts.
    pub(super) fn take_needs(&mut self, config: &Config) {
        let of_pack = config.packs.get(&self.pack).map(|pack| pack.needs.clone()).unwrap_or_default();
        let is_plain = self.kind == Kind::Internal && of_pack.dependencies.is_none();
        let needs = match &config.dependencies {
            _ if !is_plain => Needs::default(),
            Some(set) if self.beside.is_some() => Needs { dependencies: Some(set.clone()), ..Needs::default() },
            Some(_) => Needs::default(),
            None => self.needs_beside(),
        };
        let all = needs.clone().under(of_pack);
        self.require(&all);
        if let Some(header) = self.header.as_mut().filter(|_| needs != Needs::default()) {
            header.layer.needs = needs;
        }
    }

    /// What its folder declares.
    fn needs_beside(&mut self) -> Needs {
        match self.beside.as_ref().and_then(|beside| beside.needs.clone()) {
            None => Needs::default(),
            Some(Ok(needs)) => self.with_sdk_that_fits(needs),
            Some(Err(Diagnosis { what, fix })) => {
                let fix = format!("{fix}, or set `dependencies` under [tool.{}] in hostler.toml", self.pack);
                self.warnings.push(Warning { line: 1, rule: RULE.into(), reason: Diagnosis::new(what, &fix) });
                Needs::default()
            }
        }
    }

    /// Projects that leave the version of the MCP SDK open were written for the first one, and locked to it: the second one lacks what
    /// they import.
    fn with_sdk_that_fits(&self, mut needs: Needs) -> Needs {
        let admits = |requirement: &str, version: &str| {
            let range = range_of(requirement).and_then(|range| VersionSpecifiers::from_str(range).ok());
            Version::from_str(version).is_ok_and(|version| range.is_some_and(|range| range.contains(&version)))
        };
        let is_open = |text: &String| package_of(text) == "mcp" && admits(text, "1.99") && admits(text, "2.99");
        // FastMCP depends on the SDK, from FastMCP 4 on its second version.
        let brings_it = |text: &String| package_of(text) == "fastmcp" && admits(text, "3.99");
        if self.is_for_first_sdk
            && let Some(set) = &mut needs.dependencies
        {
            let is_listed = set.value.iter().any(|text| package_of(text) == "mcp");
            if set.value.iter().any(|text| is_open(text) || !is_listed && brings_it(text)) {
                set.value.push("mcp<2".to_owned());
            }
        }
        needs
    }

    /// Puts what the operator says in place of what the header says. A file without a header then has an environment of its own.
    fn require(&mut self, needs: &Needs) {
        let is_python = matches!(self.kind, Kind::Python | Kind::Internal);
        if !is_python || !needs.replace_the_header() {
            return;
        }
        match self.needing(needs) {
            Ok(header) => {
                self.kind = Kind::Python;
                self.header = Some(header);
            }
            Err(reason) => self.break_with(None, reason),
        }
    }

    fn needing(&self, needs: &Needs) -> Result<Metadata, Diagnosis> {
        let made = || Metadata::from_toml("dependencies = []\n", 1, &Arc::new(self.path.clone()));
        let mut header = self.header.clone().map_or_else(made, Ok).map_err(|error| error.diagnosis())?;
        if let Some(set) = &needs.dependencies {
            header = header.with_dependencies(&set.value, place(set))?;
        }
        if let Some(set) = &needs.requires_python {
            header = header.with_python(&set.value, &place(set))?;
        }
        Ok(header)
    }
}

/// `>=1.2` of `mcp[cli]>=1.2; python_version > "3.9"`. `None` for a URL.
fn range_of(requirement: &str) -> Option<&str> {
    let (requirement, _) = requirement.split_once(';').unwrap_or((requirement, ""));
    let at = requirement.find(['<', '>', '=', '~', '!', '(']).unwrap_or(requirement.len());
    (!requirement.contains('@')).then(|| requirement[at..].trim_matches(['(', ')', ' ']))
}

fn place<T>(setting: &Setting<T>) -> String {
    setting.origin.to_string()
}
