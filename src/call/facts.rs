//! What rules ask about a call: where its paths lead, what its commands are, which hosts it names.

use std::ffi::OsStr;
use std::net::Ipv6Addr;
use std::path::{Component, Path, PathBuf};

use fluent_uri::UriRef;
use serde_json::{Map, Value};

use crate::config::mode::Mode;
use crate::config::tool::WorkingDirectory;
use crate::discovery::Kind;
use crate::policy::{Argument, Commands, Decision, Facts, HostFact, PathFact, Unjudged, commands};
use crate::registry::{Governed, Tool};

/// What the rules say of a call of this tool, if it was not called before. Reads the file system where they are about paths.
pub fn decide(tool: &Tool, arguments: &Map<String, Value>, mode: Mode) -> Decision {
    tool.governed().map_or(Decision::Allowed, |governed| governed.rules.decide(&facts(tool, governed, arguments, mode)))
}

/// What its rules ask about a call.
pub(super) fn facts(tool: &Tool, governed: &Governed, given: &Map<String, Value>, mode: Mode) -> Facts {
    let (rules, arguments) = (&governed.rules, &governed.arguments);
    let texts = |of: &'_ [Argument]| -> Vec<String> {
        of.iter().flat_map(|argument| argument.texts(given)).map(str::to_owned).collect()
    };
    let mut facts = Facts { mode, ..Facts::default() };
    if rules.judge_paths() {
        let (from, home) = (working_directory(tool), tool.entry.config.environment.path("HOME"));
        facts.paths = texts(&arguments.paths).into_iter().map(|given| path(given, &from, home.as_deref())).collect();
        facts.bytes = serde_json::to_string(given).map_or(u64::MAX, |text| text.len() as u64);
    }
    if rules.judge_commands() {
        facts.commands = arguments.commands.iter().flat_map(|argument| argument.values(given)).map(command).collect();
    }
    if rules.judge_hosts() {
        facts.hosts = texts(&arguments.hosts).into_iter().map(host).collect();
    }
    facts
}

/// Where relative paths of a tool begin.
fn working_directory(tool: &Tool) -> PathBuf {
    let (entry, config) = (&tool.entry, &tool.entry.config);
    let first_root = config.builtin.roots.as_ref().and_then(|roots| roots.value.first());
    match (entry.file.kind, entry.settings.cwd.value) {
        (Kind::Builtin, _) => first_root.cloned().unwrap_or_else(|| config.directory.clone()),
        (_, WorkingDirectory::Tool) => entry.file.path.parent().map(Path::to_owned).unwrap_or_default(),
        (_, WorkingDirectory::Session) => config.directory.clone(),
    }
}

fn path(given: String, from: &Path, home: Option<&Path>) -> PathFact {
    let whole = whole_path(&given, from, home);
    let named = whole.as_deref().map(without_dots).unwrap_or_default();
    let real = whole.and_then(|whole| real_path(&whole));
    let size = real.as_ref().ok().and_then(|real| real.metadata().ok()).filter(std::fs::Metadata::is_file);
    PathFact { real: real.map_err(str::to_owned), given, named, size: size.map(|found| found.len()) }
}

fn whole_path(given: &str, from: &Path, home: Option<&Path>) -> Result<PathBuf, &'static str> {
    if given.contains('\0') || given.contains("://") || given.starts_with("file:") {
        return Err("is not a path");
    }
    // Some tools put the value of a variable there, and some do not.
    if given.contains('$') {
        return Err("may have a variable");
    }
    match given.strip_prefix('~') {
        // Some tools put the home folder there, and some do not.
        Some(rest) if (rest.is_empty() || rest.starts_with('/')) && from.join("~").symlink_metadata().is_err() => {
            Ok(home.ok_or("has no home folder")?.join(rest.trim_start_matches('/')))
        }
        Some(rest) if rest.is_empty() || rest.starts_with('/') => Err("may be in your home folder, or in one named ~"),
        Some(_) => Err("is in the home folder of another person"),
        None => Ok(from.join(given)),
    }
}

/// By its text alone.
fn without_dots(whole: &Path) -> PathBuf {
    let mut named = PathBuf::from("/");
    for part in whole.components() {
        match part {
            Component::Normal(name) => named.push(name),
            Component::ParentDir => drop(named.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    named
}

/// Whether a path leads into what the system shows of a process: that is another process where the tool runs.
fn is_of_a_process(path: &Path) -> bool {
    let mut parts = path.components().skip(1).map(Component::as_os_str);
    let is_one = |name: &OsStr| {
        name.to_str().is_some_and(|name| matches!(name, "self" | "thread-self") || name.parse::<u32>().is_ok())
    };
    parts.next().is_some_and(|first| first == "proc") && parts.next().is_some_and(is_one)
        || path.starts_with("/dev/fd")
        || ["/dev/stdin", "/dev/stdout", "/dev/stderr"].iter().any(|name| path == Path::new(name))
}

/// The most links that are followed, as the system does.
const MOST_LINKS: u8 = 40;

/// Where a path leads, with all links followed. What is not there yet is where it would be made.
fn real_path(whole: &Path) -> Result<PathBuf, &'static str> {
    let owned = |path: &Path| path.iter().rev().map(OsStr::to_owned).collect::<Vec<_>>();
    // The next part is the last one. Those of a link that is being followed end at `own`.
    let mut open = owned(whole);
    let (mut real, mut own, mut links, mut is_missing) = (PathBuf::from("/"), open.len(), 0, false);
    while let Some(part) = open.pop() {
        let is_of_link = open.len() >= own;
        own = own.min(open.len());
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) if is_missing => return Err("leads back out of a folder that is not there"),
            Some(Component::ParentDir) => drop(real.pop()),
            Some(Component::RootDir) => real = PathBuf::from("/"),
            Some(Component::Normal(name)) if is_missing => real.push(name),
            Some(Component::Normal(name)) => {
                real.push(name);
                if is_of_a_process(&real) {
                    return Err("leads through a process");
                }
                match real.symlink_metadata() {
                    Ok(found) if found.is_symlink() => {
                        links += 1;
                        let link = real.read_link().ok().filter(|_| links <= MOST_LINKS);
                        open.extend(owned(&link.ok_or("leads through a link that cannot be followed")?));
                        real.pop();
                    }
                    Ok(found) if found.is_dir() || open.iter().all(|part| part == ".") => {}
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound && !is_of_link => is_missing = true,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        return Err("leads through a link that cannot be followed");
                    }
                    Ok(_) | Err(_) => return Err("cannot be looked at"),
                }
            }
            Some(Component::CurDir | Component::Prefix(_)) | None => {}
        }
    }
    Ok(real)
}

