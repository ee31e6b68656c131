//! The uv, the Python, the folders and the files of secrets that `hostler.toml` names: nothing is started.

use std::path::Path;

use super::{Finding, Interpreters, Report, Rule, rule};
use crate::config::Config;
use crate::config::origin::{Origin, Setting};
use crate::config::secrets::SecretSource;

impl Report {
    /// Adds what is said of programs under `[environment]` that are not there.
    pub fn programs(&mut self, config: &Config, machine: &Interpreters) {
        if let Some(Setting { value, origin }) =
            config.uv.as_ref().filter(|uv| config.environment.find_program(&uv.value).is_none())
        {
            let message = format!("`environment.uv` is \"{}\", which is not a program", value.display());
            self.add_at(origin, &rule::ABSENT_PROGRAM, message, "correct the path, or remove the line");
        }
        let Some(Setting { value, origin }) = &config.python else { return };
        if value.contains('/') {
            if !Path::new(value).exists() {
                let message = format!("`environment.python` is \"{value}\", which is not there");
                self.add_at(origin, &rule::ABSENT_PROGRAM, message, "correct the path, or remove the line");
            }
            return;
        }
        let mut numbers = value.split('.').map_while(|part| part.parse().ok());
        let minor = numbers.next().zip(numbers.next());
        if minor.is_some_and(|minor| !machine.0.is_empty() && !machine.0.contains(&minor)) {
            let message = format!("no interpreter here is {value}; there are {} by name", machine.told());
            let fix = format!(
                "install it (`uv python install {value}`), let uv fetch it at the first call, or correct the line"
            );
            self.add_at(origin, &rule::PYTHON_ABSENT, message, &fix);
        }
    }

    /// Adds the `roots` of built-in tools that are no folders.
    pub fn roots(&mut self, config: &Config) {
        let Some(roots) = &config.layer.builtin.roots else { return };
        for (root, why) in config.layer.builtin.reached() {
            let Some(why) = why else { continue };
            let message = format!("`builtin.roots`: {} {why}", root.display());
            self.add_at(&roots.origin, &rule::ABSENT_ROOT, message, "create the folder, or correct the path");
        }
    }

    /// Adds what keeps tools from secrets that lie in files. Who makes calls knows: what is wrong, and what to do.
    pub fn secrets(&mut self, config: &Config, trouble: impl Fn(&str, &Path) -> Option<(String, String)>) {
        for (name, Setting { value, origin }) in &config.layer.secrets {
            let SecretSource::File(path) = value else { continue };
            if let Some((message, fix)) = trouble(name, path) {
                self.add_at(origin, &rule::SECRET_FILE, message, &fix);
            }
        }
    }

    fn add_at(&mut self, origin: &Origin, rule: &'static Rule, message: String, fix: &str) {
        let Origin::File(place) = origin else { return };
        self.add(place, |text| Finding::new(rule, text.range_of_line(place.line), message, fix));
    }
}
