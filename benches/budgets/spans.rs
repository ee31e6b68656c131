//! What it costs a warm call that its span is exported to a collector, which runs on the same processor.

use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::net::{TcpListener, TcpStream};
use std::thread;

use hostler::bench::{flush_spans, span_counts};

use crate::Fallible;
use crate::clock::on_one_processor;
use crate::ground::Ground;
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};
use crate::watch::in_turn;

pub fn spans(ground: &Ground) -> Fallible<Vec<Measured>> {
    on_one_processor(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(measured(ground))
    })
}

async fn measured(ground: &Ground) -> Fallible<Vec<Measured>> {
    let address = collector()?;
    let silent = ground.builder("one").open()?;
    let endpoint = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", address.as_str());
    let exporting = ground.builder_with("one", &[endpoint]).open()?;
    let calls = ground.counts.calls;
    in_turn(&silent, calls).await?;
    in_turn(&exporting, calls).await?;
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds {
        rounds.push([p50(&in_turn(&silent, calls).await?), p50(&in_turn(&exporting, calls).await?)]);
    }
    silent.close().await;
    exporting.close().await;
    flush_spans();
    let (exported, dropped) = span_counts();
    let ended = (calls * (ground.counts.rounds + 1)) as u64;
    if exported != ended || dropped != 0 {
        return Err(format!("of {ended} spans, {exported} were exported and {dropped} dropped").into());
    }
    let from = format!("{} µs ÷ {} µs", rounded(rounds.of(1)), rounded(rounds.of(0)));
    let row = Measured::against(
        "warm call whose span is exported ÷ one whose is not",
        rounds.ratio(1, 0),
        "",
        Target::AtMost(1.1),
        Target::AtMost(1.05),
    );
    Ok(vec![row.from(from)])
}

/// Takes every request until the bench ends; returns its address.
fn collector() -> Fallible<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = format!("http://{}/v1/traces", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || take(&stream));
        }
    });
    Ok(address)
}

fn take(mut stream: &TcpStream) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut length = 0;
    let mut line = String::new();
    while reader.read_line(&mut line)? > 0 {
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap_or(0);
        }
        if line == "\r\n" {
            copy(&mut (&mut reader).take(length), &mut sink())?;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
        line.clear();
    }
    Ok(())
}
