//! Events that a host broadcasts: start-up, states, lists, calls, logs.
//!
//! Events are notifications, not state: a receiver that falls behind loses the oldest ones and learns how many. The
//! state itself is in the host's snapshots.

use std::fmt;
use std::time::Duration;

use tokio::sync::broadcast;

use crate::catalog::suspicion::Flag;
use crate::json::SharedJson;
use crate::names::{CallId, ServerName, WireName};
use crate::peer::{ListKind, Progress};
use crate::status::ServerState;

/// A change in a host.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A server that is starting has changed state.
    StartupUpdate {
        /// The server.
        server: ServerName,
        /// Its state now.
        state: ServerState,
    },
    /// Every server that was started is connected, failed, or waiting for a login.
    StartupComplete {
        /// Connected servers.
        ready: Vec<ServerName>,
        /// Servers that are not connected, with the reason.
        failed: Vec<(ServerName, String)>,
    },
    /// The package runner of a starting server is installing it and makes progress. Emitted about once a second.
    Installing {
        /// The server.
        server: ServerName,
        /// Time since the installation began.
        elapsed: Duration,
        /// The last line of its output, unsanitized.
        line: Option<String>,
    },
    /// A server's state has changed.
    StateChanged {
        /// The server.
        server: ServerName,
        /// Its state now, with the reason.
        state: ServerState,
    },
    /// A server was removed and no longer has a status.
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
    /// A known server lists new tools, which are now pinned as they are.
    ToolsPinned {
        /// The server.
        server: ServerName,
        /// The tools.
        tools: Vec<WireName>,
    },
    /// A definition differs from its pin and is withheld until a user approves it.
    PinsDiffer {
        /// The server.
        server: ServerName,
        /// The tools that are set aside.
        tools: Vec<WireName>,
        /// Whether the instructions are withheld, too.
        instructions: bool,
    },
    /// A server's instructions or tool definitions look suspicious. They are offered all the same.
    Suspicious {
        /// The server.
        server: ServerName,
        /// The findings by tool; `None` stands for the instructions.
        found: Vec<(Option<WireName>, Vec<Flag>)>,
    },
    /// A subscribed resource has changed.
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
    /// Progress of a call, or a sign that it is still running.
    CallProgress {
        /// The call.
        call: CallId,
        /// The progress; `None` if the server has sent none since the last event.
        progress: Option<Progress>,
        /// Time since the call began.
        elapsed: Duration,
    },
    /// A call finished.
    CallEnd {
        /// The call.
        call: CallId,
        /// The server; `None` for a local tool.
        server: Option<ServerName>,
        /// The tool.
        tool: WireName,
        /// The duration of the call.
        elapsed: Duration,
        /// Whether the call failed: the tool reported an error, or there is no result.
        is_error: bool,
        /// The result as the server sent it, shared rather than copied; `None` if there is none.
        result: Option<CallResult>,
        /// The reason there is no result; `None` if there is one.
        error: Option<String>,
    },
    /// A server logged a message or wrote a line to stderr.
    Log {
        /// The server.
        server: ServerName,
        /// The message or line.
        line: LogLine,
    },
    /// A server sent a notification that belongs to no request, for the clients of a gateway: a log message (besides
    /// [`Event::Log`]), or a method that is not part of the specification.
    #[doc(hidden)]
    Notification {
        /// The server.
        server: ServerName,
        /// Its method.
        method: String,
        /// Its parameters.
        params: Option<SharedJson>,
    },
    /// A server requires a login.
    AuthNeeded {
        /// The server.
        server: ServerName,
    },
    /// A server that required a login is connected: a user has logged in, here or in another process.
    LoggedIn {
        /// The server.
        server: ServerName,
        /// The number of tools it offers.
        tools: usize,
    },
}

/// The result of a call. `Debug` prints only its size: events end up in logs, and results may hold secrets.
#[derive(Clone, PartialEq)]
pub struct CallResult(pub SharedJson);

impl fmt::Debug for CallResult {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} bytes", self.0.as_str().len())
    }
}

/// One log line of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// The source of the line.
    pub source: LogSource,
    /// The text, as the server wrote it.
    pub text: String,
}

/// The source of a log line.
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
    /// Input where a protocol message was expected, and that is not one.
    Noise,
}

impl Event {
    /// Whether the event is about a call, not about a server.
    fn is_of_a_call(&self) -> bool {
        matches!(
            self,
            Self::CallBegin { .. } | Self::CallProgress { .. } | Self::CallEnd { .. }
        )
    }
}

/// Broadcasts events. Cheap to clone.
///
/// Most listeners only follow servers. They have a channel of their own, so that a call does not wake them.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    all: broadcast::Sender<Event>,
    of_servers: broadcast::Sender<Event>,
}

/// Events buffered for a receiver before it loses the oldest.
const CAPACITY: usize = 1024;

impl Events {
    pub(crate) fn new() -> Self {
        Self {
            all: broadcast::Sender::new(CAPACITY),
            of_servers: broadcast::Sender::new(CAPACITY),
        }
    }

    /// Whether events of servers have receivers, for events that are expensive to build.
    pub(crate) fn has_listeners(&self) -> bool {
        self.has_call_listeners() || self.of_servers.receiver_count() > 0
    }

    /// Whether events of calls have receivers.
    pub(crate) fn has_call_listeners(&self) -> bool {
        self.all.receiver_count() > 0
    }

    pub(crate) fn send(&self, event: Event) {
        if !event.is_of_a_call() && self.of_servers.receiver_count() > 0 {
            let _ = self.of_servers.send(event.clone());
        }
        let _ = self.all.send(event);
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Event> {
        self.all.subscribe()
    }

    /// Subscribes to all events but those of calls.
    pub(crate) fn subscribe_to_servers(&self) -> broadcast::Receiver<Event> {
        self.of_servers.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_follows_servers_is_not_woken_by_calls() {
        let events = Events::new();
        let mut of_servers = events.subscribe_to_servers();
        assert!(events.has_listeners());
        assert!(!events.has_call_listeners());
        let mut all = events.subscribe();
        assert!(events.has_call_listeners());
        events.send(Event::CallBegin {
            call: CallId(1),
            server: None,
            tool: "tool".into(),
        });
        events.send(Event::Removed {
            server: "one".into(),
        });
        assert!(matches!(all.try_recv(), Ok(Event::CallBegin { .. })));
        assert!(matches!(all.try_recv(), Ok(Event::Removed { .. })));
        assert!(matches!(of_servers.try_recv(), Ok(Event::Removed { .. })));
        assert!(of_servers.try_recv().is_err());
    }
}
