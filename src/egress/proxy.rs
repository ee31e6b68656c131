//! A proxy for one walled process, which reaches it and nothing else. It speaks HTTP: CONNECT for a connection to a host, and plain
//! requests. It resolves names, connects to allowed addresses, and refuses the others with a reason.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1 as client;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, HOST, HeaderName, HeaderValue, TE, TRAILER, UPGRADE};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use rustix::process::{Resource, getrlimit};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use super::addresses::is_private;
use super::allowed::{AllowedHosts, CLOSED, Refusal, plain_name};
use crate::config::recorder::Recorder;
use crate::threads::blocking;

/// How many connections a process may have at once, at most. Others wait.
const MOST: usize = 128;
/// How many names are looked up at once for a process, and for all: each takes a thread for as long as the system's resolver likes.
const LOOKUPS: (usize, usize) = (8, 32);
/// The longest name of a host.
const LONGEST_HOST: usize = 253;
/// How long the head of a request may take, and how long a connection may be idle.
const HEAD: Duration = Duration::from_mins(1);
/// The longest head of a request.
const LONGEST_HEAD: usize = 16 << 10;
/// How long it may take to find a host, and to connect to one of its addresses.
const REACHED: Duration = Duration::from_secs(30);
/// How many addresses of a host are tried.
const MOST_ADDRESSES: usize = 8;
/// The pause after a connection could not be accepted: too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

/// What concerns one connection and not the other side of the proxy.
const OF_CONNECTION: [&str; 3] = ["keep-alive", "proxy-authorization", "proxy-connection"];

type Answer = Response<Either<Incoming, Full<Bytes>>>;

/// A running proxy; dropping it ends its connections.
#[derive(Debug)]
pub struct Proxy(JoinHandle<()>);

impl Proxy {
    /// Serves the connections that a listening socket accepts.
    pub fn serve(socket: std::net::TcpListener, allowed: Arc<AllowedHosts>) -> io::Result<Self> {
        Self::start(socket, allowed, None)
    }

    /// Serves them all, and records which hosts are reached.
    pub fn record(socket: std::net::TcpListener, recorder: Arc<Recorder>) -> io::Result<Self> {
        // No list has to have them.
        Self::start(socket, Arc::default(), Some(recorder))
    }

    fn start(
        socket: std::net::TcpListener,
        allowed: Arc<AllowedHosts>,
        recorder: Option<Arc<Recorder>>,
    ) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = TcpListener::from_std(socket)?;
        let way = Way { allowed, lookups: Arc::new(Semaphore::new(LOOKUPS.0)), recorder };
        Ok(Self(crate::telemetry::spawn(accept(socket, Arc::new(way)))))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Connections of all processes, and how many of them one may have. Each takes two files, and hostler needs files for everything else.
static ALL_SEATS: LazyLock<(Arc<Semaphore>, usize)> = LazyLock::new(|| {
    let files = getrlimit(Resource::Nofile).current.and_then(|most| usize::try_from(most).ok()).unwrap_or(1024);
    let all = (files / 8).clamp(16, 4096);
    (Arc::new(Semaphore::new(all)), (all / 4).clamp(8, MOST))
});

static ALL_LOOKUPS: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(LOOKUPS.1)));

/// What the connections of a process reach.
struct Way {
    allowed: Arc<AllowedHosts>,
    lookups: Arc<Semaphore>,
    /// Hears which hosts are reached.
    recorder: Option<Arc<Recorder>>,
}

impl Way {
    /// A host is reached at one of its addresses. A list has to have a private address, too, unless it is the one of `localhost`.
    fn reached(&self, host: &str, address: SocketAddr) {
        let Some(recorder) = &self.recorder else { return };
        let (name, port) = (plain_name(host), address.port());
        let name = if name.contains(':') { format!("[{name}]") } else { name };
        let is_local = name == "localhost" && address.ip().to_canonical().is_loopback();
        let private = is_private(address.ip()).then_some(address).filter(|_| !is_local);
        recorder.add(|record| {
            record.hosts.insert(format!("{name}:{port}"));
            record.hosts.extend(private.map(|address| address.to_string()));
        });
    }
}

