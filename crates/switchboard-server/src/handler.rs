//! The interface between a front end and what it serves.
//!
//! A [`Handler`] opens an [`Exchange`] per client. The front end passes it each incoming frame, with the [`Sink`] for
//! its answers, and writes what the sinks receive. Incoming frames are parsed once, by the front end; outgoing frames
//! are bytes with a [`Purpose`](switchboard::internal::service::Purpose). A [`Service`] is served through its [`Conversation`].
//! The scope of an exchange depends on the front end:
//!
//! | front end | one exchange is | it ends |
//! |---|---|---|
//! | stdio | the process at the other end | with the input |
//! | HTTP, stateful era | a session | by DELETE, by idleness, with the server |
//! | HTTP, stateless era | a single request | with its answer, or when the client hangs up |

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use switchboard::internal::service::{ClientFrame, Conversation, Sink};
use switchboard::service::Service;
use switchboard_protocol::headers::ReceivedHeaders;
use switchboard_protocol::param_headers::ParamHeaders;
use switchboard_protocol::types::method::{CallTool, Request as _};
use switchboard_protocol::{ErrorCode, ErrorObject, Method, Revision, trusted};

/// Opens an [`Exchange`] for each client of a front end.
pub trait Handler: Send + Sync + 'static {
    /// Opens an exchange with a client. Messages that belong to no request go to `sink`. Called within a tokio runtime.
    /// Must be cheap: over HTTP, it runs for each request of the stateless era.
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange>;

    /// Whether a profile exists. A client that asks for one that does not is refused before [`open`](Self::open).
    fn has_profile(&self, profile: &str) -> bool {
        let _ = profile;
        false
    }

    /// The id of a new session. With `None`, a random one is used.
    fn session_key(&self) -> Option<SessionKey> {
        None
    }

    /// Resumes the session of a client ([`ClientKind::Session`]) that another process opened, for example after a
    /// restart, and returns its negotiated revision. Sessions of another principal or profile must not be resumed.
    ///
    /// With `None`, the client gets 404 and must start a new session, as the specification requires.
    fn resume(
        &self,
        client: &Client,
        sink: Arc<dyn Sink>,
    ) -> Option<(Box<dyn Exchange>, Revision)> {
        let _ = (client, sink);
        None
    }

    /// Whether what is served is ready, for load balancers.
    fn readiness(&self) -> Readiness {
        Readiness {
            is_ready: true,
            servers: Vec::new(),
        }
    }

    /// Metrics in the text format of Prometheus; `None` if there are none.
    fn metrics(&self) -> Option<String> {
        None
    }

    /// Called when a client ends its session, which must not be resumed afterwards.
    fn forget(&self, session: &SessionKey) {
        let _ = session;
    }
}

/// Whether a handler is ready to serve, and its servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readiness {
    /// Whether every required server can be used.
    pub is_ready: bool,
    /// All servers, by name.
    pub servers: Vec<ServerReadiness>,
}

/// The state of one server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerReadiness {
    /// Its name.
    pub name: String,
    /// Its state as a word; `empty` if it is connected and offers no tools.
    pub state: &'static str,
    /// Whether the handler is not ready without it.
    pub is_required: bool,
    /// The number of tools; `None` if it is not connected.
    pub tools: Option<usize>,
    /// The reason for its state; `None` if there is nothing to explain.
    pub reason: Option<String>,
}

/// The exchange with one client. Dropping it cancels its running requests.
pub trait Exchange: Send + Sync + 'static {
    /// Handles a frame: one message or a batch. Answers and related messages go to `sink`, which is dropped after the
    /// last one. Must not block.
    fn receive(&self, frame: ClientFrame, sink: &Arc<dyn Sink>);

    /// Checks the headers of a stateless request against its body, for headers only the handler knows (`Mcp-Param-*`).
    fn check_headers(
        &self,
        headers: &ReceivedHeaders<'_>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject<'static>> {
        let _ = (headers, method, params);
        Ok(())
    }

    /// The number of running requests.
    fn in_flight(&self) -> usize;

    /// Cancels all requests and ignores further frames.
    fn close(&self);

    /// Completes when no request is running, after [`close`](Self::close).
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// A client of a front end: how it connects and who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Client {
    /// How it connects.
    pub kind: ClientKind,
    /// Who it is.
    pub principal: Principal,
    /// The profile that it uses; `None` for everything that is configured.
    pub profile: Option<Arc<str>>,
}

