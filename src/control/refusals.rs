//! Errors of methods: a code of JSON-RPC for its libraries, and a word in `data.code` for programs.

use jsonrpsee::types::ErrorObjectOwned;
use jsonrpsee::types::error::{INTERNAL_ERROR_CODE, INVALID_PARAMS_CODE};
use serde_json::json;

use super::table::{Entry, Scope};
use crate::outcome::{Code, Fault};

/// JSON-RPC's code for errors of the server's own.
const REFUSED: i32 = -32000;

fn error(number: i32, code: &str, message: impl Into<String>) -> ErrorObjectOwned {
    ErrorObjectOwned::owned(number, message, Some(json!({"code": code})))
}

/// The parameters are not those of the method.
pub(super) fn invalid_params(source: &dyn std::fmt::Display) -> ErrorObjectOwned {
    error(INVALID_PARAMS_CODE, Code::InvalidParams.word(), format!("invalid parameters: {source}"))
}

/// An answer cannot be written.
pub(super) fn internal(source: &dyn std::fmt::Display) -> ErrorObjectOwned {
    error(INTERNAL_ERROR_CODE, Code::SystemError.word(), format!("the answer cannot be written: {source}"))
}

/// The client's token does not allow the method.
pub(super) fn forbidden(entry: &Entry, needed: Scope) -> ErrorObjectOwned {
    let message = format!("`{}` needs a token of the scope `{}`", entry.name, needed.word());
    error(REFUSED, "FORBIDDEN", message)
}

/// The method needs a session, which the connection has not opened.
pub(super) fn no_session() -> ErrorObjectOwned {
    let message = "this connection has no session; begin it with `session.open`, which names a folder and variables";
    error(REFUSED, "NO_SESSION", message)
}

/// The method is followed by notifications, which nothing would carry.
pub(super) fn no_way_back(entry: &Entry) -> ErrorObjectOwned {
    let message = format!("`{}` needs a connection that stays: a WebSocket, or the Unix socket", entry.name);
    error(REFUSED, "NEEDS_CONNECTION", message)
}

/// The page needs HTTP, which is not served.
pub(super) fn no_http() -> ErrorObjectOwned {
    let message = "HTTP is not served here, or its address is taken; see `listen` under `[control]`";
    error(REFUSED, "NO_HTTP", message)
}

/// There is no such thing.
pub(super) fn not_found(message: impl Into<String>) -> ErrorObjectOwned {
    error(REFUSED, "NOT_FOUND", message)
}

/// What was decided cannot be saved.
pub(super) fn not_saved(source: &dyn std::fmt::Display) -> ErrorObjectOwned {
    error(REFUSED, Code::SystemError.word(), format!("{source}; nothing was decided"))
}

/// The mode cannot be changed.
pub(super) fn not_changed(source: &std::io::Error) -> ErrorObjectOwned {
    let is_forbidden = source.get_ref().is_some() && source.kind() == std::io::ErrorKind::PermissionDenied;
    let code = if is_forbidden { Code::PermissionDenied } else { Code::SystemError };
    error(REFUSED, code.word(), format!("the mode cannot be changed: {source}"))
}

/// The configuration cannot be read any more.
pub(super) fn unusable(source: &dyn std::fmt::Display) -> ErrorObjectOwned {
    let message = format!("the mode is changed, and counts once the configuration can be read: {source}");
    error(REFUSED, Code::SystemError.word(), message)
}

/// The call goes on, but not here.
pub(super) fn elsewhere(call: &str) -> ErrorObjectOwned {
    let message = format!(
        "the call {call} goes on in another hostler, and its end cannot be written down; cancel it where it runs"
    );
    error(REFUSED, "RUNS_ELSEWHERE", message)
}

/// A fault that is not the outcome of a call.
pub(super) fn of_fault(fault: &Fault) -> ErrorObjectOwned {
    let data = json!({"code": fault.code.word(), "details": fault.details});
    ErrorObjectOwned::owned(REFUSED, fault.message.clone(), Some(data))
}
