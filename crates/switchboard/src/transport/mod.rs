//! How messages reach a server and come back, one module for each transport.
//!
//! Owns the seam between bytes and meaning. A [`Connector`] builds a fresh [`Link`] on every connect
//! and reconnect. A link sends whole messages and hands every frame it receives to its [`Inbound`], undecoded. It
//! must not know methods, eras or servers' states; what it needs of them (headers, the revision, which request a
//! message is) comes with each message.

mod error;
pub(crate) mod http;
pub(crate) mod in_process;
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

/// A connector for links to one server.
pub trait Connector: fmt::Debug + Send + Sync + 'static {
    /// Which transport it is.
    fn transport(&self) -> Transport;

    /// Opens a link, from now on delivering to `inbound`.
    ///
    /// For a child process this ends when the process runs, for a socket when it is open; HTTP has nothing to do
    /// yet. It has no deadline of its own: dropping the future undoes whatever was begun.
    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>>;

    /// The connector for the older transport that the same server may speak instead.
    fn legacy(&self) -> Option<&dyn Connector> {
        None
    }

    /// What it leads to, for people.
    #[doc(hidden)]
    fn destination(&self) -> Destination {
        Destination::Unknown
    }

    /// Whether connecting may install the server first: the program is a package runner such as `npx`.
    #[doc(hidden)]
    fn may_install(&self) -> bool {
        false
    }

    /// The package that a package runner keeps installed for the server, if its folder is known.
    #[doc(hidden)]
    fn installed_package(&self) -> Option<InstalledPackage> {
        None
    }

    /// Variables of the host that the server does not get, by name.
    #[doc(hidden)]
    fn withheld_variables(&self) -> Vec<WithheldVariable> {
        Vec::new()
    }

    /// Variables of the host that the server's entry lists to be passed on, whether they are set or not.
    #[doc(hidden)]
    fn listed_variables(&self) -> &[String] {
        &[]
    }
}

/// A package that npx has installed for a server, or would.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledPackage {
    /// The package as the entry names it; several are separated by blanks.
    pub package: String,
    /// The folder it is installed in: `<cache>/_npx/<hash>`. It may not exist.
    pub folder: PathBuf,
}

/// A variable of the host that a server does not get. Its value is never part of it.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithheldVariable {
    /// Its name.
    pub name: String,
    /// Why the server may miss it.
    pub purpose: VariablePurpose,
}

/// What a server may need a variable for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariablePurpose {
    /// Installing the server: a setting of npm, pip, uv and others, or a proxy.
    Install,
    /// Finding the code that runs: `PYTHONPATH`, `NODE_OPTIONS`.
    Code,
    /// Access to a service: a token, a key, a password.
    Credential,
    /// Anything else.
    Unknown,
}

/// What a connector leads to, as far as it helps to explain a failure. Nothing in it is secret.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Destination {
    /// A part of this program, or something it knows nothing about.
    #[default]
    Unknown,
    /// A program, as the entry names it.
    Program(String),
    /// A place on a network.
    Address {
        /// The address as it may be shown.
        shown: String,
        /// The path of the resource.
        path: String,
        /// Whether the server is shown credentials: a header such as `Authorization`.
        has_credentials: bool,
        /// Whether a login could give it other credentials than those of its entry.
        can_log_in: bool,
        /// Whether a proxy is set for addresses of this kind.
        has_proxy: bool,
    },
}

impl Destination {
    /// Whether a refusal with status 401 means that the entry's own credentials are wrong, and no login can help.
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

/// An open way to a server. Dropping the last handle ends it as [`close`](Link::close) does, without waiting.
pub trait Link: Send + Sync + 'static {
    /// Sends one message.
    ///
    /// The message takes its place in the order of messages before this returns; the future only waits until it
    /// is handed over. A future that is dropped does not take the message back. For a request it is over when the
    /// request is on its way; all that comes of it, success or failure, goes to the [`Inbound`]. For anything else
    /// it is over when the server has taken the message, as far as the transport can tell.
    fn send(&self, message: Outgoing) -> Sending<'_>;

    /// Whether the transport has headers. Where it has none, there is no need to make them.
    fn has_headers(&self) -> bool {
        true
    }

    /// Nobody waits for this request's answer any longer.
    fn abandon(&self, request: u64) -> Abandoned;

    /// The handshake has ended with this revision.
    ///
    /// HTTP opens its stream for the server's own messages now, where the revision has one.
    fn opened(&self, revision: Revision);

    /// Waits until the link hears what the server says unasked, or is known not to.
    ///
    /// A server may ask a question as soon as it is called, and what it says to nobody is lost. Whoever waits bounds
    /// the time: some servers say nothing about their stream until there is something on it.
    fn listening(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends the link in the orderly way of the transport and waits until it has ended: a child process and all it
    /// started are gone, a session is deleted. Idempotent, and bounded in time by the transport itself.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// Ends the link as [`close`](Link::close) does and returns as soon as the other side has been told, where something
    /// else sees to the rest: the supervisor of a child process. For a program that is about to end.
    fn leave(&self) -> BoxFuture<'_, ()> {
        self.close()
    }

    /// The process behind the link, if there is one.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Whether the other side has ended without reading anything that was sent to it, as far as can be told.
    fn read_nothing(&self) -> bool {
        false
    }
}

/// A message on its way: nearly always there already, so that only what has to wait takes an allocation.
pub type Sending<'a> = Either<Ready<Sent>, BoxFuture<'a, Sent>>;

/// Whether a message was handed over.
pub type Sent = Result<(), TransportError>;

/// A message that is there, or never will be.
pub fn sent<'a>(sent: Sent) -> Sending<'a> {
    Either::Left(ready(sent))
}

/// A message that has a way to go.
pub fn sending<'a>(sent: impl Future<Output = Sent> + Send + 'a) -> Sending<'a> {
    Either::Right(Box::pin(sent))
}

/// One message to send.
#[derive(Debug)]
pub struct Outgoing {
    /// The whole JSON-RPC message, on one line, with no line end.
    pub payload: Vec<u8>,
    /// What kind of message it is.
    pub kind: OutgoingKind,
    /// The era it belongs to: whether it is part of a session, and how it is cancelled.
    pub era: Era,
    /// The headers its era wants, where the transport has headers.
    pub headers: Vec<Header>,
}

/// What kind of message is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutgoingKind {
    /// A request with this id.
    Request(u64),
    /// A notification.
    Notification,
    /// An answer to a request of the server.
    Response,
}

/// Whether the server learns that a request was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abandoned {
    /// The transport has told it, by closing the request's stream.
    Told,
    /// It has to be told with a message.
    NotTold,
}

/// Where a link delivers. Calls are short and never block: they come from the task that reads, or from a sender that has
/// found something to read.
pub trait Inbound: Send + Sync + 'static {
    /// A frame: a line, a body, the data of an event. It may be anything, JSON or not.
    fn frame(&self, frame: Bytes);

    /// A frame over the limit on size; `start` is its beginning, enough to find an id in. The link has skipped it.
    fn oversized(&self, start: &[u8], limit: usize);

    /// This request gets no answer; the link lives on.
    fn failed(&self, request: u64, failure: RequestFailure);

    /// A line the server wrote for people (stderr), without its line end.
    fn diagnostic(&self, line: &str);

    /// The link has ended and delivers nothing more. At most once.
    fn closed(&self, closed: Closed);
}
