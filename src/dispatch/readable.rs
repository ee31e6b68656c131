//! Results that are JSON and that ordinary readers of it refuse, and with it the whole message they stand in: no caller
//! gets one, be it a client, a person or another tool.

use serde_json::Value;
use serde_json::value::RawValue;

use super::deep::{TOO_DEEP, is_too_deep};
use crate::outcome::{Code, Fault};

/// Passes a result on, unchanged, when its callers can read it.
pub(super) fn check(tool: &str, raw: Box<RawValue>) -> Result<Box<RawValue>, Fault> {
    if is_readable(raw.get()) {
        return Ok(raw);
    }
    match serde_json::from_str::<Value>(raw.get()) {
        Ok(_) => Ok(raw),
        Err(error) => {
            let message = if is_too_deep(&error) {
                format!("what {tool} returned is {TOO_DEEP}, which is as deep as callers read; flatten it")
            } else {
                format!(
                    "what {tool} returned is JSON that its callers cannot read: {error}; return it in a simpler shape"
                )
            };
            Err(Fault::new(Code::InvalidOutput, message))
        }
    }
}

/// Whether JSON can be told at a glance to be what everybody can read: not deep, no exponents, no number beyond every
/// type, no escapes of half a character. What cannot is looked at closely.
fn is_readable(json: &str) -> bool {
    let (mut depth, mut in_string, mut escaped, mut last, mut digits) = (0_usize, false, false, 0_u8, 0_usize);
    for byte in json.bytes() {
        if in_string {
            if escaped && byte == b'u' {
                return false;
            }
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else {
            match byte {
                b'"' => in_string = true,
                b'[' | b'{' => depth += 1,
                b']' | b'}' => depth = depth.saturating_sub(1),
                b'e' | b'E' if last.is_ascii_digit() => return false,
                _ => {}
            }
            digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
            if depth > DEEPEST || digits > LONGEST {
                return false;
            }
        }
        last = byte;
    }
    true
}

/// Readers of JSON stop somewhere beyond a hundred levels.
const DEEPEST: usize = 100;

/// Numbers of more digits may be beyond 1.8e308, which many readers refuse, and with it the whole answer.
const LONGEST: usize = 300;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Incoming, parse};

    #[test]
    fn a_glance_lets_nothing_pass_that_a_reader_may_refuse() {
        assert!(is_readable("{\"e\": \"1e9 [[[ \\\" \", \"b\": true}"));
        assert!(!is_readable("[1e9]") && !is_readable("\"\\u0041\""));
    }

    #[test]
    fn what_ordinary_readers_refuse_is_refused_and_everything_else_passes() {
        let levels = |many: usize| format!("{}{}", "[".repeat(many), "]".repeat(many));
        let refused = ["\"\\ud800\"", "[\"\\udc00\\ud800\"]", "1e400", "-1E400", &"9".repeat(400), &levels(100_000)];
        let passed = ["{\"a\":1,\"a\":2}", "1e-400", "\"\\ud83d\\ude82\"", &"9".repeat(299), &levels(100)];
        for (text, is_fine) in refused.map(|text| (text, false)).into_iter().chain(passed.map(|text| (text, true))) {
            let frame = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{text}}}");
            let Ok(Incoming::Reply { answer: Ok(raw), .. }) = parse(frame.as_bytes()) else {
                panic!("no reply: {frame}")
            };
            let checked = check("a.b", raw);
            assert_eq!(checked.as_ref().err().map(|fault| fault.code), (!is_fine).then_some(Code::InvalidOutput));
            // Whatever is passed on can be read where it will stand.
            let stands = checked.map(|raw| format!("{{\"result\":{{\"structuredContent\":{{\"result\":{raw}}}}}}}"));
            assert!(stands.is_err() || serde_json::from_str::<Value>(&stands.unwrap()).is_ok(), "{text}");
        }
    }
}
