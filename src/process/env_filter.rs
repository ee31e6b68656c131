//! What programs that hostler starts do not get of its own environment.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use parking_lot::RwLock;

use crate::config::Environment;

/// How a tool of the contract for executables knows its host; the second is for those written to the contract's first user.
const MODES: [&str; 2] = ["HOSTLER_TOOL_MODE", "GIBSON_TOOL_MODE"];

/// Names of variables that may hold a secret. No program inherits them: neither an executable nor uv, which runs what packages
/// bring to build themselves. Tools come and go, so whoever holds this sees the names that were added since; none is ever
/// taken back, because a secret stays one when the tool that asked for it is gone.
#[derive(Debug, Clone, Default)]
pub struct EnvFilter {
    names: Arc<RwLock<BTreeSet<String>>>,
    environment: Arc<Environment>,
}

impl EnvFilter {
    /// Withholds nothing of these variables yet.
    pub fn of(environment: Arc<Environment>) -> Self {
        Self { names: Arc::default(), environment }
    }

    /// The variables themselves, with everything that the filter withholds.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Adds names.
    pub fn add<'a>(&self, names: impl IntoIterator<Item = &'a str>) {
        let names = names.into_iter().map(str::to_owned);
        self.names.write().extend(names);
    }

    /// Adds those that another knows now.
    pub fn add_all_of(&self, other: &Self) {
        let names = other.names.read().clone();
        self.names.write().extend(names);
    }

    /// Whether a variable may hold a secret.
    pub fn holds(&self, name: &str) -> bool {
        self.names.read().contains(name)
    }

    /// hostler's own environment as it is now, without these: for uv, which needs the person's certificates, proxies and
    /// indexes.
    pub fn inherited(&self) -> BTreeMap<OsString, OsString> {
        let names = self.names.read();
        let kept = |name: &OsStr| name.to_str().is_none_or(|name| !names.contains(name));
        let all = self.environment.iter().filter(|(name, _)| kept(name));
        all.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    /// The same for executables and what built-in tools start: also without what is uv's, and saying how they were started.
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
    fn a_name_is_withheld_from_whoever_asks_after_it_was_added() {
        let env_filter = EnvFilter::of(Arc::new(Environment::from_iter([("PATH", "/bin")])));
        let held_elsewhere = env_filter.clone();
        assert!(held_elsewhere.inherited().contains_key(OsStr::new("PATH")), "hostler's own environment");
        env_filter.add(["PATH"]);
        assert!(held_elsewhere.holds("PATH"));
        assert!(!held_elsewhere.inherited().contains_key(OsStr::new("PATH")));
        assert!(!held_elsewhere.for_programs().contains_key(OsStr::new("PATH")));
    }
}
