//! Which wall of a sandbox is behind a fault, and what would open it. The kernel only says that something is not permitted.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::hosts::{HostPattern, Hosts};
use crate::config::origin::Origin;
use crate::config::sandbox::{Network, Sandbox, Widening};
use crate::discovery::Kind;
use crate::egress::{AllowedHosts, CLOSED};
use crate::outcome::{Blocked, Code, Fault};
use crate::registry::FileEntry;
use crate::threads::blocking_or_here;

/// The words of `EACCES`, which the wall around files answers.
const FILES: &str = "Permission denied";
/// The words of `EROFS`: attributes of files that it may not change.
const READ_ONLY: &str = "Read-only file system";
/// The words of `ENOENT`, which hidden files answer as well.
const ABSENT: &str = "No such file or directory";
/// The words of `EPERM`, which the filter of system calls answers.
const SYSTEM_CALLS: &str = "Operation not permitted";
/// What else is said where a socket could not be opened.
const NO_NETWORK: [&str; 4] =
    ["name resolution", "Name or service not known", "Could not resolve host", "Network is unreachable"];

/// Completes a fault that a wall may have caused: names the wall, and says what would open it.
pub(super) async fn complete(fault: &mut Fault, entry: &Arc<FileEntry>) {
    let is_built_in = entry.file.kind == Kind::Builtin && fault.code == Code::PermissionDenied;
    let is_of_tool = is_built_in || matches!(fault.code, Code::ToolError | Code::ToolCrashed | Code::StartupFailed);
    let is_recorded = entry.config.recorder_of(&entry.file.pack).is_some();
    if is_recorded
        || !is_of_tool
        || fault.details.missing.is_some()
        || !entry.settings.sandbox.iter().any(Sandbox::limits_access)
    {
        return;
    }
    let (mut completed, entry) = (fault.clone(), Arc::clone(entry));
    // Looks at files that the tool names, which can block.
    let advised = blocking_or_here(move || {
        let advice = advice(&mut completed, &entry);
        advice.map(|advice| Fault { message: format!("{}. {advice}", completed.message), ..completed })
    });
    if let Some(completed) = advised.await {
        *fault = completed;
    }
}

fn advice(fault: &mut Fault, entry: &FileEntry) -> Option<String> {
    let sandboxes = &entry.settings.sandbox;
    let said = fault.details.stderr.iter().chain(&fault.details.traceback).chain([&fault.message]);
    let said: Vec<&str> = said.map(String::as_str).collect();
    let has = |words: &str| said.iter().any(|text| text.contains(words));
    let closed = sandboxes.iter().find(|sandbox| sandbox.network == Network::Off);
    let has_hosts = |sandbox: &&Sandbox| matches!(sandbox.network, Network::Hosts(_));
    let with_hosts = sandboxes.iter().find(has_hosts);
    let wants_network = NO_NETWORK.into_iter().any(has) || (has(SYSTEM_CALLS) && has("socket"));
    let (wall, sandbox, what, need) = if let Some((host, sandbox)) =
        said.iter().find_map(|text| closed_host(text, sandboxes))
    {
        (Blocked::Network, sandbox, format!("does not let it reach {host}"), Some(Widening::Host(host)))
    } else if let Some(sandbox) = closed.filter(|_| wants_network) {
        (Blocked::Network, sandbox, "does not let it use the network".to_owned(), Some(Widening::Network))
    } else if let Some(sandbox) = with_hosts.filter(|_| wants_network) {
        let what =
            "lets it reach chosen hosts only, through the proxy that HTTPS_PROXY names, and it did not use that proxy";
        (Blocked::Network, sandbox, what.to_owned(), None)
    } else if let Some((sandbox, hidden)) = said.iter().find_map(|text| hidden_by(text, sandboxes)) {
        let what = format!("hides {}. If it should see that, leave it out of `hide`", hidden.display());
        (Blocked::Files, sandbox, what, None)
    } else if let Some(words) = [FILES, READ_ONLY].into_iter().find(|words| has(words)) {
        let path = said.iter().find_map(|text| path_after(text, words))?;
        let (sandbox, need) = closed_to(sandboxes, &path, entry)?;
        (Blocked::Files, sandbox, format!("does not let it reach {}", path.display()), Some(need))
    } else if has(SYSTEM_CALLS) {
        let sandbox = sandboxes.iter().find(|sandbox| sandbox.limits_access())?;
        let what = "may be the reason: it closes Unix sockets, and what acts on other processes or on the machine";
        (Blocked::SystemCalls, sandbox, what.to_owned(), None)
    } else {
        return None;
    };
    fault.details.blocked = Some(wall);
    let (pack, origin) = (&entry.file.pack, &sandbox.origin);
    let Some(need) = need else {
        return Some(format!("The sandbox of {pack} ({origin}) {what}. See docs/sandbox.md for what it can be given"));
    };
    let has_preset = origin.is_of_tool() || !sandboxes.iter().any(|one| one.origin.is_of_tool());
    let line = sandbox.widened(&need, has_preset);
    let place = match origin {
        Origin::Header(place) => format!("in its header ({place})"),
        _ => format!("under [tool.{pack}] in hostler.toml"),
    };
    Some(format!("The sandbox of {pack} ({origin}) {what}. If it should, write `{line}` {place}"))
}

