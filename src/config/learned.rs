//! The smallest sandbox that lets a tool do what was recorded of it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};

use super::hosts::{HostPattern, Network};
use super::recorder::Record;
use super::sandbox::{Preset, SandboxLayer, is_plain};

/// From how many files of a folder on the folder is proposed.
const MANY: usize = 3;

/// How many addresses a warning names.
const MOST_NAMED: usize = 5;

/// Names of what may hold secrets.
const SECRETS: [&str; 12] = [
    ".aws",
    ".azure",
    ".docker",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".password-store",
    ".pypirc",
    ".ssh",
    "gcloud",
];

/// Where a proposal is made.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The hostler.toml that it is for.
    pub file: PathBuf,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// The folders of tools.
    pub tools: Vec<PathBuf>,
    /// What settings hide, which no proposal shows.
    pub hidden: Vec<PathBuf>,
    /// Files and folders of hostler's own: what can change them can undo any sandbox.
    pub own: Vec<PathBuf>,
    /// Whether processes can have a network of their own here, which a list of hosts needs.
    pub has_networks: bool,
}

/// What was learned.
#[derive(Debug, Clone)]
pub struct Learned {
    /// What it read, besides what any sandbox gives.
    pub reads: Vec<PathBuf>,
    /// What it changed.
    pub writes: Vec<PathBuf>,
    /// The hosts and addresses that it reached.
    pub network: Vec<String>,
    /// How many of its system calls could not be read.
    pub unread: u64,
    /// The proposal.
    pub sandbox: SandboxLayer,
    /// What a person should know before accepting it.
    pub warnings: Vec<String>,
    /// Whether it opens so much that a person should write it by hand.
    pub is_risky: bool,
}

/// Proposes a sandbox. `kept` has what the tool's table says now: what is not about files and hosts that are reached stays.
pub fn learn(record: &Record, around: &Surroundings, kept: &SandboxLayer) -> Learned {
    let writes: BTreeSet<PathBuf> = record.writes.iter().filter_map(|path| still_there(path)).collect();
    let writes: BTreeSet<PathBuf> = writes.into_iter().filter(|path| !record.may_write(path)).collect();
    let is_needed = |path: &&PathBuf| !record.may_read(path) && path.exists() && !is_in(path, &writes);
    let reads: BTreeSet<PathBuf> = record.reads.iter().filter(is_needed).cloned().collect();
    let written = around.gathered(&writes);
    let read = around.gathered(&reads).into_iter().filter(|path| !is_in(path, &written)).collect();
    let mut warnings = Vec::new();
    let (preset, network) = around.network(record, &mut warnings);
    let is_risky = around.warn_of_paths((&reads, &read), &written, &mut warnings);
    warn_of_closed(record, &mut warnings);
    let mut listed = |paths: &BTreeSet<PathBuf>| {
        let listed: BTreeSet<String> = paths.iter().filter_map(|path| around.written(path, &mut warnings)).collect();
        (!listed.is_empty()).then(|| listed.into_iter().collect())
    };
    let sandbox =
        SandboxLayer { preset: Some(preset), read: listed(&read), write: listed(&written), network, ..kept.clone() };
    let reached = record.hosts.iter().cloned().chain(record.addresses.iter().map(SocketAddr::to_string));
    Learned {
        reads: reads.into_iter().collect(),
        writes: writes.into_iter().collect(),
        network: reached.collect(),
        unread: record.unread,
        sandbox,
        warnings,
        is_risky,
    }
}

/// A path, or the folder above it that is left: a rule has to name what exists when a process starts.
fn still_there(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|path| path.exists()).map(Path::to_owned)
}

fn is_in(path: &Path, all: &BTreeSet<PathBuf>) -> bool {
    path.ancestors().any(|above| all.contains(above))
}

impl Surroundings {
    /// The paths, with a folder in the place of many of its files, and without what lies in another one.
    fn gathered(&self, paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let mut files: BTreeMap<&Path, usize> = BTreeMap::new();
        for folder in paths.iter().filter(|path| !path.is_dir()).filter_map(|path| path.parent()) {
            *files.entry(folder).or_default() += 1;
        }
        let many = |folder: &&Path| files.get(folder).is_some_and(|count| *count >= MANY) && !self.is_special(folder);
        let whole = |path: &PathBuf| path.parent().filter(many).map_or_else(|| path.clone(), Path::to_owned);
        let whole: BTreeSet<PathBuf> = paths.iter().map(whole).collect();
        let is_outermost = |path: &&PathBuf| !path.ancestors().skip(1).any(|above| whole.contains(above));
        whole.iter().filter(is_outermost).cloned().collect()
    }

