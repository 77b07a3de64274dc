//! What a host tells whoever listens: start-up, states, lists, calls, logs.
//!
//! Owns the vocabulary and the channel. Events are news, not state: who falls behind loses the oldest ones and
//! learns how many; the state itself is in the host's snapshots.

use std::fmt;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::catalog::suspicion::Flag;
use crate::json::SharedJson;
use crate::names::{CallId, ServerName, WireName};
use crate::peer::{ListKind, Progress};
use crate::status::ServerState;

/// Something that happened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A server that is being started has come further.
    StartupUpdate {
        /// The server.
        server: ServerName,
        /// Its state now.
        state: ServerState,
    },
    /// Every server that was to be started is connected, failed, or waits for a login.
    StartupComplete {
        /// Those that are connected.
        ready: Vec<ServerName>,
        /// Those that are not, each with its reason.
        failed: Vec<(ServerName, String)>,
    },
    /// The package runner of a server that is being started installs it, and makes progress. Told about once a second.
    Installing {
        /// The server.
        server: ServerName,
        /// How long it has been at it.
        elapsed: Duration,
        /// The last line that it wrote for people, as it wrote it.
        line: Option<String>,
    },
    /// A server's state has changed.
    StateChanged {
        /// The server.
        server: ServerName,
        /// Its state now, with the reason.
        state: ServerState,
    },
    /// A server was removed. It has no status any more.
    Removed {
        /// The server.
        server: ServerName,
    },
    /// One of a server's lists has changed.
    CatalogChanged {
        /// The server.
        server: ServerName,
        /// The list.
        list: ListKind,
    },
    /// A server that is known has tools that it did not have before. They are pinned as they are now.
    ToolsPinned {
        /// The server.
        server: ServerName,
        /// The tools.
        tools: Vec<WireName>,
    },
    /// Something of a server differs from its pins and is withheld until somebody approves it.
    PinsDiffer {
        /// The server.
        server: ServerName,
        /// The tools that are set aside.
        tools: Vec<WireName>,
        /// Whether the instructions are withheld.
        instructions: bool,
    },
    /// What a server says of itself or of its tools looks suspicious. It is offered all the same.
    Suspicious {
        /// The server.
        server: ServerName,
        /// What was found, by tool; without one it is in the instructions.
        found: Vec<(Option<WireName>, Vec<Flag>)>,
    },
    /// A resource that was subscribed to has changed.
    ResourceUpdated {
        /// The server.
        server: ServerName,
        /// The resource.
        uri: String,
    },
    /// A call begins.
    CallBegin {
        /// The call.
        call: CallId,
        /// The server; `None` for a local tool.
        server: Option<ServerName>,
        /// The tool.
        tool: WireName,
    },
    /// A call tells how far it is, or merely that it is alive.
    CallProgress {
        /// The call.
        call: CallId,
        /// How far it is; `None` if nothing was heard since the last time.
        progress: Option<Progress>,
        /// How long it has been running.
        elapsed: Duration,
    },
    /// A call has ended.
    CallEnd {
        /// The call.
        call: CallId,
        /// The server; `None` for a local tool.
        server: Option<ServerName>,
        /// The tool.
        tool: WireName,
        /// How long it took.
        elapsed: Duration,
        /// Whether it failed: the tool says so itself, or there is no result.
        is_error: bool,
        /// The result as the server sent it, shared and not copied; `None` if there is none.
        result: Option<CallResult>,
        /// Why there is no result, if there is none.
        error: Option<String>,
    },
    /// A server says something: a log message, or a line on its stderr.
    Log {
        /// The server.
        server: ServerName,
        /// What it says.
        line: LogLine,
    },
    /// A server requires a login.
    AuthNeeded {
        /// The server.
        server: ServerName,
    },
    /// A server that wanted a login is connected: somebody has logged in, here or in another process.
    LoggedIn {
        /// The server.
        server: ServerName,
        /// How many tools it offers.
        tools: usize,
    },
}

/// The result of a call, for whoever listens. What is printed of it for debugging is its size: events end up in logs, and
/// results may hold secrets.
#[derive(Clone, PartialEq)]
pub struct CallResult(pub SharedJson);

impl fmt::Debug for CallResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.as_str().len())
    }
}

/// One line of what a server says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// Where it comes from.
    pub source: LogSource,
    /// The text, as the server wrote it.
    pub text: String,
}

/// Where a line comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSource {
    /// The process's stderr.
    Stderr,
    /// A log message, with its level and logger.
    Message {
        /// The level, as the protocol names it.
        level: String,
        /// The logger, if it has a name.
        logger: Option<String>,
    },
    /// Something that was no message where one was expected.
    Noise,
}

/// Where events go. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Events(broadcast::Sender<Event>);

/// How many events a listener may fall behind.
const CAPACITY: usize = 1024;

impl Events {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(CAPACITY))
    }

    /// Whether anybody listens, for events that cost something to make.
    pub(crate) fn has_listeners(&self) -> bool {
        self.0.receiver_count() > 0
    }

    pub(crate) fn send(&self, event: Event) {
        let _ = self.0.send(event);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.0.subscribe()
    }
}