/// The host that the proxy of a sandbox says it has refused, and a sandbox that closes it. A name that led to a private address is listed:
/// that address is closed.
fn closed_host<'s>(text: &str, sandboxes: &'s [Sandbox]) -> Option<(HostPattern, &'s Sandbox)> {
    let refused = &text[text.find(CLOSED)? + CLOSED.len()..];
    let end = refused.find(|c: char| c.is_whitespace() || "'\"<>".contains(c)).unwrap_or(refused.len());
    let (named, behind) = refused.split_at(end);
    let (name, port) = named.rsplit_once(':')?;
    let address = behind.strip_prefix(" (").and_then(|rest| rest.split(' ').next()?.parse::<IpAddr>().ok());
    let port = port.trim_end_matches(|c: char| !c.is_ascii_digit());
    let name = address.map_or_else(
        || name.to_owned(),
        |address| match address {
            IpAddr::V4(four) => four.to_string(),
            IpAddr::V6(six) => format!("[{six}]"),
        },
    );
    let host: HostPattern = format!("{name}:{port}").parse().ok()?;
    // A tool can write such a text as well: nothing but the one host is ever proposed.
    let is_one = match host.hosts {
        Hosts::Named(_) => true,
        Hosts::Beneath(_) => false,
        Hosts::Network(address, bits) => bits == if address.is_ipv4() { 32 } else { 128 },
    };
    let number = host.port.filter(|_| is_one)?;
    let closes = |sandbox: &&Sandbox| match &sandbox.network {
        Network::Hosts(hosts) => AllowedHosts(vec![hosts.clone()]).admit(&name, number).is_err(),
        Network::Off | Network::On => false,
    };
    Some((host, sandboxes.iter().find(closes)?))
}

/// The sandbox that hides the path of which a text says that it is absent or closed, and what it hides: the same whether it exists or not.
fn hidden_by<'s>(text: &str, sandboxes: &'s [Sandbox]) -> Option<(&'s Sandbox, &'s Path)> {
    let path = [ABSENT, FILES, READ_ONLY].into_iter().find_map(|words| path_after(text, words))?;
    let hides = |sandbox: &'s Sandbox| {
        let real = |hidden: &Path| hidden.canonicalize().is_ok_and(|real| path.starts_with(real));
        let covers = |hidden: &&PathBuf| path.starts_with(hidden) || real(hidden);
        Some((sandbox, sandbox.hide.iter().find(covers)?.as_path()))
    };
    sandboxes.iter().find_map(hides)
}