    /// Whether a folder has more in it than a tool that reads some of its files is likely to need.
    fn is_special(&self, folder: &Path) -> bool {
        folder.components().count() <= 2 || self.is_wide(folder) || is_secret(folder)
    }

    /// Whether a folder is the root, the home folder or one above it.
    fn is_wide(&self, folder: &Path) -> bool {
        let home = self.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
        folder.parent().is_none() || home.is_some_and(|home| home.starts_with(folder))
    }

    /// What is to be written of the network: the preset, and the key besides.
    fn network(&self, record: &Record, warnings: &mut Vec<String>) -> (Preset, Option<Network>) {
        let mut on = |warning: Option<String>| {
            warnings.extend(warning);
            (Preset::Network, None)
        };
        if !record.addresses.is_empty() {
            let all: Vec<String> = record.addresses.iter().map(SocketAddr::to_string).collect();
            return on(Some(format!(
                "it reached {} without the proxy that HTTPS_PROXY names, so that only the whole network can be given",
                some_of(&all)
            )));
        }
        if record.hosts.is_empty() && !record.listens {
            return (Preset::Pure, None);
        }
        if !self.has_networks {
            let all: Vec<String> = record.hosts.iter().cloned().collect();
            let hosts = if all.is_empty() { "its own loopback".to_owned() } else { some_of(&all) };
            return on(Some(format!(
                "it needs only {hosts}, but this system gives processes no network of their own, which a list of hosts needs"
            )));
        }
        let (hosts, others): (Vec<_>, Vec<_>) =
            record.hosts.iter().map(|host| host.parse::<HostPattern>().map_err(|()| host)).partition(Result::is_ok);
        let others: Vec<&String> = others.into_iter().filter_map(Result::err).collect();
        if let Some(other) = others.first() {
            return on(Some(format!("it reached {other:?}, which a list of hosts cannot name")));
        }
        (Preset::Pure, Some(Network::Hosts(hosts.into_iter().flatten().collect())))
    }

    /// A path as it stands in the file: relative to its folder, to the home folder, or absolute. A path with characters that cannot be
    /// written there is left to a person.
    fn written(&self, path: &Path, warnings: &mut Vec<String>) -> Option<String> {
        let text = self.shown(path);
        if is_plain(&text) && !text.contains(char::REPLACEMENT_CHARACTER) {
            return Some(text);
        }
        warnings.push(format!("{text:?} has characters that `sandbox` cannot name: name a folder above it"));
        None
    }

    /// The same for people.
    pub fn shown(&self, path: &Path) -> String {
        let folder = self.file.parent().and_then(|folder| folder.canonicalize().ok());
        let folder = folder.filter(|folder| !self.is_wide(folder));
        if let Some(rest) = folder.and_then(|folder| path.strip_prefix(folder).ok().map(Path::to_owned)) {
            return match rest.components().next() {
                None => ".".to_owned(),
                // At the beginning, these name the home folder.
                Some(Component::Normal(first)) if matches!(first.as_encoded_bytes().first(), Some(b'~' | b'$')) => {
                    format!("./{}", rest.display())
                }
                Some(_) => rest.display().to_string(),
            };
        }
        let home = self.home.as_ref().and_then(|home| home.canonicalize().ok());
        match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
            Some(rest) if rest.as_os_str().is_empty() => "$HOME".to_owned(),
            Some(rest) => format!("$HOME/{}", rest.display()),
            None => path.display().to_string(),
        }
    }

    /// Says what should be looked at. Whether something of it opens too much to be written without a person's hand. `reads` are the paths
    /// that were read, and those that stand for them.
    fn warn_of_paths(
        &self,
        (reads, read): (&BTreeSet<PathBuf>, &BTreeSet<PathBuf>),
        written: &BTreeSet<PathBuf>,
        warnings: &mut Vec<String>,
    ) -> bool {
        let mut is_risky = false;
        let resolved = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let tools: Vec<PathBuf> = self.tools.iter().map(resolved).collect();
        let own: Vec<PathBuf> = self.own.iter().map(resolved).collect();
        let meets = |all: &[PathBuf], path: &Path| all.iter().any(|one| path.starts_with(one) || one.starts_with(path));
        for (path, writes) in read.iter().map(|path| (path, false)).chain(written.iter().map(|path| (path, true))) {
            let shown = self.shown(path);
            let within = reads.iter().find(|read| read.starts_with(path) && is_secret(read));
            let beneath = || SECRETS.iter().chain(&[".env"]).map(|name| path.join(name)).find(|path| path.exists());
            let mut risk = |what: String| {
                is_risky = true;
                warnings.push(what);
            };
            if self.is_wide(path) {
                risk(format!("`{shown}` is nearly everything: name what the tool needs of it"));
            } else if writes && meets(&own, path) {
                risk(format!("with `{shown}`, it can change what hostler itself reads, and so undo its sandbox"));
            } else if writes && meets(&tools, path) {
                risk(format!("with `{shown}`, it can change tools"));
            } else if is_secret(path) {
                warnings.push(format!("`{shown}` may hold secrets"));
            } else if let Some(secret) = within.cloned().or_else(beneath) {
                warnings.push(format!("`{shown}` has {}, which may hold secrets", self.shown(&secret)));
            } else if writes && ["/tmp", "/var/tmp"].iter().any(|shared| path == Path::new(shared)) {
                warnings
                    .push(format!("`{shown}` has files of other programs; a tool that heeds TMPDIR does not need it"));
            } else if meets(&tools, path) {
                warnings.push(format!("`{shown}` belongs to other tools"));
            } else if meets(&own, path) {
                warnings.push(format!("`{shown}` has files of hostler itself"));
            }
            let hides = |hidden: &PathBuf| hidden.canonicalize().is_ok_and(|hidden| path.starts_with(hidden));
            if self.hidden.iter().any(hides) {
                warnings.push(format!("`{shown}` is hidden by `hide`, which counts over this"));
            }
        }
        is_risky
    }
}