/// A text as a shell reads it, or a list of words as it is.
fn command(value: &Value) -> (String, Result<Commands, Unjudged>) {
    match value {
        Value::String(text) => (text.clone(), commands(text)),
        Value::Array(items) if items.iter().all(Value::is_string) => {
            let words: Vec<String> = items.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            (words.join(" "), Ok(Commands { words: vec![words], varies: false }))
        }
        other => (other.to_string(), Err(Unjudged("it is neither a text nor a list of words"))),
    }
}

/// The host of an address, or of `name:port`.
fn host(given: String) -> HostFact {
    let is_part = |c: char| c.is_alphanumeric() || ".-_:[]".contains(c);
    let bare = || given.chars().all(is_part).then(|| format!("//{given}"));
    let address = given.parse::<Ipv6Addr>().is_ok().then(|| format!("//[{given}]"));
    let text = if given.contains("://") { Some(given.clone()) } else { address.or_else(bare) };
    let parsed = text.as_deref().and_then(|text| UriRef::parse(text).ok());
    let named = parsed.as_ref().and_then(UriRef::authority).map(|authority| authority.host().to_lowercase());
    // What is in brackets is an address of version 6, or something of the future.
    let plain = |name: String| match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(inside) => inside.parse::<Ipv6Addr>().map(|_| inside.to_owned()).unwrap_or_default(),
        None => name.trim_end_matches('.').to_owned(),
    };
    // Programs disagree about what else means.
    let is_one = |name: &String| {
        let is_name = name.chars().all(|c| c.is_alphanumeric() || "-._".contains(c));
        !name.is_empty() && (is_name || name.parse::<Ipv6Addr>().is_ok())
    };
    let host = named.map(plain).filter(is_one);
    HostFact { given, host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_where_it_leads() {
        let place = tempfile::tempdir().unwrap();
        let top = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("in/deep")).unwrap();
        std::fs::create_dir(top.join("out")).unwrap();
        std::os::unix::fs::symlink(top.join("out"), top.join("in/link")).unwrap();
        std::os::unix::fs::symlink(top.join("nowhere"), top.join("in/dangling")).unwrap();
        let home = top.join("home");
        let real = |given: &str| real_path(&whole_path(given, &top.join("in"), Some(&home))?);
        assert_eq!(real("deep"), Ok(top.join("in/deep")));
        assert_eq!(real("link/new/file"), Ok(top.join("out/new/file")), "not there yet");
        assert_eq!(real("deep/../../out"), Ok(top.join("out")));
        assert_eq!(real("link/.."), Ok(top.clone()), "behind a link, the folder above is another");
        assert_eq!(real("~/x"), Ok(home.join("x")));
        assert_eq!(real("/../etc"), Ok("/etc".into()));
        std::os::unix::fs::symlink("/proc/self/cwd", top.join("in/process")).unwrap();
        std::os::unix::fs::symlink("process", top.join("in/again")).unwrap();
        std::os::unix::fs::symlink("round", top.join("in/round")).unwrap();
        std::os::unix::fs::symlink("link/../in/deep", top.join("in/long")).unwrap();
        std::fs::write(top.join("in/file"), "").unwrap();
        assert_eq!(real("long/x"), Ok(top.join("in/deep/x")));
        assert_eq!(real("file"), Ok(top.join("in/file")));
        for odd in [
            "/proc/self/cwd/x",
            "/proc/1/root/x",
            "process/x",
            "again",
            "round",
            "file/x",
            "/dev/fd/3",
            "dangling",
            "dangling/x",
            "new/../../x",
            "~root/x",
            "a\0b",
            "file:///etc/passwd",
            "file:/etc/passwd",
            "$HOME/x",
        ] {
            assert!(real(odd).is_err(), "{odd:?}: {:?}", real(odd));
        }
    }

    #[test]
    fn a_host_is_read_off_an_address() {
        let read = |given: &str| host(given.to_owned()).host;
        let is = |given: &str, wanted: &str| assert_eq!(read(given).as_deref(), Some(wanted), "{given}");
        is("https://Example.com/a?b", "example.com");
        is("http://good.com@evil.com:80/", "evil.com");
        is("http://[::1]:80/", "::1");
        is("example.com:443", "example.com");
        is("example.com.", "example.com");
        is("http://2130706433/", "2130706433");
        is("::1", "::1");
        for odd in [
            "",
            "http://",
            "http://evil.com\\@good.com/",
            "http://good.com evil.com/",
            "mailto:a@good.com",
            "http:///x",
            "http://evil.com%2f.good.com/",
            "http://evil.com%00.good.com/",
            "http://[v1.good.com]/",
        ] {
            assert!(read(odd).is_none_or(|host| !host.contains("good.com")), "{odd}: {:?}", read(odd));
        }
    }
}