/// The path in quotes behind some words: `Permission denied: '/x'`; or the one before them: `cat: /x: Permission denied`.
fn path_after(text: &str, words: &str) -> Option<PathBuf> {
    let at = text.find(words)?;
    let behind = text[at + words.len()..].strip_prefix(": '").and_then(|rest| rest.split('\'').next());
    let before = text[..at].lines().next_back().and_then(|line| line.strip_suffix(": "));
    let before = before.and_then(|line| line.rsplit(": ").next()).map(|word| word.trim_matches(['\'', '"']));
    // As the built-in tools say it.
    let before = before.map(|word| word.strip_prefix("cannot open ").unwrap_or(word));
    behind.or(before).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The sandbox that closes a path, and what it would need. None where it does not, so that the permissions of the file are the reason, and
/// where nothing was there to be reached.
fn closed_to<'s>(sandboxes: &'s [Sandbox], path: &Path, entry: &FileEntry) -> Option<(&'s Sandbox, Widening)> {
    let exists = path.canonicalize();
    let folder = path.parent()?.canonicalize().ok()?;
    let place = exists.as_deref().unwrap_or(&folder);
    let is_in = |folders: &[PathBuf]| {
        folders.iter().any(|folder| place.starts_with(folder.canonicalize().as_deref().unwrap_or(folder)))
    };
    let own = entry.file.path.canonicalize().ok();
    let is_own = match entry.file.kind {
        Kind::Builtin => entry.config.builtin.roots.as_ref().is_some_and(|roots| is_in(&roots.value)),
        _ => own.as_deref().and_then(Path::parent).is_some_and(|own| place.starts_with(own)),
    };
    sandboxes.iter().filter(|sandbox| sandbox.read.is_some() || sandbox.write.is_some()).find_map(|sandbox| {
        let writes = sandbox.write.as_ref().is_none_or(|folders| is_in(folders));
        let reads = writes || is_own || sandbox.read.as_ref().is_none_or(|folders| is_in(folders));
        match (reads, writes) {
            (_, true) => None,
            (false, false) if exists.is_ok() => Some((sandbox, Widening::Read(place.to_owned()))),
            (true, false) if exists.is_ok() => Some((sandbox, Widening::Write(place.to_owned()))),
            // It was to be made. A tool that only says so is not given everything.
            _ if is_wide(&folder) => None,
            _ => Some((sandbox, Widening::Write(folder.clone()))),
        }
    })
}

/// Whether a folder is the root, or one right beneath it.
fn is_wide(folder: &Path) -> bool {
    folder.components().count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_host_is_found_with_the_sandbox_that_closes_it() {
        let with = |hosts: &[&str]| {
            let hosts = hosts.iter().map(|host| host.parse().unwrap()).collect();
            Sandbox { network: Network::Hosts(hosts), ..Sandbox::pure() }
        };
        let sandboxes = [with(&["a.example", "b.example"]), with(&["a.example"])];
        for (text, found) in [
            ("OSError: Tunnel connection failed: 403 Closed by the sandbox: c.example:443", Some(("c.example:443", 0))),
            ("ProxyError('403 Closed by the sandbox: b.example:443')", Some(("b.example:443", 1))),
            (
                "403 Closed by the sandbox: a.example:80 (10.1.2.3 is an address of a private network)",
                Some(("10.1.2.3:80", 0)),
            ),
            ("403 Closed by the sandbox: a.example:80 (fd00::1 is an address of x)", Some(("[fd00::1]:80", 0))),
            ("403 Closed by the sandbox: [::1]:80 x", Some(("[::1]:80", 0))),
            ("403 Closed by the sandbox: a.example:443", None),
            ("403 Closed by the sandbox: *.com:443", None),
            ("403 Closed by the sandbox: 0.0.0.0/0:443", None),
            ("403 Closed by the sandbox: [::]/0:443", None),
            ("403 Closed by the sandbox: ", None),
        ] {
            let host = closed_host(text, &sandboxes);
            let host = host.map(|(host, sandbox)| {
                (host.to_string(), sandboxes.iter().position(|one| std::ptr::eq(one, sandbox)).unwrap())
            });
            assert_eq!(host, found.map(|(host, at): (&str, usize)| (host.to_owned(), at)), "{text}");
        }
    }

    #[test]
    fn the_path_is_found_as_python_and_as_programs_say_it() {
        for (text, path) in [
            ("PermissionError: [Errno 13] Permission denied: '/a/b'", Some("/a/b")),
            ("one\ncat: /a/b: Permission denied\n", Some("/a/b")),
            ("sh: 1: cannot create /a/b: Permission denied", None),
            ("open('b'): Permission denied", None),
        ] {
            assert_eq!(path_after(text, FILES).as_deref(), path.map(Path::new), "{text}");
        }
    }
}
