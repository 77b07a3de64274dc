//! Broadcasts change notifications of a service to all its clients.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde_json::value::RawValue;
use switchboard_protocol::types::logging::LoggingMessageNotificationParams;
use switchboard_protocol::{Method, types};

use super::dispatch::severity;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Tools,
    Prompts,
    Resources,
    /// Contents of the resource with this URI.
    Resource(Arc<str>),
    /// A notification of any method (stateful era).
    Other {
        method: Arc<str>,
        /// The encoded params of the notification.
        params: Option<Arc<str>>,
    },
    /// A log message that belongs to no request (stateful era).
    Log {
        /// Index of its level, the least severe first.
        severity: usize,
        /// The encoded params of the notification.
        params: Arc<str>,
    },
}

impl Change {
    /// Method of the notification.
    pub(super) fn method(&self) -> &str {
        let method = match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources => Method::ResourcesListChanged,
            Self::Resource(_) => Method::ResourcesUpdated,
            Self::Log { .. } => Method::LogMessage,
            Self::Other { method, .. } => return method,
        };
        method.name()
    }
}

/// Receives the changes of a service.
pub(super) trait Listener: Send + Sync {
    fn changed(&self, change: &Change);
}

/// Announces changes: a field of a service, returned by [`Service::changes`](super::Service::changes). Each client
/// receives what it subscribed to; later clients receive no earlier changes.
#[derive(Default)]
pub struct Changes(Mutex<Vec<Weak<dyn Listener>>>);

impl Changes {
    /// Announces that the list of tools changed.
    pub fn tools(&self) {
        self.tell(&Change::Tools);
    }

    /// Announces that the list of prompts changed.
    pub fn prompts(&self) {
        self.tell(&Change::Prompts);
    }

    /// Announces that the list of resources changed.
    pub fn resources(&self) {
        self.tell(&Change::Resources);
    }

    /// Announces that the contents of a resource changed.
    pub fn resource(&self, uri: &str) {
        self.tell(&Change::Resource(uri.into()));
    }

    /// Sends a notification of any method to the clients of the stateful era.
    #[doc(hidden)]
    pub fn other(&self, method: &str, params: Option<&RawValue>) {
        self.tell(&Change::Other {
            method: method.into(),
            params: params.map(|params| params.get().into()),
        });
    }

    /// Sends a log message to the clients of the stateful era that want messages of its level.
    #[doc(hidden)]
    pub fn log(&self, message: &LoggingMessageNotificationParams<'_>) {
        if let Some(severity) = severity(&message.level) {
            self.tell(&Change::Log {
                severity,
                params: types::encode(message).into(),
            });
        }
    }

    /// Adds a client, which is removed once it is dropped.
    pub(super) fn add(&self, listener: Weak<dyn Listener>) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(listener);
    }

    fn tell(&self, change: &Change) {
        let listeners: Vec<Arc<dyn Listener>> = {
            let listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            listeners.iter().filter_map(Weak::upgrade).collect()
        };
        for listener in listeners {
            listener.changed(change);
        }
    }
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Changes").finish_non_exhaustive()
    }
}
