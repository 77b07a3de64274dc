//! Who uses the daemon, and how much: connected clients and the number of calls.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::internal::service::{ClientFrame, ClientMessage, Sink};
use switchboard_config::text::visible;
use switchboard_protocol::headers::ReceivedHeaders;
use switchboard_protocol::types::method::{Initialize, Request as _};
use switchboard_protocol::{ErrorObject, Method};
use switchboard_server::{Client, ClientKind, Exchange, Principal};

/// The clients and calls of a daemon. Cheap to clone; clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Activity(Arc<Shared>);

#[derive(Default)]
struct Shared {
    clients: Mutex<BTreeMap<u64, ConnectedClient>>,
    numbered: AtomicU64,
    calls: AtomicU64,
}

/// A client that is connected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConnectedClient {
    /// What it calls itself; `None` before its handshake.
    pub(crate) name: Option<String>,
    pub(crate) principal: Principal,
    /// Its working directory; `None` over HTTP.
    pub(crate) folder: Option<PathBuf>,
}

impl Activity {
    pub(crate) fn clients(&self) -> Vec<ConnectedClient> {
        self.table().values().cloned().collect()
    }

    /// Tool calls since the daemon was started.
    pub(crate) fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// Whether a client over HTTP has a session.
    pub(crate) fn has_sessions(&self) -> bool {
        let clients = self.table();
        let mut clients = clients.values();
        clients.any(|client| client.folder.is_none())
    }

    /// Follows a client for as long as its exchange lives.
    pub(super) fn follow(
        &self,
        client: &Client,
        folder: Option<PathBuf>,
        exchange: Box<dyn Exchange>,
    ) -> Box<dyn Exchange> {
        // Requests outside of sessions come and go.
        let number = (client.kind != ClientKind::Request).then(|| {
            let number = self.0.numbered.fetch_add(1, Ordering::Relaxed);
            let connected = ConnectedClient {
                name: None,
                principal: client.principal.clone(),
                folder,
            };
            self.table().insert(number, connected);
            number
        });
        Box::new(Followed {
            exchange,
            activity: self.clone(),
            number,
        })
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<u64, ConnectedClient>> {
        self.0
            .clients
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectedClient {
    /// Its name, sanitized.
    pub(crate) fn shown_name(&self) -> String {
        let name = self.name.as_deref().unwrap_or("unnamed");
        visible(name).into_owned()
    }

    /// Its process id, if it is a process of this machine.
    pub(crate) fn process(&self) -> Option<u32> {
        match self.principal {
            Principal::Process(process) => process,
            _ => None,
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        json!({
            "name": self.name,
            "principal": self.principal.to_string(),
            "pid": self.process(),
            "folder": self.folder.as_ref().map(|folder| folder.display().to_string()),
        })
    }
}

struct Followed {
    exchange: Box<dyn Exchange>,
    activity: Activity,
    /// Its place in the table.
    number: Option<u64>,
}

impl Followed {
    fn note(&self, frame: &ClientFrame) {
        for message in frame.messages().iter().flatten() {
            let ClientMessage::Request(request) = message else {
                continue;
            };
            if request.method.is(Method::ToolsCall) {
                self.activity.0.calls.fetch_add(1, Ordering::Relaxed);
            } else if request.method.is(Method::Initialize)
                && let Some(number) = self.number
                && let Ok(hello) = Initialize::decode_params(request.params())
            {
                let name = hello.client_info.name.into_owned();
                if let Some(client) = self.activity.table().get_mut(&number) {
                    client.name = Some(name);
                }
            }
        }
    }
}

impl Exchange for Followed {
    fn receive(&self, frame: ClientFrame, sink: &Arc<dyn Sink>) {
        self.note(&frame);
        self.exchange.receive(frame, sink);
    }

    fn check_headers(
        &self,
        headers: &ReceivedHeaders<'_>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject<'static>> {
        self.exchange.check_headers(headers, method, params)
    }

    fn in_flight(&self) -> usize {
        self.exchange.in_flight()
    }

    fn close(&self) {
        self.exchange.close();
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.exchange.ended()
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.activity.table().remove(&number);
        }
    }
}
