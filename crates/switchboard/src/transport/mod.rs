//! Transports: sending messages to a server and receiving its frames, one module per transport.
//!
//! A [`Connector`] builds a new [`Link`] on every connect and reconnect. A link sends whole messages and passes every
//! received frame undecoded to its [`Inbound`]. It must not depend on methods, eras or server states; what it needs of
//! them (headers, revision, request id) comes with each message.

mod error;
pub(crate) mod http;
pub(crate) mod in_process;
pub(crate) mod patience;
pub(crate) mod stdio;
pub(crate) mod websocket;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::{BoxFuture, Either, Ready, ready};
use switchboard_config::entry::Transport;
use switchboard_protocol::{Era, Revision, headers::Header};

pub use error::{Closed, HttpRefusal, RequestFailure, TransportError, TransportErrorKind};

/// Opens links to one server.
pub trait Connector: fmt::Debug + Send + Sync + 'static {
    /// The transport of its links.
    fn transport(&self) -> Transport;

    /// Opens a link that delivers to `inbound`.
    ///
    /// Completes when the child process runs or the socket is open; HTTP connects later. There is no deadline: dropping
    /// the future undoes what was started.
    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>>;

    /// Connector for the legacy transport that the same server may use instead.
    fn legacy(&self) -> Option<&dyn Connector> {
        None
    }

    /// The program or address it connects to, for messages.
    #[doc(hidden)]
    fn destination(&self) -> Destination {
        Destination::Unknown
    }

    /// Whether connecting may install the server first, because the program is a package runner such as `npx`.
    #[doc(hidden)]
    fn may_install(&self) -> bool {
        false
    }

    /// The package that a package runner has installed for the server, if its folder is known.
    #[doc(hidden)]
    fn installed_package(&self) -> Option<InstalledPackage> {
        None
    }

    /// Environment variables of the host that are not passed to the server.
    #[doc(hidden)]
    fn withheld_variables(&self) -> Vec<WithheldVariable> {
        Vec::new()
    }

    /// Environment variables of the host that the server's entry passes on, whether set or not.
    #[doc(hidden)]
    fn listed_variables(&self) -> &[String] {
        &[]
    }
}

/// A package that npx has installed for a server, or would install.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    /// The package as named in the entry; several are separated by spaces.
    pub package: String,
    /// The installation folder: `<cache>/_npx/<hash>`. It may not exist.
    pub folder: PathBuf,
}

/// An environment variable of the host that is not passed to a server. Never contains the value.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldVariable {
    /// Name of the variable.
    pub name: String,
    /// Likely use by the server.
    pub purpose: VariablePurpose,
}

/// Likely use of an environment variable.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariablePurpose {
    /// Installing the server: a setting of npm, pip, uv and the like, or a proxy.
    Install,
    /// Locating code: `PYTHONPATH`, `NODE_OPTIONS`.
    Code,
    /// Authenticating to a service: a token, a key, a password.
    Credential,
    /// Anything else.
    Unknown,
}

/// Target of a connector, as far as it helps to explain a failure. Contains no secrets.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Destination {
    /// A service of this program, or unknown.
    #[default]
    Unknown,
    /// A program, as named in the entry.
    Program(String),
    /// A network address.
    Address {
        /// The address without secrets.
        shown: String,
        /// Path of the URL.
        path: String,
        /// Whether credentials are sent to the server: a header such as `Authorization`.
        has_credentials: bool,
        /// Whether a login could provide credentials other than those of its entry.
        can_log_in: bool,
        /// Whether a proxy applies to the address.
        has_proxy: bool,
    },
}

impl Destination {
    /// Whether status 401 means that the entry's own credentials are wrong and a login cannot help.
    pub(crate) fn rejects_token_on_401(&self) -> bool {
        matches!(
            self,
            Self::Address {
                has_credentials: true,
                can_log_in: false,
                ..
            }
        )
    }
}

