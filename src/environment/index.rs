//! What keeps uv from its packages and is no fault of the header: no network by request, a proxy or an index that refuses,
//! one that is broken, an address that is none. uv tells some of it in a hint only and says first that a package was not found.

use super::failure::reason;
use super::settings::{EnvironmentSettings, Variable};
use super::trouble::without_password;
use crate::pep723::Metadata;

/// The variables that name indexes.
const INDEXES: [&str; 4] = ["UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_EXTRA_INDEX_URL"];

/// What stands between uv and its packages, and what to do about it.
pub(super) fn advice(stderr: &str, settings: &EnvironmentSettings, header: Option<&Metadata>) -> Option<String> {
    // Older versions of uv break their lines anywhere.
    let text = &reason(stderr);
    let index = Index { text, settings, header };
    let rules = [
        Index::offline,
        Index::is_behind_proxy,
        Index::refuses,
        Index::is_broken,
        Index::is_none,
        Index::is_no_address,
    ];
    rules.iter().find_map(|rule| rule(&index))
}

struct Index<'t> {
    text: &'t str,
    settings: &'t EnvironmentSettings,
    header: Option<&'t Metadata>,
}

impl Index<'_> {
    fn offline(&self) -> Option<String> {
        let words = ["network was disabled", "Network connectivity is disabled", "network connectivity is disabled"];
        if !words.iter().any(|words| self.text.contains(words)) {
            return None;
        }
        let missing = missing_package(self.text).unwrap_or("what the header wants");
        let (why, cure) = match self.settings.variable("UV_OFFLINE") {
            Some(Variable { place, .. }) => (format!("UV_OFFLINE is set in {place}"), "Unset UV_OFFLINE"),
            None => ("[tool.uv] in the header says so".to_owned(), "Take `offline` out"),
        };
        Some(format!(
            "uv is offline ({why}), and {missing} is not in its cache. {cure}, or fill the cache while there is a network"
        ))
    }

    /// The proxy before an index wants to know who asks; the index itself was never reached.
    fn is_behind_proxy(&self) -> Option<String> {
        let refused = http_error(self.text, "client").filter(|(_, status)| status.starts_with("407"));
        let address = match refused {
            Some((address, _)) => address,
            None if self.text.contains("proxy authorization required") => {
                self.text.split_once("for url (")?.1.split(')').next()?
            }
            None => return None,
        };
        let what = "the proxy wants a name and a password, or refused those it got (407)";
        let Some(proxy) = self.settings.proxy(Some(address)) else {
            let cure = "set HTTPS_PROXY = \"http://USER:PASSWORD@HOST:PORT\" under [environment.env] in hostler.toml";
            return Some(format!("{what}. Ask for its address, and {cure}"));
        };
        let (scheme, rest) = proxy.value.split_once("://").unwrap_or(("http", &proxy.value));
        let host = rest.rsplit('@').next().unwrap_or(rest);
        let right = format!("{} = \"{scheme}://USER:PASSWORD@{host}\"", proxy.name);
        Some(format!("{what}. Correct {} in {}: {right}", proxy.name, proxy.place))
    }

    /// An index that wants to know who asks. Some answer 403 also for names that they do not have.
    fn refuses(&self) -> Option<String> {
        let hint = |mark: &str| self.text.split_once(mark)?.1.split(')').next();
        let (address, status) = match hint("An index URL (") {
            Some(address) if self.text.contains("(403 Forbidden)") => (address, "403 Forbidden"),
            Some(address) => (address, "401 Unauthorized"),
            None => match hint("An index (").filter(|_| self.text.contains("403 Forbidden")) {
                Some(address) => (address, "403 Forbidden"),
                // An address of its own is told with the dependency that has it.
                None => http_error(self.text, "client").filter(|_| !self.text.contains(" @ "))?,
            },
        };
        if !["401", "403"].iter().any(|number| status.starts_with(number)) {
            return None;
        }
        let (cure, address) = (self.credentials(address), without_password(address));
        let also = match missing_package(self.text).filter(|_| status.starts_with("403")) {
            Some(package) => {
                format!(
                    ". Some indexes answer so for what they do not have: see also whether {package} is the right name"
                )
            }
            None => String::new(),
        };
        Some(format!("the index at {address} refused the credentials, or wants some ({status}). {cure}{also}"))
    }

    /// Where the name and password for an index are to be written.
    fn credentials(&self, address: &str) -> String {
        let host = host_of(address);
        let named = INDEXES.iter().find_map(|name| {
            let variable = self.settings.variable(name)?;
            let value = variable.value.split_whitespace().find(|one| host_of(one) == host)?.to_owned();
            Some((name, value, variable.place))
        });
        if let Some((name, value, place)) = named {
            let (scheme, rest) = value.split_once("://").unwrap_or(("https", &value));
            let rest = rest.rsplit('@').next().unwrap_or(rest);
            return format!("Correct {name} in {place}: {name} = \"{scheme}://USER:PASSWORD@{rest}\"");
        }
        if let Some(index) = self.index_of_header(address) {
            let upper = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            let name: String = index.chars().map(upper).collect();
            return format!(
                "Set UV_INDEX_{name}_USERNAME and UV_INDEX_{name}_PASSWORD under [environment.env] in hostler.toml"
            );
        }
        let host = host.split(':').next().unwrap_or(host);
        format!("Write them into ~/.netrc: machine {host} login USER password PASSWORD")
    }

    /// The name of the index of this address under `[[tool.uv.index]]`.
    fn index_of_header(&self, address: &str) -> Option<String> {
        let indexes = self.header?.other_tools.get("uv")?.get("index")?.as_array()?;
        let is_it = |index: &&toml::Value| index.get("url").and_then(toml::Value::as_str) == Some(address);
        Some(indexes.iter().find(is_it)?.get("name")?.as_str()?.to_owned())
    }

    fn is_broken(&self) -> Option<String> {
        let busy = || http_error(self.text, "client").filter(|(_, status)| status.starts_with("429"));
        let (address, status) = http_error(self.text, "server").or_else(busy)?;
        let host = host_of(address);
        let other = if self.text.contains(" @ ") {
            "take it from another address"
        } else {
            "set another index as UV_DEFAULT_INDEX under [environment.env] in hostler.toml"
        };
        Some(format!("{host} answered {status}: the trouble is there, not in the header. Try again later, or {other}"))
    }

    /// What answers is a server of another kind, or a page of the network's own.
    fn is_none(&self) -> Option<String> {
        let is_it =
            ["Missing `Content-Type`", "Unsupported `Content-Type`"].iter().any(|words| self.text.contains(words));
        let what = "what answers there is no package index";
        is_it.then(|| match self.settings.other_index(self.header) {
            Some(index) => format!("{index}: {what}. Correct or unset {}", index.name),
            None => format!("{what}; a page of your network stands before it, perhaps. Open its address in a browser"),
        })
    }

    /// uv takes what has no scheme for a folder and finds nothing in it.
    fn is_no_address(&self) -> Option<String> {
        missing_package(self.text)?;
        INDEXES.iter().find_map(|name| {
            let variable = self.settings.variable(name)?;
            let is_list = ["UV_INDEX", "UV_EXTRA_INDEX_URL"].contains(name);
            let one = || no_address(&variable.value);
            let wrong = if is_list { variable.value.split_whitespace().find_map(no_address) } else { one() }?;
            let shown = if variable.value.contains('@') { "…" } else { &variable.value };
            Some(format!("{name} in {} is \"{shown}\": {wrong}", variable.place))
        })
    }
}

