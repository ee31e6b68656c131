//! Where a call runs: what a client's hostler is started with.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Config, ConfigOptions, Environment};

/// Where a call runs: what a client's hostler is started with.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSite {
    directory: PathBuf,
    options: ConfigOptions,
}

/// The same as it is written down: without variables, which may be secrets.
#[derive(Serialize, Deserialize)]
struct Written {
    directory: PathBuf,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
}

impl CallSite {
    /// That of a client with this configuration.
    pub fn of(config: &Config) -> Self {
        Self { directory: config.directory.clone(), options: config.options().clone() }
    }

    /// As it is written down.
    pub fn written(&self) -> String {
        let ConfigOptions { config, tools, timeout, .. } = &self.options;
        let timeout_ms = timeout.map(|timeout| u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX));
        let absolute = |path: &PathBuf| self.directory.join(path);
        let written = Written {
            directory: self.directory.clone(),
            config: config.as_ref().map(absolute),
            tools: tools.iter().map(absolute).collect(),
            timeout_ms,
        };
        serde_json::to_string(&written).unwrap_or_default()
    }

    /// As it was written down, with these variables.
    pub fn read(written: Option<&str>, environment: &Arc<Environment>) -> Self {
        let home = || environment.home().unwrap_or_else(|| Path::new("/").to_owned());
        let read: Option<Written> = written.and_then(|written| serde_json::from_str(written).ok());
        let Written { directory, config, tools, timeout_ms } =
            read.unwrap_or_else(|| Written { directory: home(), config: None, tools: Vec::new(), timeout_ms: None });
        let timeout = timeout_ms.map(Duration::from_millis);
        Self { directory, options: ConfigOptions { config, tools, timeout, environment: Arc::clone(environment) } }
    }

    /// A folder or file of it that belongs to another user, or lies in such a folder.
    pub fn stranger(&self) -> Option<PathBuf> {
        let user = rustix::process::getuid().as_raw();
        let named = std::iter::once(&self.directory).chain(&self.options.config).chain(&self.options.tools);
        let is_strange = |path: &&Path| path.metadata().is_ok_and(|known| known.uid() != user && known.uid() != 0);
        named.flat_map(|path| path.ancestors()).find(is_strange).map(Path::to_owned)
    }

    /// What the configuration is searched by.
    pub fn options(&self) -> &ConfigOptions {
        &self.options
    }

    /// The working directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_written_without_variables_and_read_back() {
        let secret = Arc::new(Environment::from_iter([("KEY", "hunter2")]));
        let options = ConfigOptions {
            config: Some("own.toml".into()),
            tools: vec!["/t".into(), "u".into()],
            timeout: Some(Duration::from_secs(2)),
            environment: secret,
        };
        let written = CallSite { directory: "/home/me".into(), options }.written();
        assert!(!written.contains("hunter2"));
        let other = Arc::new(Environment::from_iter([("HOME", "/home/me")]));
        let read = CallSite::read(Some(&written), &other);
        assert_eq!(read.options.config.as_deref(), Some(Path::new("/home/me/own.toml")));
        assert_eq!(read.options.tools, [PathBuf::from("/t"), "/home/me/u".into()]);
        assert_eq!((read.options.timeout, &read.options.environment), (Some(Duration::from_secs(2)), &other));
        assert_eq!(CallSite::read(None, &other).directory(), Path::new("/home/me"));
        assert_eq!(CallSite::read(Some("of a later version"), &other).directory(), Path::new("/home/me"));
    }
}