/// An open connection to a server. Dropping the last handle closes it like [`close`](Link::close), without waiting.
pub trait Link: Send + Sync + 'static {
    /// Sends one message.
    ///
    /// The order of messages is fixed before this returns; the future only waits until the message is handed over.
    /// Dropping the future does not withdraw the message. For a request, the future completes when the request is sent;
    /// its outcome, success or failure, goes to the [`Inbound`]. For any other message, it completes when the server
    /// has accepted it, as far as the transport can know.
    fn send(&self, message: Outgoing) -> Sending<'_>;

    /// Whether the transport has headers. If not, callers need not build them.
    fn has_headers(&self) -> bool {
        true
    }

    /// Cancels this request: its answer is no longer awaited.
    fn abandon(&self, request: u64) -> Abandoned;

    /// Called when the handshake is complete, with the negotiated revision.
    ///
    /// HTTP now opens its stream for unsolicited messages, if the revision has one.
    fn opened(&self, revision: Revision);

    /// Waits until the link receives the server's unsolicited messages, or cannot.
    ///
    /// A server may send a request as soon as it is called, and without a stream that request is lost. Callers set a
    /// timeout: some servers send no headers on their stream before the first message.
    fn listening(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Closes the link in the orderly way of the transport and waits until that is done: a child process and its
    /// descendants are gone, a session is deleted. Idempotent, and the transport bounds the time.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Closes the link like [`close`](Link::close), but returns as soon as the server is notified if a supervisor
    /// completes the shutdown. For a program about to exit.
    fn leave(&self) -> BoxFuture<'_, ()> {
        self.close()
    }

    /// Id of the server process; `None` if the transport has none.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Whether the server ended without reading anything sent to it, as far as the transport can know.
    fn read_nothing(&self) -> bool {
        false
    }
}

/// A message being sent. Usually complete at once, so that only a pending one needs an allocation.
pub type Sending<'a> = Either<Ready<Sent>, BoxFuture<'a, Sent>>;

/// Result of handing a message over.
pub type Sent = Result<(), TransportError>;

/// A send that has completed or failed.
pub fn sent<'a>(sent: Sent) -> Sending<'a> {
    Either::Left(ready(sent))
}

/// A send that is pending.
pub fn sending<'a>(sent: impl Future<Output = Sent> + Send + 'a) -> Sending<'a> {
    Either::Right(Box::pin(sent))
}

/// One message to send.
#[derive(Debug)]
pub struct Outgoing {
    /// The whole JSON-RPC message, on one line, with no line end.
    pub payload: Vec<u8>,
    /// Kind of the message.
    pub kind: OutgoingKind,
    /// Its era, which decides whether it is part of a session and how it is cancelled.
    pub era: Era,
    /// Headers required by its era; empty if the transport has none.
    pub headers: Vec<Header>,
}

/// Kind of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request with this id.
    Request(u64),
    /// A notification.
    Notification,
    /// A response to a request of the server.
    Response,
}

/// Whether the server is notified of a cancelled request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned {
    /// The transport has notified it, by closing the request's stream.
    Told,
    /// The caller must send a cancellation message.
    NotTold,
}

/// Receiver of a link's events. Implementations must be short and never block: they are called from the reading task,
/// or from a sender that found input to read.
pub trait Inbound: Send + Sync + 'static {
    /// A frame: a line, a body, the data of an event. Not necessarily JSON.
    fn frame(&self, frame: Bytes);

    /// A frame that arrived on the stream of this request, for transports that have one.
    fn related_frame(&self, frame: Bytes, request: u64) {
        let _ = request;
        self.frame(frame);
    }

    /// A frame over the size limit, which the link skipped; `start` is its beginning, enough to find an id.
    fn oversized(&self, start: &[u8], limit: usize);

    /// A request gets no answer; the link stays open.
    fn failed(&self, request: u64, failure: RequestFailure);

    /// A line of the server's stderr, without its line end.
    fn diagnostic(&self, line: &str);

    /// The link has ended and delivers nothing more. Called at most once.
    fn closed(&self, closed: Closed);
}
