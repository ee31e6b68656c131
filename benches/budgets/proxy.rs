//! What the proxy of a sandbox adds to a connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use hostler::bench::Proxying;

use crate::Fallible;
use crate::ground::Ground;
use crate::sample::{Rounds, p50};
use crate::table::{Measured, Target, rounded};

/// Connections to a server of this machine that answers a byte, through the proxy and directly.
pub fn proxy(ground: &Ground) -> Fallible<Vec<Measured>> {
    let (server, socket) = (listening()?, listening()?);
    let (host, proxy) = (server.local_addr()?, socket.local_addr()?);
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            std::thread::spawn(move || {
                let mut byte = [0];
                stream.read_exact(&mut byte).and_then(|()| stream.write_all(&byte))
            });
        }
    });
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async move {
            let _proxy = Proxying::serve(socket, &["127.0.0.1"]);
            std::future::pending::<std::io::Result<()>>().await
        })
    });
    let calls = (ground.counts.calls / 50).max(50);
    let mut rounds = Rounds::<2>::new();
    for _ in 0..ground.counts.rounds.min(9) {
        let direct = timed(calls, || TcpStream::connect(host).map_err(Into::into))?;
        let through = timed(calls, || tunnel(proxy, host))?;
        rounds.push([p50(&direct), p50(&through)]);
    }
    let raw = format!("{} − {} µs", rounded(rounds.of(1)), rounded(rounds.of(0)));
    let name = "connection through the proxy of a sandbox − directly";
    Ok(vec![
        Measured::against(name, rounds.difference(1, 0), " µs", Target::AtMost(100.0), Target::AtMost(100.0)).from(raw),
    ])
}

fn listening() -> Fallible<TcpListener> {
    Ok(TcpListener::bind("127.0.0.1:0")?)
}

fn timed(calls: usize, open: impl Fn() -> Fallible<TcpStream>) -> Fallible<Vec<Duration>> {
    let once = || {
        let began = Instant::now();
        let mut stream = open()?;
        let mut byte = [0];
        stream.write_all(b"x")?;
        stream.read_exact(&mut byte)?;
        Ok(began.elapsed())
    };
    (0..calls).map(|_| once()).collect()
}

fn tunnel(proxy: SocketAddr, host: SocketAddr) -> Fallible<TcpStream> {
    let mut stream = TcpStream::connect(proxy)?;
    stream.set_nodelay(true)?;
    stream.write_all(format!("CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes())?;
    let (mut head, mut piece) = (Vec::new(), [0; 512]);
    while !head.ends_with(b"\r\n\r\n") {
        let got = stream.read(&mut piece)?;
        if got == 0 {
            return Err("the proxy left".into());
        }
        head.extend_from_slice(&piece[..got]);
    }
    if head.starts_with(b"HTTP/1.1 200 ") { Ok(stream) } else { Err(String::from_utf8_lossy(&head).into()) }
}
