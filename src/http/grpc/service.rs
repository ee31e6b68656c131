//! Which RPC is answered by what, and the checks before that.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Request, Response};
use prost::Message;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic::server::{Grpc, UnaryService};
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tonic_prost::ProstCodec;
use tonic_reflection::server::Builder as Reflection;

use super::super::body::longest;
use super::super::face::Face;
use super::super::guard::token_of;
use super::super::routes::Server;
use super::super::seats::Seat;
use super::super::trace::context_of;
use super::health::Health;
use super::messages::{
    ExecuteToolRequest, ExecuteToolResponse, GetToolSchemaRequest, GetToolSchemaResponse, ListAvailableToolsRequest,
    ListAvailableToolsResponse,
};
use crate::control::{Execute, Refusal, Requests, Scope};

/// The service of our own.
pub const NAME: &str = "hostler.control.v1.ToolExecutor";
/// The most bytes of a refusal's message.
const LONGEST_MESSAGE: usize = 2000;
/// What reflection tells of it.
const DESCRIPTOR: &[u8] = include_bytes!("../../../proto/hostler/control/v1/control.bin");

/// How a client came in.
pub enum Door {
    /// Over the port: each request shows a token.
    Port(Arc<Server>, Arc<Seat>),
    /// Over the socket, which only its owner reaches.
    Socket(Arc<Face>),
}

/// What the RPCs of one connection are answered from.
pub struct Service {
    door: Door,
}

impl Service {
    pub fn new(door: Door) -> Self {
        Self { door }
    }

    fn face(&self) -> &Arc<Face> {
        match &self.door {
            Door::Port(server, _) => &server.face,
            Door::Socket(face) => face,
        }
    }

    /// Answers a request. What it wants of us may be dropped at any time: then its call is cancelled.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        match self.admitted(request).await {
            Ok(answer) => answer,
            Err(status) => status.into_http(),
        }
    }

    async fn admitted(&self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        self.admits(&request)?;
        let (service, method) =
            request.uri().path().strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
        if service == "grpc.health.v1.Health" {
            return self.health(request).await;
        }
        let scope = self.scope(request.headers())?;
        match (service, method) {
            (NAME, "ExecuteTool") => self.execute(request, scope).await,
            (NAME, "ListAvailableTools") => self.list(request, scope).await,
            (NAME, "GetToolSchema") => self.schema(request, scope).await,
            ("grpc.reflection.v1.ServerReflection" | "grpc.reflection.v1alpha.ServerReflection", _) => {
                reflect(request).await
            }
            _ => Err(Status::unimplemented("there is no such method; docs/control.md lists them")),
        }
    }

    /// Whether the request was meant for this server. HTTP/2 names it in the address.
    fn admits(&self, request: &Request<Incoming>) -> Result<(), Status> {
        let Door::Port(server, _) = &self.door else { return Ok(()) };
        let mut headers = request.headers().clone();
        if let Some(authority) = request.uri().authority() {
            let named = HeaderValue::from_str(authority.as_str())
                .map_err(|_| Status::permission_denied("the authority is no text"))?;
            headers.append(HOST, named);
        }
        server.guard.admits(&headers).map_err(|denied| Status::permission_denied(denied.message()))
    }

    fn scope(&self, headers: &HeaderMap) -> Result<Scope, Status> {
        let Door::Port(server, seat) = &self.door else { return Ok(Scope::Operate) };
        let unknown = "send a valid token as `authorization: Bearer TOKEN`; `hostler token` prints one";
        let scope = token_of(headers).and_then(|token| server.tokens.scope_of(token));
        let scope = scope.ok_or_else(|| Status::unauthenticated(unknown))?;
        seat.keep();
        Ok(scope)
    }

    async fn execute(&self, request: Request<Incoming>, scope: Scope) -> Result<Response<Body>, Status> {
        let deadline = deadline(request.headers());
        let trace = context_of(request.headers());
        let run = async |asked: tonic::Request<ExecuteToolRequest>| {
            let ExecuteToolRequest { name, input_json, timeout_ms } = asked.into_inner();
            let asked = Execute { name, input_json, timeout_ms, traceparent: None, tracestate: None };
            let trace = trace.clone();
            let done = self.attended(scope, async |requests| requests.execute_tool(asked, trace).await);
            let done = timeout(deadline.unwrap_or(Duration::MAX), done).await;
            done.unwrap_or_else(|_| Err(Status::deadline_exceeded("the deadline of the RPC has passed")))
                .map(ExecuteToolResponse::from)
        };
        Ok(unary(request, scope, run).await)
    }

    async fn list(&self, request: Request<Incoming>, scope: Scope) -> Result<Response<Body>, Status> {
        let run = async |_: tonic::Request<ListAvailableToolsRequest>| {
            let tools = self.attended(scope, async |requests| requests.list_available_tools().await).await?;
            Ok(ListAvailableToolsResponse::from(tools))
        };
        Ok(unary(request, scope, run).await)
    }

    async fn schema(&self, request: Request<Incoming>, scope: Scope) -> Result<Response<Body>, Status> {
        let run = async |asked: tonic::Request<GetToolSchemaRequest>| {
            let name = asked.into_inner().name;
            let schemas = self.attended(scope, async |requests| requests.get_tool_schema(name).await).await?;
            Ok(GetToolSchemaResponse::from(schemas))
        };
        Ok(unary(request, scope, run).await)
    }

    /// Does something as one of the clients that send each request for itself.
    async fn attended<T>(
        &self,
        scope: Scope,
        work: impl AsyncFnOnce(&Requests) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        let attendance = self.face().attend().await;
        let requests = self.face().requests(scope).await.map_err(Status::unavailable)?;
        tokio::select! {
            done = work(requests) => done.map_err(|refusal| status_of(&refusal)),
            () = attendance.ended() => Err(Status::unavailable("the session was ended")),
        }
    }

    async fn health(&self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let service = Health(Arc::clone(self.face().control()));
        Ok(never(HealthServer::new(service).call(request).await))
    }
}

