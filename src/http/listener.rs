//! Accepts connections, within limits.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::face::{FAREWELL, Face};
#[cfg(feature = "grpc")]
use super::grpc::{self, Door};
use super::guard::Guard;
use super::mcp::Peers;
use super::routes::{Server, route};
use super::seats::{Seat, Seats};
use super::tokens::{TokenError, Tokens};
use crate::config::Environment;

/// How long the head of a request may take, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(15);
/// The longest head of a request.
const LONGEST_HEAD: usize = 64 << 10;
/// The pause between attempts to listen where another process does.
const AGAIN: Duration = Duration::from_secs(1);
/// The pause after a connection could not be accepted: too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

/// Why HTTP is not served.
#[derive(Debug, thiserror::Error)]
pub enum Unserved {
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {source}")]
    Taken {
        /// The address.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// There are no tokens that requests could be compared with.
    #[error(transparent)]
    Tokens(#[from] TokenError),
}

/// A server that has an address, and answers nothing yet.
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
    tokens: Tokens,
}

impl Listener {
    /// Listens at an address.
    pub async fn at(address: SocketAddr, environment: &Environment) -> Result<Self, Unserved> {
        let tokens = Tokens::of(environment)?;
        let failed = |source| Unserved::Taken { address, source };
        let socket = TcpListener::bind(address).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address, tokens })
    }

    /// The same as soon as the address is free: another hostler may have it that ends soon.
    pub async fn once_free(address: SocketAddr, environment: &Environment) -> Self {
        let mut is_said = false;
        loop {
            match Self::at(address, environment).await {
                Ok(listener) => return listener,
                Err(error) if !std::mem::replace(&mut is_said, true) => {
                    tracing::warn!(%error, "HTTP is not served; another attempt follows each second");
                }
                Err(_) => {}
            }
            sleep(AGAIN).await;
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves everybody who has a token, until it is dropped, or the face is closed and running calls had their time.
    pub async fn serve(self, face: Arc<Face>, origins: Vec<String>) {
        let Self { socket, address, tokens } = self;
        tracing::info!(%address, "HTTP is served");
        face.control().listens_at(address);
        let guard = Guard::new(address.port(), origins);
        let server = Arc::new(Server { face, guard, tokens, mcp: Peers::default() });
        // Ends them with this.
        let mut connections = JoinSet::new();
        tokio::select! {
            () = accept(&socket, &server, &mut connections) => {}
            () = server.mcp.sweep() => {}
            () = server.face.control().closed() => {}
        }
        drop(socket);
        let _ = timeout(FAREWELL, async { while connections.join_next().await.is_some() {} }).await;
    }
}

async fn accept(socket: &TcpListener, server: &Arc<Server>, connections: &mut JoinSet<()>) {
    let seats = Seats::new();
    loop {
        let Some(vacant) = seats.next().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, Arc::clone(server), vacant.take()));
            }
            Err(error) => {
                tracing::warn!(%error, "a connection cannot be accepted");
                sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Serves a connection, unless it loses its seat. A WebSocket that it becomes keeps it.
async fn connection(stream: TcpStream, server: Arc<Server>, seat: Arc<Seat>) {
    let _ = stream.set_nodelay(true);
    tokio::select! {
        ended = serve(stream, server, Arc::clone(&seat)) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection ended");
            }
        }
        () = seat.lost() => tracing::debug!("a connection that had shown no token made room for another"),
    }
}

async fn serve(stream: TcpStream, server: Arc<Server>, seat: Arc<Seat>) -> Result<(), hyper::Error> {
    let control = Arc::clone(server.face.control());
    #[cfg(feature = "grpc")]
    tokio::select! {
        known = grpc::is_http2(&stream) => match known {
            Ok(true) => return grpc::serve(stream, Door::Port(server, seat)).await,
            Ok(false) => {}
            // It said nothing, or left.
            Err(_) => return Ok(()),
        },
        () = control.closed() => return Ok(()),
    }
    let service = service_fn(move |mut request: Request<Incoming>| {
        let server = Arc::clone(&server);
        request.extensions_mut().insert(Arc::clone(&seat));
        async move { Ok::<_, std::convert::Infallible>(route(&server, request).await) }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LONGEST_HEAD);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    tokio::select! {
        ended = serving.as_mut() => return ended,
        () = control.closed() => {}
    }
    // What is being answered is answered.
    serving.as_mut().graceful_shutdown();
    serving.await
}