async fn accept(socket: TcpListener, way: Arc<Way>) {
    let seats = Arc::new(Semaphore::new(ALL_SEATS.1));
    let mut connections = JoinSet::new();
    let mut has_failed = false;
    loop {
        let Ok(seat) = Arc::clone(&seats).acquire_owned().await else { return };
        match socket.accept().await {
            Ok((stream, _)) => {
                has_failed = false;
                let Ok(of_all) = Arc::clone(&ALL_SEATS.0).acquire_owned().await else { return };
                let way = Arc::clone(&way);
                connections.spawn(async move {
                    let _seats = (seat, of_all);
                    if let Err(error) = connection(stream, way).await {
                        tracing::debug!(%error, "a connection of a sandbox ended");
                    }
                });
            }
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    tracing::warn!(%error, "a connection of a sandbox cannot be accepted; it is tried again");
                }
                sleep(PAUSE).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// Connections to the hosts of plain requests. They end with the connection that asked for them.
type Upstreams = Mutex<JoinSet<()>>;

/// A connection that was asked for by CONNECT: what the client sends and hears next, and the host.
type Tunnel = (OnUpgrade, TcpStream);

async fn connection(stream: TcpStream, way: Arc<Way>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let tunnel: Arc<Mutex<Option<Tunnel>>> = Arc::default();
    let upstreams: Arc<Upstreams> = Arc::default();
    let service = service_fn(|request: Request<Incoming>| {
        let (way, tunnel, upstreams) = (Arc::clone(&way), Arc::clone(&tunnel), Arc::clone(&upstreams));
        async move { Ok::<_, Infallible>(answer(request, &way, &tunnel, &upstreams).await) }
    });
    let mut http = server::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(LONGEST_HEAD);
    http.serve_connection(TokioIo::new(stream), service).with_upgrades().await?;
    let opened = tunnel.lock().take();
    if let Some((upgrade, mut host)) = opened {
        copy_bidirectional(&mut TokioIo::new(upgrade.await?), &mut host).await?;
    }
    Ok(())
}

/// Why a request has no answer of a host.
struct Failure {
    status: StatusCode,
    reason: String,
}

impl Failure {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    fn refused(host: &str, port: u16, refusal: &Refusal) -> Self {
        tracing::info!(%host, port, "the sandbox of a tool closes a host: {refusal}");
        let why = if let Refusal::Private(_) = refusal { format!(" ({refusal})") } else { String::new() };
        Self::new(StatusCode::FORBIDDEN, format!("{CLOSED}{host}:{port}{why}"))
    }
}

async fn answer(
    request: Request<Incoming>,
    way: &Way,
    tunnel: &Mutex<Option<Tunnel>>,
    upstreams: &Upstreams,
) -> Answer {
    let answered = if request.method() == Method::CONNECT {
        connect(request, way, tunnel).await
    } else {
        forward(request, way, upstreams).await
    };
    answered.unwrap_or_else(|Failure { status, reason }| {
        let mut answer = Response::new(Either::Right(Full::from(format!("{reason}\n"))));
        *answer.status_mut() = status;
        if let Ok(reason) = ReasonPhrase::try_from(reason.into_bytes()) {
            answer.extensions_mut().insert(reason);
        }
        answer
    })
}

async fn connect(mut request: Request<Incoming>, way: &Way, tunnel: &Mutex<Option<Tunnel>>) -> Result<Answer, Failure> {
    let whole = request.uri().authority().and_then(|authority| Some((authority.host(), authority.port_u16()?)));
    let (host, port) = whole.ok_or_else(|| Failure::new(StatusCode::BAD_REQUEST, "CONNECT needs a host and a port"))?;
    let stream = reached(host, port, way).await?;
    *tunnel.lock() = Some((hyper::upgrade::on(&mut request), stream));
    Ok(Response::new(Either::Right(Full::default())))
}

async fn forward(mut request: Request<Incoming>, way: &Way, upstreams: &Upstreams) -> Result<Answer, Failure> {
    let of_uri = |uri: &Uri| Some((uri.authority()?.clone(), uri.scheme_str()? == "http"));
    let (authority, _) = of_uri(request.uri()).filter(|(_, is_plain)| *is_plain).ok_or_else(|| {
        Failure::new(StatusCode::BAD_REQUEST, "This is a proxy: it takes CONNECT, and requests for http:// addresses")
    })?;
    let stream = reached(authority.host(), authority.port_u16().unwrap_or(80), way).await?;
    to_host(&mut request, &authority)?;
    let failed =
        |error: hyper::Error| Failure::new(StatusCode::BAD_GATEWAY, format!("{authority} did not answer: {error}"));
    let (mut sender, connection) = client::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    {
        let mut upstreams = upstreams.lock();
        while upstreams.try_join_next().is_some() {}
        upstreams.spawn(async { drop(connection.await) });
    }
    let mut answer = sender.send_request(request).await.map_err(failed)?;
    strip(answer.headers_mut());
    Ok(answer.map(Either::Left))
}

/// Makes a request for a proxy one for its host.
fn to_host(request: &mut Request<Incoming>, authority: &Authority) -> Result<(), Failure> {
    let wrong = || Failure::new(StatusCode::BAD_REQUEST, "The host has characters that no host has");
    let path = request.uri().path_and_query().filter(|path| !path.as_str().is_empty()).cloned();
    let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    strip(request.headers_mut());
    // Without the name and password that an address may have.
    let host = authority.as_str().rsplit('@').next().unwrap_or_default();
    request.headers_mut().insert(HOST, HeaderValue::from_str(host).map_err(|_| wrong())?);
    Ok(())
}

/// Removes what concerns one connection only.
fn strip(headers: &mut hyper::HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.into_iter().chain([CONNECTION, TE, TRAILER, UPGRADE]) {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}

/// A connection to a host, if it may be reached.
async fn reached(host: &str, port: u16, way: &Way) -> Result<TcpStream, Failure> {
    if host.len() > LONGEST_HOST {
        return Err(Failure::new(StatusCode::BAD_REQUEST, "The name of the host is too long"));
    }
    way.allowed.admit(host, port).map_err(|refusal| Failure::refused(host, port, &refusal))?;
    let late = |_| Failure::new(StatusCode::GATEWAY_TIMEOUT, format!("{host}:{port} did not answer"));
    timeout(REACHED, connected(host, port, way)).await.unwrap_or_else(|elapsed| Err(late(elapsed)))
}

async fn connected(host: &str, port: u16, way: &Way) -> Result<TcpStream, Failure> {
    let unknown = || Failure::new(StatusCode::BAD_GATEWAY, format!("{host} was not found"));
    let found = addresses(host, port, way).await.map_err(|_| unknown())?;
    let admitted = |address: &&SocketAddr| way.allowed.admit_address(host, address.ip(), port).is_ok();
    let admitted: Vec<&SocketAddr> = found.iter().filter(admitted).take(MOST_ADDRESSES).collect();
    let Some(first) = found.first() else { return Err(unknown()) };
    if admitted.is_empty() {
        return Err(Failure::refused(host, port, &Refusal::Private(first.ip())));
    }
    let mut last = None;
    for address in admitted {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                way.reached(host, *address);
                return Ok(stream);
            }
            Err(error) => last = Some(error),
        }
    }
    let why = last.map(|error| format!(": {error}")).unwrap_or_default();
    Err(Failure::new(StatusCode::BAD_GATEWAY, format!("{host}:{port} cannot be connected to{why}")))
}

/// The addresses of a host, which the system's resolver is asked for on a thread.
async fn addresses(host: &str, port: u16, way: &Way) -> io::Result<Vec<SocketAddr>> {
    let name = plain_name(host);
    if let Ok(address) = name.parse() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let own = Arc::clone(&way.lookups).acquire_owned().await.map_err(io::Error::other)?;
    let of_all = Arc::clone(&ALL_LOOKUPS).acquire_owned().await.map_err(io::Error::other)?;
    let lookup = move || {
        // Held until the resolver has answered, also if the client has left.
        let _turns = (own, of_all);
        (name, port).to_socket_addrs().map(Iterator::collect)
    };
    blocking(lookup)?.await
}