impl Client {
    /// A client of this kind, whom access control has identified as `principal`, without a profile.
    pub fn new(kind: ClientKind, principal: Principal) -> Self {
        Self {
            kind,
            principal,
            profile: None,
        }
    }
}

/// The kind of client, as far as the front end knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientKind {
    /// The client at the other end of a pair of streams, such as standard input and output, a local socket, a WebSocket
    /// or HTTP with server-sent events. Its first message determines the era.
    Stdio,
    /// A session over HTTP (stateful era).
    Session(SessionKey),
    /// A single request over HTTP (stateless era).
    Request,
}

/// Who a client is: what access control has checked, or what the operating system says.
///
/// Sessions, sealed state and audit entries belong to a principal; another one cannot use them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Principal {
    /// The process that started this one, over standard input and output.
    Parent,
    /// A process of the same user, over a local socket; `None` if the system does not tell its id.
    Process(Option<u32>),
    /// Whoever has the token of this name.
    Token(Arc<str>),
    /// A subject that an authorization server has vouched for.
    Subject(Arc<str>),
    /// Any client that can connect, where access control is off.
    Anyone,
}

/// As in the audit log: `parent`, `process:4711`, `token:ci`, `subject:alice`, `anyone`.
impl fmt::Display for Principal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parent => formatter.write_str("parent"),
            Self::Process(Some(process)) => write!(formatter, "process:{process}"),
            Self::Process(None) => formatter.write_str("process"),
            Self::Token(name) => write!(formatter, "token:{name}"),
            Self::Subject(subject) => write!(formatter, "subject:{subject}"),
            Self::Anyone => formatter.write_str("anyone"),
        }
    }
}

/// The id of a session. It works like a password while the session lives, so `Debug` shows only a prefix.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// Returns `None` unless the text is 1 to 128 characters of visible ASCII.
    pub fn new(text: &str) -> Option<Self> {
        let is_valid =
            (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_valid.then(|| Self(text.into()))
    }

    /// The text as sent in `Mcp-Session-Id`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix: String = self.0.chars().take(6).collect();
        write!(formatter, "SessionKey({prefix}…)")
    }
}

/// Serves a [`Service`], the same one for all clients.
#[derive(Clone)]
pub struct ServiceHandler {
    service: Arc<dyn Service>,
}

impl ServiceHandler {
    /// Serves every client with `service`.
    pub fn new(service: Arc<dyn Service>) -> Self {
        Self { service }
    }
}

impl fmt::Debug for ServiceHandler {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ServiceHandler")
            .field("service", &self.service.identity().name)
            .finish()
    }
}

impl Handler for ServiceHandler {
    fn open(&self, _client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        service_exchange(Arc::clone(&self.service), sink)
    }
}

/// An exchange with a client that has a service of its own.
pub(crate) fn service_exchange(
    service: Arc<dyn Service>,
    sink: Arc<dyn Sink>,
) -> Box<dyn Exchange> {
    Box::new(ServiceExchange {
        conversation: Conversation::new(Arc::clone(&service), sink),
        service,
    })
}

struct ServiceExchange {
    conversation: Conversation,
    service: Arc<dyn Service>,
}

impl Exchange for ServiceExchange {
    fn receive(&self, frame: ClientFrame, sink: &Arc<dyn Sink>) {
        self.conversation.receive_on(frame, sink);
    }

    fn check_headers(
        &self,
        headers: &ReceivedHeaders<'_>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject<'static>> {
        if Method::from_name(method) != Some(Method::ToolsCall) {
            return Ok(());
        }
        // Invalid params and unknown tools are rejected when the call is made.
        let Ok(call) = CallTool::decode_params(params) else {
            return Ok(());
        };
        let Some(tool) = self.service.tool(&call.name) else {
            return Ok(());
        };
        let Some(schema) = tool
            .input_schema
            .as_ref()
            .and_then(|schema| trusted(schema.get()))
        else {
            return Ok(());
        };
        let annotated = ParamHeaders::from_schema(schema).map_err(|error| {
            tracing::error!(tool = %&*call.name, %error, "a tool of this server cannot be called over HTTP");
            ErrorObject::new(ErrorCode::INTERNAL_ERROR, error.to_string())
        })?;
        let arguments = call.arguments.as_ref();
        let arguments = arguments.and_then(|arguments| trusted(arguments.get()));
        annotated
            .check(headers, arguments)
            .map_err(|mismatch| mismatch.to_error())
    }

    fn in_flight(&self) -> usize {
        self.conversation.in_flight()
    }

    fn close(&self) {
        self.conversation.close();
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.conversation.ended())
    }
}
