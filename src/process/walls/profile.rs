//! Walls as a profile of macOS's sandbox: text, made from what a process may reach.
//!
//! Everything is allowed, and each line takes something away. So the order of the lines has no meaning, and each of several accesses has to
//! allow what the process does.

use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

use super::{Access, Walls};
use crate::config::sandbox::Network;

/// What every program may read and run: the system's programs, libraries and data. Neither `/Users`, `/private/tmp` nor the rest of
/// `/private/etc` and `/private/var` is among it.
const SYSTEM: [&str; 35] = [
    "/usr",
    "/bin",
    "/sbin",
    "/System/Applications",
    "/System/Cryptexes",
    "/System/Library",
    "/System/Volumes/Preboot/Cryptexes",
    "/System/iOSSupport",
    "/Library/Apple",
    "/Library/Developer",
    "/Library/Filesystems",
    "/Library/Fonts",
    "/Library/Frameworks",
    "/Library/Java",
    "/Library/Perl",
    "/Library/Ruby",
    "/Applications/Xcode.app",
    "/opt/homebrew",
    "/opt/local",
    "/nix/store",
    "/private/etc/group",
    "/private/etc/hosts",
    "/private/etc/localtime",
    "/private/etc/nsswitch.conf",
    "/private/etc/passwd",
    "/private/etc/protocols",
    "/private/etc/resolv.conf",
    "/private/etc/services",
    "/private/etc/shells",
    "/private/etc/ssl",
    "/private/var/db/dyld",
    "/private/var/db/mds",
    "/private/var/db/timezone",
    "/private/var/run/resolv.conf",
    "/private/var/select",
];

/// Devices without content of others.
const DEVICES: [&str; 9] = [
    "/dev/null",
    "/dev/zero",
    "/dev/random",
    "/dev/urandom",
    "/dev/dtracehelper",
    "/dev/autofs_nowait",
    "/dev/stdin",
    "/dev/stdout",
    "/dev/stderr",
];

/// The services of the system that a program needs to look up users and folders, and to log. All others could act for it, as the one that
/// opens programs does, or know secrets, as the keychain does.
const SERVICES: [&str; 9] = [
    "com.apple.analyticsd",
    "com.apple.bsd.dirhelper",
    "com.apple.diagnosticd",
    "com.apple.logd",
    "com.apple.logd.events",
    "com.apple.system.logger",
    "com.apple.system.notification_center",
    "com.apple.system.opendirectoryd.libinfo",
    "com.apple.system.opendirectoryd.membership",
];

/// Those that a program needs to use the network, too.
const NETWORK_SERVICES: [&str; 6] = [
    "com.apple.SystemConfiguration.DNSConfiguration",
    "com.apple.SystemConfiguration.configd",
    "com.apple.dnssd.service",
    "com.apple.networkd",
    "com.apple.trustd",
    "com.apple.trustd.agent",
];

/// What is closed wherever something is limited. A process of the same sandbox is one that it has started.
const ALWAYS: &str = "\
(version 1)
(allow default)
(deny signal (require-not (target same-sandbox)))
(deny process-info* (require-not (target same-sandbox)))
(deny appleevent-send)
(deny lsopen)
(deny job-creation)
(deny mach-priv*)
(deny nvram*)
(deny system-privilege)
(deny ipc-posix-shm*)
(deny ipc-sysv*)
";

/// The socket of the service that looks names up.
const RESOLVER: &str = "/private/var/run/mDNSResponder";

/// The profile of these walls. `own` can be read whatever they say, and `private` also written.
pub(super) fn profile(walls: &Walls, own: &[PathBuf], private: Option<&Path>) -> String {
    let mut text = ALWAYS.to_owned();
    for access in &walls.access {
        files(&mut text, access, own, private);
    }
    network(&mut text, walls);
    if !walls.hidden.is_empty() {
        rule(&mut text, "file-read* file-write* file-link process-exec*", None, &beneath(walls.hidden.iter()));
        // What is above could be renamed, and the rule goes by names.
        rule(&mut text, "file-write-unlink", None, &above(&walls.hidden));
    }
    text
}

fn files(text: &mut String, access: &Access, own: &[PathBuf], private: Option<&Path>) {
    let devices = DEVICES.iter().map(|device| filter("literal", device)).chain([filter("subpath", "/dev/fd")]);
    if let Some(folders) = &access.read {
        // The root itself: programs list it to find out where they are.
        let system = SYSTEM.iter().map(|path| filter("subpath", path)).chain([filter("literal", "/")]);
        let named = beneath(folders.iter().chain(own).map(PathBuf::as_path).chain(private));
        let all: Vec<String> = system.chain(devices.clone()).chain(named).collect();
        // A link would be another name of what may not be read.
        rule(text, "file-read-data file-read-xattr file-link process-exec*", Some("require-not"), &all);
    }
    if let Some(folders) = &access.write {
        let all: Vec<String> = devices.chain(beneath(folders.iter().map(PathBuf::as_path).chain(private))).collect();
        rule(text, "file-write*", Some("require-not"), &all);
    }
}

fn network(text: &mut String, walls: &Walls) {
    let is_open = walls.access.iter().all(|access| access.network == Network::On);
    let services = SERVICES.iter().chain(NETWORK_SERVICES.iter().filter(|_| is_open));
    let names: Vec<String> = services.map(|name| filter("global-name", name)).collect();
    rule(text, "mach-lookup", Some("require-not"), &names);
    if is_open {
        let _ = writeln!(
            text,
            "(deny network-outbound (require-all (remote unix-socket) (require-not {})))",
            filter("literal", RESOLVER)
        );
    } else {
        text.push_str("(deny network*)\n");
    }
}

