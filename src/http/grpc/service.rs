//! Which RPC is answered by what, and the checks before that.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use prost::Message;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::Service as _;
use tonic::{Code, Status};
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::Builder as Reflection;

use super::super::body::longest;
use super::super::face::Face;
use super::super::guard::bearer_of;
use super::super::routes::Server;
use super::super::seats::Seat;
use super::super::trace::context_of;
use super::arriving::{Arriving, HEAD};
use super::deadline::deadline;
use super::health::{self, Health};
use super::messages::{
    ExecuteToolRequest, ExecuteToolResponse, GetToolSchemaRequest, GetToolSchemaResponse, ListAvailableToolsRequest,
    ListAvailableToolsResponse,
};
use super::unread::Unread;
use crate::control::{Execute, Refusal, Requests, Scope};

/// The service of our own.
pub const NAME: &str = "hostler.control.v1.ToolExecutor";
/// The types of requests that have messages of ours.
const KINDS: [&str; 2] = ["application/grpc", "application/grpc+proto"];
/// The most bytes of a refusal's message.
const LONGEST_MESSAGE: usize = 2000;
/// The longest message to reflection.
const LONGEST_REFLECTION: usize = 64 << 10;
/// How long the message of a stranger may take.
const FOR_STRANGERS: Duration = Duration::from_secs(15);
/// What reflection tells of our service.
const DESCRIPTOR: &[u8] = include_bytes!("../../../proto/hostler/control/v1/control.bin");

/// How a client came in.
pub enum Door {
    /// Over the port: each request shows a token.
    Port(Arc<Server>, Arc<Seat>),
    /// Over the socket, which only its owner reaches.
    Socket(Arc<Face>),
}

impl Door {
    pub fn face(&self) -> &Arc<Face> {
        match self {
            Self::Port(server, _) => &server.face,
            Self::Socket(face) => face,
        }
    }
}

/// What the RPCs of one connection are answered from.
pub struct Service {
    door: Door,
    arriving: Arriving,
    unread: Arc<Unread>,
}

impl Service {
    pub fn new(door: Door, unread: Arc<Unread>) -> Self {
        Self { door, arriving: Arriving::default(), unread }
    }