async fn reflect(request: Request<Incoming>) -> Result<Response<Body>, Status> {
    let told = Reflection::configure()
        .register_encoded_file_descriptor_set(DESCRIPTOR)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
    let broken = |error: tonic_reflection::server::Error| Status::internal(error.to_string());
    if request.uri().path().starts_with("/grpc.reflection.v1alpha.") {
        return Ok(never(told.build_v1alpha().map_err(broken)?.call(request).await));
    }
    Ok(never(told.build_v1().map_err(broken)?.call(request).await))
}

fn never(answer: Result<Response<Body>, Infallible>) -> Response<Body> {
    let Ok(answer) = answer;
    answer
}

/// An RPC with one request and one answer.
struct Unary<F>(F);

impl<F, Fut, Q, A> UnaryService<Q> for Unary<F>
where
    F: FnMut(tonic::Request<Q>) -> Fut,
    Fut: Future<Output = Result<tonic::Response<A>, Status>>,
{
    type Response = A;
    type Future = Fut;

    fn call(&mut self, request: tonic::Request<Q>) -> Fut {
        (self.0)(request)
    }
}

async fn unary<Q, A, Fut>(
    request: Request<Incoming>,
    scope: Scope,
    run: impl Fn(tonic::Request<Q>) -> Fut,
) -> Response<Body>
where
    Q: Message + Default + 'static,
    A: Message + Default + 'static,
    Fut: Future<Output = Result<A, Status>>,
{
    let mut grpc = Grpc::new(ProstCodec::<A, Q>::default()).max_decoding_message_size(longest(scope));
    let answer = Unary(|asked| {
        let done = run(asked);
        async { done.await.map(tonic::Response::new) }
    });
    grpc.unary(answer, request).await
}

fn status_of(refusal: &Refusal) -> Status {
    let code = refusal.data.as_ref().and_then(|data| data["code"].as_str()).unwrap_or_default();
    let code = match code {
        "FORBIDDEN" => Code::PermissionDenied,
        "TOOL_NOT_FOUND" | "NOT_FOUND" => Code::NotFound,
        "INVALID_PARAMS" => Code::InvalidArgument,
        "BUSY" | "QUEUE_FULL" => Code::ResourceExhausted,
        "CANCELLED" => Code::Cancelled,
        _ => Code::FailedPrecondition,
    };
    // It is sent in a header, which clients limit; what was asked for may be a part of it.
    let end = refusal.message.floor_char_boundary(LONGEST_MESSAGE);
    Status::new(code, &refusal.message[..end])
}

/// How long the client waits: at most eight digits and a unit.
fn deadline(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let number: u64 = number.parse().ok().filter(|_| number.len() <= 8)?;
    match unit {
        "H" => Some(Duration::from_secs(number * 3600)),
        "M" => Some(Duration::from_secs(number * 60)),
        "S" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_millis(number)),
        "u" => Some(Duration::from_micros(number)),
        "n" => Some(Duration::from_nanos(number)),
        _ => None,
    }
}
