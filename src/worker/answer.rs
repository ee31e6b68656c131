//! What a worker answered, made into a result or a fault with a sentence.

use std::path::Path;

use serde_json::value::RawValue;

use super::stack::Stack;
use crate::outcome::{Code, Details, Fault, Lack};
use crate::protocol::{MAX_FRAME, WireError, wire_code};

/// Whether the answer says that the call was cancelled.
pub fn is_cancelled(answer: &Result<Box<RawValue>, WireError>) -> bool {
    matches!(answer, Err(error) if error.code == wire_code::CANCELLED)
}

/// The fault that a worker's error means for the caller of `tool`, which stands in `file`.
pub fn error_fault(tool: &str, file: &Path, error: &WireError) -> Fault {
    let details = Details {
        exception: error.detail("type").map(str::to_owned),
        traceback: error.detail("traceback").map(str::to_owned),
        lack: lack(error),
        ..Details::default()
    };
    let text = &error.message;
    // The traceback goes with the details, which a model may never be shown.
    let place = || {
        let stack = error.detail("traceback").map(Stack::of_traceback).filter(|stack| stack.enters(file));
        stack.and_then(|stack| stack.place(file)).map(|place| format!(" ({place})")).unwrap_or_default()
    };
    let (code, message) = match error.code {
        wire_code::INVALID_OUTPUT => (Code::InvalidOutput, format!("what {tool} returned cannot be passed on: {text}")),
        wire_code::MISSING_SECRET => (Code::MissingCredentials, missing_secret(tool, error)),
        wire_code::CANCELLED => (Code::Cancelled, format!("the call of {tool} was cancelled")),
        wire_code::EXHAUSTED => (Code::ResourceExhausted, exhausted(tool, error) + &place()),
        wire_code::BAD_ARGUMENT => (Code::InvalidParams, format!("{tool}: {text}")),
        wire_code::NO_FUNCTION => (Code::ToolNotFound, format!("{tool} is not in its file any more: {text}")),
        _ => (Code::ToolError, format!("{text}{}", place())),
    };
    Fault::new(code, message).with(details)
}

/// What an answer says was not there.
pub(super) fn lack(error: &WireError) -> Option<Lack> {
    let told = |key| error.detail(key).map(str::to_owned);
    let lacks = [
        told("module").map(Lack::Module),
        told("secret").map(Lack::Secret),
        told("undeclared").map(Lack::Declaration),
        told("variable").map(Lack::Variable),
    ];
    lacks.into_iter().flatten().next()
}

fn exhausted(tool: &str, error: &WireError) -> String {
    let what = match error.detail("resource") {
        Some("disk") => "found no room left on the disk; free some, or let it write elsewhere",
        Some("descriptors") => {
            "has too many files open; let it close them (`with open(…)`), or raise the limit of hostler's shell (`ulimit -n`)"
        }
        _ => "ran out of memory; give it less at once",
    };
    format!("{tool} {what}. {}", error.message)
}

fn missing_secret(tool: &str, error: &WireError) -> String {
    let name = error.detail("secret").unwrap_or("it needs");
    // Where to put it is for those to say who looked for it.
    format!("{tool} needs the secret {name}, which is not set")
}

/// The fault of a result that is longer than any may be.
pub fn oversized_fault(tool: &str, bytes: usize) -> Fault {
    let (size, limit) = (bytes / 1_000_000, MAX_FRAME / (1024 * 1024));
    let message = format!(
        "{tool} returned {size} MB and the limit is {limit} MB; write the result to a file and return its path, or return a \
         part of it"
    );
    Fault::new(Code::InvalidOutput, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_is_told_with_the_authors_line_and_one_from_elsewhere_without() {
        let told = |code| {
            let line =
                "  File \"/t/slow.py\", line 7, in fetch\n  File \"/usr/lib/python3.11/json.py\", line 9, in loads\n";
            let data = serde_json::json!({"traceback": line, "resource": "disk"});
            let error = WireError { code, message: "ValueError: no".to_owned(), data: Some(data) };
            ["/t/slow.py", "/t/other.py"].map(|file| error_fault("slow.fetch", Path::new(file), &error).message)
        };
        let place = " (slow.py:7 in fetch (inside json.py:9))";
        let [own, others] = told(-1);
        assert_eq!((own, others.as_str()), (format!("ValueError: no{place}"), "ValueError: no"));
        let [own, others] = told(wire_code::EXHAUSTED);
        assert!(own.ends_with(place) && !others.contains("slow.py"), "{own} {others}");
    }
}