    /// Answers a request. What it wants of us may be dropped at any time: then its call is cancelled.
    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        if let Err(refused) = is_rpc(&request) {
            return *refused;
        }
        let limit = self.admits(&request).and_then(|()| deadline(request.headers()));
        let answered = match limit {
            Err(status) => Err(status),
            Ok(None) => self.admitted(request).await,
            Ok(Some(Duration::ZERO)) => Err(late()),
            Ok(Some(limit)) => timeout(limit, self.admitted(request)).await.unwrap_or_else(|_| Err(late())),
        };
        answered.unwrap_or_else(Status::into_http)
    }

    async fn admitted(&self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let path = request.uri().path().to_owned();
        let (service, method) = path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
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
        let scope = bearer_of(headers).and_then(|token| server.tokens.scope_of(token));
        let scope = scope.ok_or_else(|| Status::unauthenticated(unknown))?;
        seat.keep();
        Ok(scope)
    }

    async fn execute(&self, request: Request<Incoming>, scope: Scope) -> Result<Response<Body>, Status> {
        let trace = context_of(request.headers());
        let ExecuteToolRequest { name, input_json, timeout_ms } = self.asked(request, scope).await?;
        let asked = Execute { name, input_json, timeout_ms, traceparent: None, tracestate: None };
        let done = self.attended(scope, async |requests| requests.execute_tool(asked, trace).await).await?;
        Ok(self.answered(&ExecuteToolResponse::from(done)))
    }

    async fn list(&self, request: Request<Incoming>, scope: Scope) -> Result<Response<Body>, Status> {
        let ListAvailableToolsRequest {} = self.asked(request, scope).await?;
        let tools = self.attended(scope, async |requests| requests.list_available_tools().await).await?;
        Ok(self.answered(&ListAvailableToolsResponse::from(tools)))
    }

    async fn schema(&self, request: Request<Incoming>, scope: Scope) -> Result<Response<Body>, Status> {
        let GetToolSchemaRequest { name } = self.asked(request, scope).await?;
        let schemas = self.attended(scope, async |requests| requests.get_tool_schema(name).await).await?;
        Ok(self.answered(&GetToolSchemaResponse::from(schemas)))
    }

    /// What a request asks, once there is room for its answer.
    async fn asked<Q: Message + Default>(&self, request: Request<Incoming>, scope: Scope) -> Result<Q, Status> {
        let (head, body) = request.into_parts();
        let message = self.arriving.message(&head.headers, body, longest(scope)).await?;
        let asked = Q::decode(&message[HEAD..]).map_err(|error| Status::internal(error.to_string()))?;
        drop((message, head));
        self.unread.has_room().await;
        Ok(asked)
    }

    fn answered(&self, answer: &impl Message) -> Response<Body> {
        let length = answer.encoded_len();
        let Ok(announced) = u32::try_from(length) else {
            return Status::resource_exhausted("the answer is longer than 4 GB").into_http();
        };
        let mut message = Vec::with_capacity(HEAD + length);
        message.push(0);
        message.extend_from_slice(&announced.to_be_bytes());
        answer.encode_raw(&mut message);
        let mut response = Response::new(Body::new(self.unread.body(message)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(KINDS[0]));
        response
    }

    /// Does something as one of the clients that send each request for itself.
    async fn attended<T>(
        &self,
        scope: Scope,
        work: impl AsyncFnOnce(&Requests) -> Result<T, Refusal>,
    ) -> Result<T, Status> {
        let attendance = self.door.face().attend().await;
        let requests = self.door.face().requests(scope).await.map_err(Status::unavailable)?;
        tokio::select! {
            done = work(requests) => done.map_err(|refusal| status_of(&refusal)),
            () = attendance.ended() => Err(Status::unavailable("the session was ended")),
        }
    }

    /// Needs no token, so that little of a request is kept, and not for long.
    async fn health(&self, request: Request<Incoming>) -> Result<Response<Body>, Status> {
        let (head, body) = request.into_parts();
        let message = timeout(FOR_STRANGERS, self.arriving.message(&head.headers, body, health::LONGEST)).await;
        let message = message.unwrap_or_else(|_| Err(late()))?;
        let service = Health(Arc::clone(self.door.face().control()));
        let request = Request::from_parts(head, Full::new(Bytes::from(message)));
        Ok(never(HealthServer::new(service).max_decoding_message_size(health::LONGEST).call(request).await))
    }
}

/// Whether a request may be an RPC. HTTP/2 is spoken for nothing else.
fn is_rpc(request: &Request<Incoming>) -> Result<(), Box<Response<Body>>> {
    if request.method() != Method::POST {
        let mut refused =
            plain(StatusCode::METHOD_NOT_ALLOWED, "RPCs are sent by POST; for anything else use HTTP/1.1\n");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        return Err(Box::new(refused));
    }
    let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !KINDS.iter().any(|known| kind.eq_ignore_ascii_case(known)) {
        let text = "over HTTP/2 there are RPCs alone, of the type application/grpc; for anything else use HTTP/1.1\n";
        return Err(Box::new(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)));
    }
    Ok(())
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut answer = Response::new(Body::new(Full::new(Bytes::from_static(text.as_bytes()))));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

fn late() -> Status {
    Status::deadline_exceeded("the deadline of the RPC has passed")
}

async fn reflect(request: Request<Incoming>) -> Result<Response<Body>, Status> {
    let told = Reflection::configure()
        .register_encoded_file_descriptor_set(DESCRIPTOR)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET);
    let broken = |error: tonic_reflection::server::Error| Status::internal(error.to_string());
    if request.uri().path().starts_with("/grpc.reflection.v1alpha.") {
        let service = told.build_v1alpha().map_err(broken)?;
        return Ok(never(service.max_decoding_message_size(LONGEST_REFLECTION).call(request).await));
    }
    let service = told.build_v1().map_err(broken)?;
    Ok(never(service.max_decoding_message_size(LONGEST_REFLECTION).call(request).await))
}

fn never(answer: Result<Response<Body>, Infallible>) -> Response<Body> {
    let Ok(answer) = answer;
    answer
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