/// What is wrong with an address of an index that uv looks for in vain.
fn no_address(text: &str) -> Option<String> {
    let address = text.split_once('=').map_or(text, |(name, rest)| if name.contains('/') { text } else { rest });
    if let Some((scheme, rest)) = address.split_once("://") {
        let is_folder = scheme == "file" && !std::path::Path::new(rest).exists();
        return match scheme {
            "http" | "https" => None,
            "file" => is_folder.then(|| format!("{rest} is not there. Correct it")),
            _ => Some(format!("{scheme}:// is not known to uv. Write https://{rest}")),
        };
    }
    if std::path::Path::new(address).exists() {
        return None;
    }
    let is_path = address.starts_with(['.', '/', '~']);
    let address = address.rsplit('@').next().unwrap_or(address);
    let is_host = address.contains('.') && !address.contains(char::is_whitespace);
    Some(if !is_path && !is_host {
        "that is no address. Correct it: it begins with https://".to_owned()
    } else if is_path {
        format!("no folder {address} is there. Correct it, or write an address that begins with https://")
    } else {
        format!("that is no address: it has no https://. Write https://{address}")
    })
}

/// The address and the status of `HTTP status server error (500 Internal Server Error) for url (http://…)`.
pub(super) fn http_error<'t>(stderr: &'t str, side: &str) -> Option<(&'t str, &'t str)> {
    let (_, rest) = stderr.split_once(&format!("HTTP status {side} error ("))?;
    let (status, rest) = rest.split_once(") for url (")?;
    Some((rest.split(')').next()?, status))
}

/// `e.org:80` of `https://me:pw@e.org:80/simple`.
pub(super) fn host_of(address: &str) -> &str {
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    host.rsplit('@').next().unwrap_or(host)
}

/// The package of `Because rich was not found in the cache`.
fn missing_package(stderr: &str) -> Option<&str> {
    stderr.split_once(" was not found in the")?.0.split_whitespace().last()
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