fn warn_of_closed(record: &Record, warnings: &mut Vec<String>) {
    let names = |paths: &BTreeSet<PathBuf>| {
        let all: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        (!all.is_empty()).then(|| some_of(&all))
    };
    let sockets = names(&record.sockets);
    warnings.extend(sockets.map(|all| format!("it connected to the Unix socket {all}, which no sandbox allows")));
    let watched = names(&record.watched);
    warnings
        .extend(watched.map(|all| format!("it watched {all} for changes, which only works where `read` has no limit")));
    if record.unread > 0 {
        warnings
            .push(format!("{} of its system calls could not be read, so that something may be missing", record.unread));
    }
}

/// Whether a path may lead to secrets.
fn is_secret(path: &Path) -> bool {
    path.components().any(|part| {
        let name = part.as_os_str().to_string_lossy();
        SECRETS.contains(&&*name) || name == ".env" || name.starts_with(".env.") || name == super::load::FILE_NAME
    })
}

fn some_of(all: &[String]) -> String {
    let more = all.len().saturating_sub(MOST_NAMED);
    let named = all[..all.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {more} more") }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A home folder with a project in it.
    struct Home(tempfile::TempDir);

    impl Home {
        fn new() -> Self {
            let home = Self(tempfile::tempdir().unwrap());
            for folder in ["project/tools", "project/data", "docs/old", ".ssh"] {
                fs::create_dir_all(home.at(folder)).unwrap();
            }
            for name in ["a", "b", "c"] {
                for folder in ["docs", "project/data", ".ssh", "project"] {
                    fs::write(home.at(folder).join(name), "").unwrap();
                }
                fs::write(home.at(name), "").unwrap();
            }
            home
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().canonicalize().unwrap().join(name)
        }

        fn around(&self) -> Surroundings {
            Surroundings {
                file: self.at("project/hostler.toml"),
                home: Some(self.at("")),
                tools: vec![self.at("project/tools")],
                hidden: Vec::new(),
                own: vec![self.at("project/hostler.toml")],
                has_networks: true,
            }
        }

        fn record(&self, reads: &[&str], writes: &[&str]) -> Record {
            let all = |names: &[&str]| names.iter().map(|name| self.at(name)).collect();
            Record { reads: all(reads), writes: all(writes), ..Record::default() }
        }

        fn learned(&self, reads: &[&str], writes: &[&str]) -> (String, Vec<String>) {
            let learned = learn(&self.record(reads, writes), &self.around(), &SandboxLayer::default());
            (learned.sandbox.written(), learned.warnings)
        }
    }

    #[test]
    fn what_any_sandbox_gives_is_not_proposed() {
        let home = Home::new();
        assert_eq!(home.learned(&[], &[]), ("\"pure\"".to_owned(), Vec::new()));
        let mut record = home.record(&["docs/a", "docs/b"], &["project/data"]);
        record.readable.insert(home.at("docs"));
        record.writable.insert(home.at("project"));
        let learned = learn(&record, &home.around(), &SandboxLayer::default());
        assert_eq!(learned.sandbox.written(), "\"pure\"");
        assert_eq!((learned.reads, learned.writes), (Vec::new(), Vec::new()));
    }

    #[test]
    fn files_are_named_and_many_of_a_folder_become_the_folder() {
        let home = Home::new();
        for (reads, writes, line) in [
            (&["docs/a", "docs/b"][..], &[][..], r#"{ preset = "pure", read = ["$HOME/docs/a", "$HOME/docs/b"] }"#),
            (&["docs/a", "docs/b", "docs/c"], &[], r#"{ preset = "pure", read = ["$HOME/docs"] }"#),
            (&["docs", "docs/a", "docs/old"], &[], r#"{ preset = "pure", read = ["$HOME/docs"] }"#),
            (&["project/data/a", "project/b"], &[], r#"{ preset = "pure", read = ["b", "data/a"] }"#),
            (&["a", "b", "c"], &[], r#"{ preset = "pure", read = ["$HOME/a", "$HOME/b", "$HOME/c"] }"#),
            (&["docs/a"], &["docs"], r#"{ preset = "pure", write = ["$HOME/docs"] }"#),
            (&["gone"], &["docs/gone/too"], r#"{ preset = "pure", write = ["$HOME/docs"] }"#),
            (&["docs/a"], &["docs/b"], r#"{ preset = "pure", read = ["$HOME/docs/a"], write = ["$HOME/docs/b"] }"#),
        ] {
            assert_eq!(home.learned(reads, writes), (line.to_owned(), Vec::new()), "{reads:?} {writes:?}");
        }
    }

    #[test]
    fn what_a_person_should_look_at_is_said() {
        let home = Home::new();
        fs::write(home.at("docs/.env"), "").unwrap();
        for (reads, writes, words) in [
            (&[".ssh/a", ".ssh/b", ".ssh/c"][..], &[][..], "`$HOME/.ssh/a` may hold secrets"),
            (&[], &[""], "`$HOME` is nearly everything"),
            (&[], &["project/tools"], "it can change tools"),
            (&["project"], &[], "`.` belongs to other tools"),
            (&[], &["project"], "what hostler itself reads"),
            (&["docs/.env", "docs/a", "docs/b", "docs/c"], &[], "`$HOME/docs` has $HOME/docs/.env"),
        ] {
            let (line, warnings) = home.learned(reads, writes);
            assert!(warnings.iter().any(|warning| warning.contains(words)), "{line}: {warnings:?}");
        }
        let risky =
            |writes: &[&str]| learn(&home.record(&[], writes), &home.around(), &SandboxLayer::default()).is_risky;
        assert!(risky(&["project"]) && risky(&[""]) && risky(&["project/tools"]) && !risky(&["docs"]));
        fs::create_dir(home.at("project/$HOME")).unwrap();
        let (line, warnings) = home.learned(&[], &["project/$HOME"]);
        assert!(line == "\"pure\"" && warnings[0].contains("cannot name"), "not the home folder: {line} {warnings:?}");
        fs::write(home.at("docs/a*"), "").unwrap();
        let (line, warnings) = home.learned(&["docs/a*"], &[]);
        assert_eq!(line, "\"pure\"");
        assert!(warnings[0].contains("name a folder above it"), "{warnings:?}");
    }

    #[test]
    fn the_network_is_as_narrow_as_it_can_be() {
        let home = Home::new();
        let of = |hosts: &[&str], addresses: &[&str], listens, has_networks| {
            let record = Record {
                hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
                addresses: addresses.iter().map(|address| address.parse().unwrap()).collect(),
                listens,
                ..Record::default()
            };
            let learned = learn(&record, &Surroundings { has_networks, ..home.around() }, &SandboxLayer::default());
            (learned.sandbox.written(), learned.warnings.len())
        };
        let named = r#"{ preset = "pure", network = ["example.com:443"] }"#.to_owned();
        assert_eq!(of(&["example.com:443"], &[], false, true), (named, 0));
        assert_eq!(of(&["example.com:443"], &[], false, false), ("\"network\"".to_owned(), 1));
        assert_eq!(of(&["example.com:443"], &["10.0.0.1:53"], false, true), ("\"network\"".to_owned(), 1));
        assert_eq!(of(&[], &[], true, true), (r#"{ preset = "pure", network = [] }"#.to_owned(), 0));
        assert_eq!(of(&["127.1:80"], &[], false, true), ("\"network\"".to_owned(), 1));
    }

    #[test]
    fn what_is_not_about_files_and_hosts_stays() {
        let home = Home::new();
        let kept = SandboxLayer {
            hide: Some(vec!["x".to_owned()]),
            open_files: Some(9),
            require: Some(true),
            read: Some(vec!["/old".to_owned()]),
            network: Some(Network::On),
            ..SandboxLayer::default()
        };
        let learned = learn(&Record::default(), &home.around(), &kept);
        let line = r#"{ preset = "pure", hide = ["x"], open_files = 9, require = true }"#;
        assert_eq!(learned.sandbox.written(), line);
    }
}
