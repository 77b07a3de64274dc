//! What stands behind a front end.
//!
//! A [`Handler`] begins an [`Exchange`] for each client; the front end gives the exchange the frames that come in, each
//! with the [`Sink`] its answers go to, and takes from the sinks what goes out. A frame that comes in is parsed by the
//! front end, once, within its limits; what goes out is bytes, with a [`Purpose`](switchboard::service::Purpose) beside
//! them that says all a front end needs to know. A [`Service`] is served through its [`Conversation`].
//!
//! What a client is depends on the front end:
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
use switchboard::service::{ClientFrame, Conversation, Service, Sink};
use switchboard_protocol::headers::ReceivedHeaders;
use switchboard_protocol::param_headers::ParamHeaders;
use switchboard_protocol::types::method::{CallTool, Request as _};
use switchboard_protocol::{ErrorCode, ErrorObject, Method, Revision, trusted};

/// What stands behind a front end.
pub trait Handler: Send + Sync + 'static {
    /// Begins an exchange with a client. What no request asked for goes to `sink`. Called within a tokio runtime, and for
    /// each request of the stateless era over HTTP, so it has to be cheap.
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange>;

    /// Takes up a session that this process has not begun, as after a restart, with the revision it had settled on.
    ///
    /// Without one the client is told that the session is gone (404) and begins anew, as the specification says.
    fn resume(
        &self,
        session: &SessionKey,
        sink: Arc<dyn Sink>,
    ) -> Option<(Box<dyn Exchange>, Revision)> {
        let _ = (session, sink);
        None
    }

    /// A client has ended its session: it must not be taken up again.
    fn forget(&self, session: &SessionKey) {
        let _ = session;
    }
}

/// The exchange with one client. Dropping it cancels what is running.
pub trait Exchange: Send + Sync + 'static {
    /// Takes a frame in: one message, or a batch. Answers, and all that belongs to them, go to `sink`, which is let go of
    /// when nothing will follow. Must not block.
    fn receive(&self, frame: ClientFrame, sink: &Arc<dyn Sink>);

    /// Compares the headers of a stateless request with its body, as far as only the handler can (`Mcp-Param-*`).
    fn check_headers(
        &self,
        headers: &ReceivedHeaders<'_>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject<'static>> {
        let _ = (headers, method, params);
        Ok(())
    }

    /// How many requests are running.
    fn in_flight(&self) -> usize;

    /// Cancels everything and takes nothing in any longer.
    fn close(&self);

    /// Ends when nothing is running any longer, after [`close`](Self::close).
    fn ended(&self) -> BoxFuture<'_, ()>;
}

/// Who is at the other end, as far as a front end can tell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Client {
    /// The process at the other end of a pair of streams. Which era it speaks shows with its first message.
    Stdio,
    /// A session over HTTP (stateful era).
    Session(SessionKey),
    /// A single request over HTTP (stateless era).
    Request,
}

/// The name of a session. It is as good as a password while the session lives, so it is never shown whole.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    /// The key with this text; `None` unless it is visible ASCII, not empty and of a reasonable length.
    pub fn new(text: &str) -> Option<Self> {
        let is_fit =
            (1..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        is_fit.then(|| Self(text.into()))
    }

    /// The text, as it goes over the wire.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(6).collect();
        write!(formatter, "SessionKey({shown}…)")
    }
}

/// Serves a [`Service`], the same one for all clients.
#[derive(Clone)]
pub struct ServiceHandler {
    service: Arc<dyn Service>,
}

impl ServiceHandler {
    /// Serves this.
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
        Box::new(ServiceExchange {
            conversation: Conversation::new(Arc::clone(&self.service), sink),
            service: Arc::clone(&self.service),
        })
    }
}

/// A conversation with a service.
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
        // What cannot be read is refused when the call is made, and so is a tool that is not there.
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