/// Denies what fits one of the filters; with `require-not`, what fits none.
fn rule(text: &mut String, operations: &str, negated: Option<&str>, filters: &[String]) {
    let any = format!("(require-any\n    {})", filters.join("\n    "));
    let all = negated.map_or_else(|| any.clone(), |word| format!("({word} {any})"));
    let _ = writeln!(text, "(deny {operations} {all})");
}

/// The filters of files and folders with all that is beneath them, by their own paths and by those that links in them lead to.
fn beneath<P: AsRef<Path>>(paths: impl Iterator<Item = P>) -> Vec<String> {
    let both = paths.flat_map(|path| [path.as_ref().to_owned(), real(path.as_ref())]);
    let mut found: Vec<String> = both.map(|path| filter("subpath", &path.to_string_lossy())).collect();
    found.sort();
    found.dedup();
    found
}

/// The filters of the folders above these paths, and above those that links in them lead to.
fn above(paths: &[PathBuf]) -> Vec<String> {
    let both = paths.iter().flat_map(|path| [path.clone(), real(path)]);
    let folders = both.flat_map(|path| path.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>());
    let mut found: Vec<String> = folders.map(|folder| filter("literal", &folder.to_string_lossy())).collect();
    found.sort();
    found.dedup();
    found
}

/// Where a path leads, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let there = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    let Some((above, found)) = there else { return path.to_owned() };
    let rest = path.strip_prefix(above).unwrap_or(Path::new(""));
    let normal = rest.components().filter(|part| matches!(part, Component::Normal(_)));
    normal.fold(found, |path, part| path.join(part))
}

/// A filter with a text. The language has strings like those of C.
fn filter(name: &str, text: &str) -> String {
    format!("({name} \"{}\")", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walls(access: Vec<Access>) -> Walls {
        Walls { access, ..Walls::default() }
    }

    fn pure() -> Access {
        Access { read: Some(Vec::new()), write: Some(Vec::new()), network: Network::Off }
    }

    fn lines<'a>(text: &'a str, operation: &str) -> Vec<&'a str> {
        let rules = text.split("\n(").filter(|rule| rule.starts_with(&format!("deny {operation}")));
        rules.collect()
    }

    #[test]
    fn each_access_takes_something_away() {
        let read = |path: &str| Access { read: Some(vec![path.into()]), ..Access::FULL };
        let text = profile(&walls(vec![read("/one"), read("/two")]), &["/own".into()], None);
        let rules = lines(&text, "file-read-data");
        assert_eq!(rules.len(), 2);
        assert!(rules[0].contains("(subpath \"/one\")") && !rules[0].contains("/two"), "{text}");
        assert!(rules.iter().all(|rule| rule.contains("(subpath \"/own\")") && rule.contains("require-not")));
        assert!(lines(&text, "file-write").is_empty(), "{text}");
        assert_eq!(text.matches("(allow ").count(), 1, "what is allowed later would undo what is denied: {text}");
    }

    #[test]
    fn a_private_folder_is_all_that_a_pure_tool_writes() {
        let text = profile(&walls(vec![pure()]), &[], Some(Path::new("/private/tmp/hostler.1")));
        let rules = lines(&text, "file-write*");
        assert_eq!(rules.len(), 1);
        assert_eq!(rules[0].matches("subpath").count(), 2, "and descriptors");
        assert!(rules[0].contains("(subpath \"/private/tmp/hostler.1\")"), "{text}");
        assert!(text.ends_with("(deny network*)\n") && !text.contains("dnssd"), "{text}");
    }

    #[test]
    fn an_open_network_reaches_no_other_socket_and_no_service_that_acts_for_it() {
        let open = Access { network: Network::On, ..pure() };
        let text = profile(&walls(vec![open.clone()]), &[], None);
        assert!(text.contains("(remote unix-socket)") && text.contains("dnssd") && !text.contains("(deny network*)"));
        assert!(!text.contains("SecurityServer") && !text.contains("launchservices"), "{text}");
        assert!(profile(&walls(vec![open, pure()]), &[], None).contains("(deny network*)"), "one closes it");
    }

    #[test]
    fn what_is_hidden_is_neither_read_nor_written() {
        let hiding = Walls { hidden: vec!["/hidden/deeper".into()], ..walls(vec![Access::FULL]) };
        let text = profile(&hiding, &[], None);
        assert_eq!(lines(&text, "file-read*").len(), 1);
        assert!(lines(&text, "file-read*")[0].contains("(subpath \"/hidden/deeper\")"), "{text}");
        assert!(
            lines(&text, "file-write-unlink")[0].contains("(literal \"/hidden\")"),
            "what is above keeps its name: {text}"
        );
    }

    #[test]
    fn a_path_cannot_end_its_text() {
        let odd = Access { read: Some(vec!["/a\") (allow default) (\"\\".into()]), ..Access::FULL };
        let text = profile(&walls(vec![odd]), &[], None);
        assert!(text.contains(r#"(subpath "/a\") (allow default) (\"\\")"#), "{text}");
    }

    #[test]
    fn parentheses_are_closed() {
        let all = Walls { hidden: vec!["/hidden".into()], ..walls(vec![pure(), Access::FULL]) };
        let text = profile(&all, &["/own".into()], Some(Path::new("/tmp")));
        assert_eq!(text.matches('(').count(), text.matches(')').count(), "{text}");
    }

    #[test]
    fn links_are_followed_as_far_as_a_path_exists() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).unwrap();
        assert_eq!(real(&root.join("link/absent/deeper")), root.join("real/absent/deeper"));
        let text = beneath([root.join("link")].iter());
        assert_eq!(text.len(), 2, "{text:?}");
    }
}
