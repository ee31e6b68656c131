//! A process that answers lines with lines, asked without a runtime of our own between it and the clock.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Fallible;
use crate::question::{Dialect, Question, check, line, question, questions};

/// What the peer's standard input and output are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// As Python clients have it.
    Pipes,
    /// As Node clients have it.
    Sockets,
}

/// A running peer. Dropped, it reads the end of its input and is then waited for.
pub struct Peer {
    process: Child,
    input: Option<File>,
    output: BufReader<File>,
    next_id: u64,
}

impl Peer {
    pub fn spawn(command: &mut Command, streams: Streams) -> Fallible<Self> {
        let (process, input, output): (Child, OwnedFd, OwnedFd) = match streams {
            Streams::Pipes => {
                let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
                let input = process.stdin.take().ok_or("no standard input")?;
                let output = process.stdout.take().ok_or("no standard output")?;
                (process, input.into(), output.into())
            }
            Streams::Sockets => {
                let ((input, its_input), (output, its_output)) = (UnixStream::pair()?, UnixStream::pair()?);
                let (its_input, its_output) = (OwnedFd::from(its_input), OwnedFd::from(its_output));
                let process = command.stdin(its_input).stdout(its_output).spawn()?;
                // The command keeps its ends otherwise, and the end of the file never comes.
                command.stdin(Stdio::null()).stdout(Stdio::null());
                (process, input.into(), output.into())
            }
        };
        let output = BufReader::with_capacity(64 * 1024, File::from(output));
        Ok(Self { process, input: Some(input.into()), output, next_id: 1 })
    }

    /// An MCP server that has been greeted.
    pub fn mcp(command: &mut Command, streams: Streams) -> Fallible<Self> {
        let mut peer = Self::spawn(command, streams)?;
        peer.greet()?;
        Ok(peer)
    }

    /// Says hello as MCP clients do.
    pub fn greet(&mut self) -> Fallible<()> {
        let client = json!({"name": "budgets", "version": "1"});
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        self.request("initialize", &params)?;
        self.write(&line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})))
    }

    /// One request and its result.
    pub fn request(&mut self, method: &str, params: &Value) -> Fallible<Value> {
        Ok(self.request_timed(method, params)?.0)
    }

    /// The same, and when the answer was here: reading what a long one says takes time of its own.
    pub fn request_timed(&mut self, method: &str, params: &Value) -> Fallible<(Value, Instant)> {
        let id = self.take_ids(1);
        self.write(&line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})))?;
        loop {
            let mut text = Vec::new();
            self.read_line(&mut text)?;
            let arrived = Instant::now();
            let mut answer: Value = serde_json::from_slice(&text)?;
            if answer["id"] != id {
                continue;
            }
            return match answer["result"].take() {
                Value::Null => Err(format!("{method}: {answer}").into()),
                result => Ok((result, arrived)),
            };
        }
    }

    /// Asks once, so that what is measured afterwards is warm. Returns how long it took.
    pub fn ask_once(&mut self, dialect: Dialect<'_>) -> Fallible<Duration> {
        Ok(self.ask_in_turn(dialect, 1)?.first().copied().unwrap_or_default())
    }

    /// One question after the other; how long each took.
    pub fn ask_in_turn(&mut self, dialect: Dialect<'_>, count: usize) -> Fallible<Vec<Duration>> {
        let questions = self.questions(dialect, count)?;
        let (mut times, mut answers) = (Vec::with_capacity(count), Vec::with_capacity(count * 512));
        for question in &questions {
            let began = Instant::now();
            self.write(&question.frame)?;
            self.read_line(&mut answers)?;
            times.push(began.elapsed());
        }
        check(dialect, &questions, &answers)?;
        Ok(times)
    }

    /// Many questions with `depth` of them under way; answers per second.
    pub fn ask_ahead(&mut self, dialect: Dialect<'_>, count: usize, depth: usize) -> Fallible<f64> {
        let questions = self.questions(dialect, count)?;
        self.ask_all_ahead(dialect, &questions, depth)
    }

    /// The same over several tools in turn.
    pub fn ask_ahead_over(&mut self, tools: &[String], count: usize, depth: usize) -> Fallible<f64> {
        let first = self.take_ids(count);
        let asked = (first..).zip(tools.iter().cycle()).take(count);
        let questions = asked.map(|(id, tool)| question(Dialect::Mcp(tool), id)).collect::<Fallible<Vec<_>>>()?;
        self.ask_all_ahead(Dialect::Mcp(""), &questions, depth)
    }

    fn ask_all_ahead(&mut self, dialect: Dialect<'_>, questions: &[Question], depth: usize) -> Fallible<f64> {
        let frames = |from: usize, to: usize| -> Vec<u8> {
            questions[from..to].iter().flat_map(|question| question.frame.iter().copied()).collect()
        };
        let mut answers = Vec::with_capacity(questions.len() * 512);
        let began = Instant::now();
        let (mut sent, mut answered) = (depth.min(questions.len()), 0);
        self.write(&frames(0, sent))?;
        while answered < questions.len() {
            let came = self.output.fill_buf()?;
            if came.is_empty() {
                return Err("the peer closed its output".into());
            }
            let whole = came.split(|byte| *byte == b'\n').count() - 1;
            let length = came.len();
            answers.extend_from_slice(came);
            self.output.consume(length);
            answered += whole;
            let next = (sent + whole).min(questions.len());
            self.write(&frames(sent, next))?;
            sent = next;
        }
        let seconds = began.elapsed().as_secs_f64();
        check(dialect, questions, &answers)?;
        Ok(f64::from(u32::try_from(questions.len())?) / seconds)
    }

    /// A line as it comes.
    pub fn read_line(&mut self, into: &mut Vec<u8>) -> Fallible<()> {
        match self.output.read_until(b'\n', into)? {
            0 => Err("the peer closed its output".into()),
            _ => Ok(()),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> Fallible<()> {
        let input = self.input.as_mut().ok_or("closed")?;
        Ok(input.write_all(bytes)?)
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    fn questions(&mut self, dialect: Dialect<'_>, count: usize) -> Fallible<Vec<Question>> {
        let first = self.take_ids(count);
        questions(dialect, first..self.next_id)
    }

    fn take_ids(&mut self, count: usize) -> u64 {
        let first = self.next_id;
        self.next_id += u64::try_from(count).unwrap_or_default();
        first
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.input = None;
        for _ in 0..300 {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
