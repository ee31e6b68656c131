//! The same call by each face: MCP and the control face on streams, MCP over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Instant;

use crate::Fallible;
use crate::ground::{ADD, ADD_BY_RPC, Ground};
use crate::peer::{Peer, Streams};
use crate::question::{check, line, questions};
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};

/// The sides of a round.
const LINES: usize = 0;
const RPC: usize = 1;
const HTTP: usize = 2;

/// One call at a time.
pub fn faces(ground: &Ground) -> Fallible<Vec<Measured>> {
    let calls = ground.counts.calls;
    let mut lines = ground.hostler(Streams::Sockets)?;
    let mut rpc = Peer::spawn(ground.serve("one").arg("--rpc"), Streams::Sockets)?;
    rpc.ask_once(ADD_BY_RPC)?;
    let mut http = Site::open(ground)?;
    http.ask(1)?;
    let mut rounds = Rounds::<3>::new();
    for _ in 0..ground.counts.rounds {
        rounds.push([
            p50(&lines.ask_in_turn(ADD, calls)?),
            p50(&rpc.ask_in_turn(ADD_BY_RPC, calls)?),
            http.ask(calls)?,
        ]);
    }
    let row = |what: &str, side: usize, most: f64| {
        let from = format!("{} µs − {} µs", rounded(rounds.of(side)), rounded(rounds.of(LINES)));
        Measured::against(what, rounds.difference(side, LINES), " µs", Target::AtMost(most), Target::Open).from(from)
    };
    Ok(vec![
        row("ExecuteTool over a socket p50 − tools/call", RPC, 20.0),
        row("MCP over HTTP p50 − on streams", HTTP, 60.0),
    ])
}

/// hostler's HTTP server, and a connection to it.
struct Site {
    process: Child,
    connection: BufReader<TcpStream>,
    head: String,
    asked: u64,
}

impl Site {
    fn open(ground: &Ground) -> Fallible<Self> {
        let state = ground.folder("state");
        let mut serve = ground.serve("one");
        serve.args(["--http", "127.0.0.1:0"]).env("XDG_STATE_HOME", &state).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut process = serve.spawn()?;
        let mut said = BufReader::new(process.stderr.take().ok_or("no standard error")?).lines();
        let address = loop {
            let line = said.next().ok_or("hostler ended")??;
            if let Some((_, address)) = line.split_once("served at http://") {
                break address.to_owned();
            }
        };
        std::thread::spawn(move || said.for_each(drop));
        let token =
            ground.command(env!("CARGO_BIN_EXE_hostler")).arg("token").env("XDG_STATE_HOME", &state).output()?;
        let token = String::from_utf8(token.stdout)?;
        let connection = TcpStream::connect(&address)?;
        connection.set_nodelay(true)?;
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\n",
            token.trim()
        );
        let mut site = Self { process, connection: BufReader::new(connection), head, asked: 0 };
        let client = serde_json::json!({"name": "budgets", "version": "1"});
        let params = serde_json::json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let hello = serde_json::json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let (session, _) = site.post(&line(&hello))?;
        site.head.push_str(&["Mcp-Session-Id: ", &session.ok_or("no session")?, "\r\n"].concat());
        Ok(site)
    }

    /// One question after the other; the median in microseconds.
    fn ask(&mut self, count: usize) -> Fallible<f64> {
        let first = self.asked + 1;
        self.asked += u64::try_from(count)?;
        let questions = questions(ADD, first..self.asked + 1)?;
        let (mut times, mut answers) = (Vec::with_capacity(count), Vec::with_capacity(count * 512));
        for question in &questions {
            let began = Instant::now();
            let (_, answer) = self.post(&question.frame)?;
            times.push(began.elapsed());
            answers.extend(answer);
            answers.push(b'\n');
        }
        check(ADD, &questions, &answers)?;
        Ok(p50(&times))
    }

    /// The session of the answer, if it begins one, and its body.
    fn post(&mut self, body: &[u8]) -> Fallible<(Option<String>, Vec<u8>)> {
        let mut request = format!("{}Content-Length: {}\r\n\r\n", self.head, body.len()).into_bytes();
        request.extend_from_slice(body);
        self.connection.get_mut().write_all(&request)?;
        let (mut length, mut session) = (0, None);
        loop {
            let mut line = String::new();
            self.connection.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            match name {
                "content-length" => length = value.parse()?,
                "mcp-session-id" => session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut answer = vec![0; length];
        self.connection.read_exact(&mut answer)?;
        Ok((session, answer))
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
