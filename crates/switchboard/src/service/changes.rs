//! How a service tells all its clients that something changed.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use switchboard_protocol::Method;

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// The list of tools.
    Tools,
    /// The list of prompts.
    Prompts,
    /// The list of resources.
    Resources,
    /// The contents of this resource.
    Resource(Arc<str>),
}

impl Change {
    /// The notification that tells of it.
    pub(super) fn method(&self) -> Method {
        match self {
            Self::Tools => Method::ToolsListChanged,
            Self::Prompts => Method::PromptsListChanged,
            Self::Resources => Method::ResourcesListChanged,
            Self::Resource(_) => Method::ResourcesUpdated,
        }
    }
}

/// Who is told.
pub(super) trait Listener: Send + Sync {
    fn changed(&self, change: &Change);
}

/// Where a service announces changes: a field of it, handed out by [`Service::changes`](super::Service::changes).
/// Every client hears of what it asked to hear of, and nothing is kept for those that come later.
#[derive(Default)]
pub struct Changes(Mutex<Vec<Weak<dyn Listener>>>);

impl Changes {
    /// The list of tools changed.
    pub fn tools(&self) {
        self.tell(&Change::Tools);
    }

    /// The list of prompts changed.
    pub fn prompts(&self) {
        self.tell(&Change::Prompts);
    }

    /// The list of resources changed.
    pub fn resources(&self) {
        self.tell(&Change::Resources);
    }

    /// The contents of a resource changed.
    pub fn resource(&self, uri: &str) {
        self.tell(&Change::Resource(uri.into()));
    }

    /// Adds a client. It is forgotten when it is gone.
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
