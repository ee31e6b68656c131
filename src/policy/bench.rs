//! A decision as the benches time it.

use std::path::Path;

use super::{Decision, Facts, PathFact, Rules};
use crate::config::declared_policy::DeclaredPolicy;
use crate::config::mode::KnownMode;
use crate::config::origin::Setting;

/// The rules of a tool with this many patterns, and what is known of a call of it that is allowed.
pub struct Deciding(Rules, Facts);

impl Deciding {
    /// Half of the patterns allow folders, and half forbid others; one in ten is no folder.
    pub fn new(patterns: usize) -> Self {
        let pattern = |word: &str, number: usize| match number % 10 {
            9 => format!("/srv/{word}-{number}/*.key"),
            _ => format!("/srv/{word}-{number}/**"),
        };
        let all = |word: &str| Setting::declared((0..patterns / 2).map(|number| pattern(word, number)).collect());
        let policy = DeclaredPolicy {
            allowed_modes: Some(Setting::declared(vec![KnownMode::Normal.into(), KnownMode::Alert.into()])),
            allowed_paths: Some(all("allowed")),
            forbidden_paths: vec![all("forbidden")],
            ..DeclaredPolicy::default()
        };
        let path = Path::new("/srv/allowed-3/reports/2026/november.csv");
        let fact =
            PathFact { given: "november.csv".to_owned(), named: path.into(), real: Ok(path.into()), size: Some(9) };
        Self(
            Rules::new(&policy, Path::new("/home/me"), Path::to_owned),
            Facts { paths: vec![fact], ..Facts::default() },
        )
    }

    /// Whether the call is allowed.
    pub fn decide(&self) -> bool {
        self.0.decide(&self.1) == Decision::Allowed
    }
}
