//! Questions with known answers, in each dialect that is measured.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

use hostler::bench::CallFrame;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::Fallible;

/// How a question is put.
#[derive(Debug, Clone, Copy)]
pub enum Dialect<'a> {
    /// `tools/call` of this tool, in a session that was opened by `initialize`.
    Mcp(&'a str),
    /// The same in a session without a handshake, where every request says who asks.
    Inline(&'a str),
    /// `tools/call` of this tool, with 10 KB of text among its arguments.
    Long(&'a str),
    /// `ExecuteTool` of this tool.
    Rpc(&'a str),
    /// The frame that hostler writes to a worker.
    Worker,
}

/// A question, and the answer that is right.
#[derive(Debug)]
pub struct Question {
    pub frame: Vec<u8>,
    id: u64,
    sum: i64,
}

/// Questions for one measurement. Made before the clock runs.
pub fn questions(dialect: Dialect<'_>, ids: Range<u64>) -> Fallible<Vec<Question>> {
    ids.map(|id| question(dialect, id)).collect()
}

/// One question about two numbers that nobody can guess.
pub fn question(dialect: Dialect<'_>, id: u64) -> Fallible<Question> {
    let (a, b) = (random(), random());
    let frame = match dialect {
        Dialect::Mcp(name) => call(id, &json!({"name": name, "arguments": {"a": a, "b": b}})),
        Dialect::Inline(name) => {
            call(id, &json!({"_meta": inline_meta(), "name": name, "arguments": {"a": a, "b": b}}))
        }
        Dialect::Long(name) => {
            call(id, &json!({"name": name, "arguments": {"a": a, "b": b, "text": "x".repeat(10_000)}}))
        }
        Dialect::Rpc(name) => {
            let input = json!({"a": a, "b": b}).to_string();
            let params = json!({"name": name, "input_json": input});
            line(&json!({"jsonrpc": "2.0", "id": id, "method": "ExecuteTool", "params": params}))
        }
        Dialect::Worker => worker_frame(id, a, b)?,
    };
    Ok(Question { frame, id, sum: a + b })
}

fn random() -> i64 {
    // The standard library's only source of randomness, and a fresh one each time.
    i64::try_from(RandomState::new().hash_one(0_u8) >> 24).unwrap_or_default()
}

fn call(id: u64, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// What the official Python client says with every request of this revision.
fn inline_meta() -> Value {
    let client = json!({"name": "budgets", "version": "1"});
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": client,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

fn worker_frame(id: u64, a: i64, b: i64) -> Fallible<Vec<u8>> {
    let kwargs = RawValue::from_string(json!({"a": a, "b": b}).to_string())?;
    let nothing = RawValue::from_string("{}".to_owned())?;
    let (config, secrets) = (&*nothing, &*nothing);
    let call_id = format!("656b1c0de-{id}");
    let call = CallFrame {
        id,
        function: "add",
        kwargs: &kwargs,
        config,
        secrets,
        call_id: &call_id,
        deadline_ms: 300_000,
        trace: None,
        tags: &[],
        session: 7,
    };
    Ok(call.frame())
}

/// A value as a line.
pub fn line(value: &Value) -> Vec<u8> {
    let mut line = value.to_string().into_bytes();
    line.push(b'\n');
    line
}

/// Checks answers, one line each and in any order, against their questions.
pub fn check(dialect: Dialect<'_>, questions: &[Question], answers: &[u8]) -> Fallible<()> {
    let mut right = 0;
    for line in answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let answer: Value = serde_json::from_slice(line)?;
        let place = answer["id"].as_u64().zip(questions.first()).and_then(|(id, first)| id.checked_sub(first.id));
        let question = place.and_then(|place| questions.get(usize::try_from(place).ok()?));
        let question = question.ok_or_else(|| format!("an answer to no question: {answer}"))?;
        let sum = match dialect {
            Dialect::Mcp(_) | Dialect::Inline(_) | Dialect::Long(_) => &answer["result"]["structuredContent"]["result"],
            Dialect::Rpc(_) => &answer["result"]["output_json"],
            Dialect::Worker => &answer["result"],
        };
        let sum = sum.as_i64().or_else(|| sum.as_str()?.parse().ok());
        if sum != Some(question.sum) {
            return Err(format!("wrong: {} was expected, and the answer is {answer}", question.sum).into());
        }
        right += 1;
    }
    if right == questions.len() {
        Ok(())
    } else {
        Err(format!("{right} answers to {} questions", questions.len()).into())
    }
}
