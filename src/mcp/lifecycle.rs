//! How a session begins and what its requests must carry: `initialize` up to 2025-11-25, metadata in every request from
//! 2026-07-28 on.

use rmcp::ErrorData;
use rmcp::model::{
    DiscoverResult, Icon, Implementation, InitializeRequestParams, InitializeResult, JsonObject, ProtocolVersion,
    RequestMetaObject, ServerCapabilities, TASKS_EXTENSION_ID,
};
use serde_json::json;

use super::client::Abilities;
use crate::config::mcp::Mcp;

/// The first revision without a handshake.
const MODERN: ProtocolVersion = ProtocolVersion::V_2026_07_28;

/// Whether this revision of the protocol is served.
pub fn is_known_revision(revision: &str) -> bool {
    ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == revision)
}

/// How a session began.
#[derive(Debug, Clone)]
pub(super) enum Era {
    /// Not decided yet; `server/discover` and `ping` do not decide it.
    Undecided,
    /// By `initialize`: requests need no metadata.
    Handshake {
        /// The agreed parameters.
        client: Box<InitializeRequestParams>,
    },
    /// By a request with complete metadata, which every later request needs as well.
    Inline,
}

/// The rules for a request, from its metadata and its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    /// Revisions with a handshake: plain results; the server may send requests.
    Legacy,
    /// 2026-07-28: results name their type, and cacheable results their lifetime.
    Modern,
}

impl Era {
    /// The rules for a request, or why it is refused. The first valid request of a session without a handshake opens it.
    pub fn admit(&mut self, method: &str, meta: &RequestMetaObject) -> Result<Rules, ErrorData> {
        let version = meta.protocol_version();
        let is_inline = matches!(self, Self::Undecided | Self::Inline) || method == "server/discover";
        let is_modern = is_inline || version.as_ref().is_some_and(|version| !version.has_initialize());
        if is_modern {
            let missing = meta.missing_required_keys(&MODERN);
            if !missing.is_empty() {
                let message =
                    format!("request _meta is missing or has malformed required fields: {}", missing.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
        }
        if let Some(version) = version.filter(|version| !ProtocolVersion::KNOWN_VERSIONS.contains(version)) {
            return Err(ErrorData::unsupported_protocol_version(version, ProtocolVersion::KNOWN_VERSIONS));
        }
        if matches!(self, Self::Undecided) && method != "server/discover" {
            *self = Self::Inline;
        }
        Ok(if is_modern { Rules::Modern } else { Rules::Legacy })
    }

    /// Answers `initialize` with the client's revision if it has a handshake, else with the newest revision that has one.
    pub fn initialize(&mut self, mut client: InitializeRequestParams, about: InitializeResult) -> InitializeResult {
        let asked = &client.protocol_version;
        let is_known = asked.has_initialize() && ProtocolVersion::KNOWN_VERSIONS.contains(asked);
        let agreed = if is_known { asked.clone() } else { ProtocolVersion::LATEST_WITH_INITIALIZE };
        client.protocol_version = agreed.clone();
        *self = Self::Handshake { client: Box::new(client) };
        let mut result = about;
        result.protocol_version = agreed;
        result
    }

    /// What the client can do for tools, if anything.
    pub fn abilities(&self, meta: &RequestMetaObject) -> Option<Abilities> {
        let abilities = meta.client_capabilities().as_ref().map(Abilities::of).or_else(|| match self {
            Self::Handshake { client } => Some(Abilities::of(&client.capabilities)),
            _ => None,
        });
        abilities.filter(|abilities| abilities.any())
    }

    /// The client's name and version.
    pub fn client_name(&self, meta: &RequestMetaObject) -> Option<String> {
        let named = |info: &Implementation| format!("{} {}", info.name, info.version);
        meta.client_info().as_ref().map(named).or_else(|| match self {
            Self::Handshake { client } => Some(named(&client.client_info)),
            _ => None,
        })
    }
}

/// The answer to `server/discover`.
pub(super) fn discover(mut about: InitializeResult, has_tasks: bool) -> DiscoverResult {
    if has_tasks {
        let extensions = about.capabilities.extensions.get_or_insert_default();
        extensions.insert(TASKS_EXTENSION_ID.to_owned(), JsonObject::default());
    }
    DiscoverResult::from_server_info(ProtocolVersion::KNOWN_VERSIONS.to_vec(), about)
}

/// hostler's server information, as the operator presents it.
pub(super) fn about(settings: &Mcp) -> InitializeResult {
    // All are offered always: the next file may bring the first resource or prompt.
    let offered = json!({
        "tools": {"listChanged": true}, "resources": {"listChanged": true, "subscribe": true}, "prompts": {"listChanged": true}, "completions": {},
        "logging": {},
    });
    let capabilities: ServerCapabilities = serde_json::from_value(offered).unwrap_or_default();
    let mut about = InitializeResult::new(capabilities);
    about.server_info = Implementation::new("hostler", env!("CARGO_PKG_VERSION"));
    about.server_info.title.clone_from(&settings.title);
    about.server_info.icons = settings.icon.clone().map(|address| vec![Icon::new(address)]);
    about.instructions.clone_from(&settings.instructions);
    about
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::ErrorCode;

    fn meta(value: serde_json::Value) -> RequestMetaObject {
        serde_json::from_value(value).unwrap()
    }

    fn modern() -> RequestMetaObject {
        meta(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }))
    }

    fn hello(version: &str) -> InitializeRequestParams {
        let hello =
            json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
        serde_json::from_value(hello).unwrap()
    }

    #[test]
    fn a_handshake_agrees_on_a_revision_that_has_one() {
        for (asked, agreed) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-11-25", "2025-11-25"),
            ("2026-07-28", "2025-11-25"),
            ("x", "2025-11-25"),
        ] {
            let (mut era, about) = (Era::Undecided, InitializeResult::default());
            assert_eq!(era.initialize(hello(asked), about).protocol_version.as_str(), agreed, "{asked}");
            assert_eq!(era.admit("tools/list", &RequestMetaObject::default()), Ok(Rules::Legacy));
            assert_eq!(era.client_name(&RequestMetaObject::default()).as_deref(), Some("a 1"));
        }
    }

    #[test]
    fn a_request_that_says_all_opens_a_session_and_discover_leaves_it_open() {
        let mut era = Era::Undecided;
        assert_eq!(era.admit("server/discover", &modern()), Ok(Rules::Modern));
        assert!(matches!(era, Era::Undecided));
        assert_eq!(era.admit("tools/list", &modern()), Ok(Rules::Modern));
        assert!(matches!(era, Era::Inline));
        let missing = era.admit("tools/list", &RequestMetaObject::default()).unwrap_err();
        assert_eq!(missing.code, ErrorCode::INVALID_PARAMS);
    }

    #[test]
    fn a_revision_of_the_future_is_refused_with_those_that_are_known() {
        let mut era = Era::Undecided;
        era.initialize(hello("2025-06-18"), InitializeResult::default());
        let future = meta(json!({
            "io.modelcontextprotocol/protocolVersion": "2031-01-01",
            "io.modelcontextprotocol/clientCapabilities": {},
        }));
        let error = era.admit("tools/call", &future).unwrap_err();
        assert_eq!(error.code, ErrorCode::UNSUPPORTED_PROTOCOL_VERSION);
        assert_eq!(era.admit("tools/call", &modern()), Ok(Rules::Modern), "in a session with a handshake, too");
    }
}
