//! Filters hostler's environment for the programs that it starts.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::config::Environment;

/// The variables that tell a tool its host; the second is for tools written for the contract's first user.
const MODES: [&str; 2] = ["HOSTLER_TOOL_MODE", "GIBSON_TOOL_MODE"];

/// Names of variables that may hold a secret. No program inherits them: neither executables nor uv, which runs build
/// scripts of packages. All holders share the set and see later additions; names are never removed, because a secret
/// stays secret when its tool is deleted.
#[derive(Debug, Clone, Default)]
pub struct EnvFilter {
    names: Arc<RwLock<BTreeSet<String>>>,
    environment: Arc<Environment>,
}

impl EnvFilter {
    /// A filter without names.
    pub fn of(environment: Arc<Environment>) -> Self {
        Self { names: Arc::default(), environment }
    }

    /// The unfiltered variables.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Adds names.
    pub fn add<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let names = names.into_iter().map(str::to_owned);
        self.names.write().extend(names);
    }

    /// Adds the names of another filter.
    pub fn add_all_of(&self, other: &Self) {
        let names = other.names.read().clone();
        self.names.write().extend(names);
    }

    /// Whether a variable may hold a secret.
    pub fn holds(&self, name: &str) -> bool {
        self.names.read().contains(name)
    }

    /// hostler's current environment, filtered, for uv, which needs the user's certificates, proxies and indexes.
    pub fn inherited(&self) -> BTreeMap<OsString, OsString> {
        let names = self.names.read();
        let kept = |name: &OsStr| name.to_str().is_none_or(|name| !names.contains(name));
        let all = self.environment.iter().filter(|(name, _)| kept(name));
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The same for executables and for programs of built-in tools: without uv's variables, and with those that name
    /// the host.
    pub fn for_programs(&self) -> BTreeMap<OsString, OsString> {
        let mut env = self.inherited();
        env.retain(|name, _| !name.as_encoded_bytes().starts_with(b"UV_"));
        env.extend(MODES.map(|name| (name.into(), "subprocess".into())));
        env
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use std::sync::Arc;

    use super::EnvFilter;
    use crate::config::Environment;

    #[test]
    fn later_additions_apply_to_every_holder() {
        let env_filter = EnvFilter::of(Arc::new(Environment::from_iter([("PATH", "/bin")])));
        let held_elsewhere = env_filter.clone();
        assert!(held_elsewhere.inherited().contains_key(OsStr::new("PATH")), "hostler's own environment");
        env_filter.add(["PATH"]);
        assert!(held_elsewhere.holds("PATH"));
        assert!(!held_elsewhere.inherited().contains_key(OsStr::new("PATH")));
        assert!(!held_elsewhere.for_programs().contains_key(OsStr::new("PATH")));
    }
}
