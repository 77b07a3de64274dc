//! Connections that belong to one client each.
//!
//! A server that is bound to its client (`shared = "never"`, or because it asked something outside of a call) gets a
//! connection for each client that calls it. The connection of the host remains for its lists.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde_json::value::RawValue;
use switchboard_protocol::ErrorObject;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::types::elicitation::{ElicitRequestParams, ElicitResult};
use switchboard_protocol::types::roots::ListRootsResult;
use switchboard_protocol::types::sampling::{CreateMessageRequestParams, CreateMessageResult};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use crate::caller::{AskedBy, Caller, asked_by};
use crate::handler::{ClientHandler, QuestionLimits};
use crate::memory::Memory;
use crate::names::ServerName;
use crate::peer::{self, Observer, OpenOptions, Peer, RequestError};
use crate::spec::ServerSpec;
use crate::transport::{TransportError, TransportErrorKind};

/// What connections of clients are opened with.
pub(crate) struct ClientSettings {
    pub(crate) spec: Arc<ServerSpec>,
    pub(crate) options: OpenOptions,
    pub(crate) observer: Arc<dyn Observer>,
    pub(crate) handler: Arc<dyn ClientHandler>,
    /// Idle time after which the connection of a client is closed; `None`: never.
    pub(crate) idle: Option<Duration>,
}

/// The connections of the clients of one server.
pub(crate) struct ClientConnections {
    settings: ClientSettings,
    is_bound: AtomicBool,
    table: Mutex<HashMap<u64, ClientConnection>>,
}

struct ClientConnection {
    /// Opened by the first call; others of the client wait.
    peer: Arc<OnceCell<Peer>>,
    used: Instant,
}

impl ClientConnections {
    pub(crate) fn new(settings: ClientSettings, is_bound: bool) -> Self {
        Self {
            settings,
            is_bound: AtomicBool::new(is_bound),
            table: Mutex::default(),
        }
    }

    /// From now on, each client gets a connection of its own.
    pub(crate) fn bind(&self) {
        self.is_bound.store(true, Ordering::Release);
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.is_bound.load(Ordering::Acquire)
    }

    /// The connection of the client that makes this request.
    pub(crate) async fn of(&self, caller: &Arc<Caller>) -> Result<Peer, RequestError> {
        self.close_idle();
        let place = {
            let mut table = self.table();
            let connection = table
                .entry(caller.owner)
                .or_insert_with(ClientConnection::new);
            // One whose process has ended is replaced.
            if connection.peer.get().is_some_and(|peer| !peer.is_open()) {
                *connection = ClientConnection::new();
            }
            connection.used = Instant::now();
            Arc::clone(&connection.peer)
        };
        let opened = place.get_or_try_init(|| self.open(caller)).await;
        opened.cloned()
    }

    /// Closes the connection of a client that has ended.
    pub(crate) fn end(&self, owner: u64) {
        let connection = self.table().remove(&owner);
        connection.into_iter().for_each(ClientConnection::close);
    }

    /// Whether a client has a connection.
    pub(crate) fn is_in_use(&self) -> bool {
        !self.table().is_empty()
    }

    /// Closes connections that their clients have not used for the idle time.
    pub(crate) fn close_idle(&self) {
        let Some(limit) = self.settings.idle else {
            return;
        };
        let mut table = self.table();
        let idle = table.extract_if(|_, connection| {
            let is_busy = connection.peer.get().is_none_or(Peer::is_in_use);
            !is_busy && connection.used.elapsed() >= limit
        });
        let idle: Vec<ClientConnection> = idle.map(|(_, connection)| connection).collect();
        drop(table);
        idle.into_iter().for_each(ClientConnection::close);
    }

    async fn open(&self, caller: &Arc<Caller>) -> Result<Peer, RequestError> {
        let ClientSettings {
            spec,
            options,
            observer,
            handler,
            ..
        } = &self.settings;
        let handler = Arc::new(ForClient {
            handler: spec.roots.handler(handler),
            capabilities: caller.handler.capabilities(),
            caller: Arc::downgrade(caller),
        });
        let opening = peer::open(
            &spec.name,
            &*spec.connector,
            options,
            Arc::clone(observer),
            handler,
            &|_| {},
        );
        let failed = |text: String| {
            RequestError::NotSent(TransportError::new(TransportErrorKind::Spawn, text))
        };
        match timeout(spec.startup_timeout, opening).await {
            Ok(opened) => opened.map_err(|error| failed(error.to_string())),
            Err(_) => Err(failed(format!(
                "not ready within {} s",
                spec.startup_timeout.as_secs_f64()
            ))),
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<u64, ClientConnection>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ClientConnections {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ClientConnections")
            .field("is_bound", &self.is_bound())
            .finish_non_exhaustive()
    }
}

impl ClientConnection {
    fn new() -> Self {
        Self {
            peer: Arc::default(),
            used: Instant::now(),
        }
    }

    fn close(self) {
        let peer = self.peer.get().cloned();
        if let (Some(peer), Ok(runtime)) = (peer, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move { peer.close().await });
        }
    }
}

/// Answers a server whose connection belongs to one client. What it asks while the connection opens belongs to the call
/// that the connection is opened for.
struct ForClient {
    handler: Arc<dyn ClientHandler>,
    capabilities: ClientCapabilities<'static>,
    caller: Weak<Caller>,
}

impl ForClient {
    fn asked(&self) -> AskedBy {
        match (asked_by(), self.caller.upgrade()) {
            (AskedBy::NoRequest, Some(caller)) => AskedBy::Client(caller),
            (asked, _) => asked,
        }
    }
}

impl ClientHandler for ForClient {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        ClientCapabilities {
            // The host answers for clients without roots.
            roots: self.handler.capabilities().roots,
            ..self.capabilities.clone()
        }
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        let asked = self.asked();
        async move {
            asked
                .scope(async { self.handler.elicit(server, params).await })
                .await
        }
        .boxed()
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        let asked = self.asked();
        async move {
            let answer = async { self.handler.create_message(server, params).await };
            asked.scope(answer).await
        }
        .boxed()
    }

    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        let asked = self.asked();
        async move {
            asked
                .scope(async { self.handler.list_roots(server).await })
                .await
        }
        .boxed()
    }

    fn other<'a>(
        &'a self,
        server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        let asked = self.asked();
        async move {
            let answer = async { self.handler.other(server, method, params).await };
            asked.scope(answer).await
        }
        .boxed()
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&RawValue>) {
        self.handler.notified(server, method, params);
    }

    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        self.handler.flooded(server, limits);
    }
}

/// The handler of a connection that clients share. A question outside of a call proves that the server is bound to its
/// client, which is then remembered.
pub(crate) struct BindingHandler {
    pub(crate) handler: Arc<dyn ClientHandler>,
    pub(crate) spec: Arc<ServerSpec>,
    pub(crate) memory: Memory,
    pub(crate) clients: Arc<ClientConnections>,
}

impl BindingHandler {
    fn note(&self) {
        if !matches!(asked_by(), AskedBy::NoRequest) || self.clients.is_bound() {
            return;
        }
        tracing::info!(server = %self.spec.name, "the server asks outside of calls: each client gets its own");
        self.clients.bind();
        let (memory, key) = (self.memory.clone(), self.spec.key);
        tokio::spawn(async move { memory.remember_bound(key).await });
    }
}

impl ClientHandler for BindingHandler {
    fn capabilities(&self) -> ClientCapabilities<'static> {
        self.handler.capabilities()
    }

    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        self.note();
        self.handler.elicit(server, params)
    }

    fn create_message<'a>(
        &'a self,
        server: &'a ServerName,
        params: CreateMessageRequestParams<'a>,
    ) -> BoxFuture<'a, Result<CreateMessageResult<'static>, ErrorObject<'static>>> {
        self.note();
        self.handler.create_message(server, params)
    }

    fn list_roots<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<ListRootsResult<'static>, ErrorObject<'static>>> {
        // Roots that the entry sets are the same for all clients.
        if self.spec.roots == crate::roots::Roots::OfHandler {
            self.note();
        }
        self.handler.list_roots(server)
    }

    fn other<'a>(
        &'a self,
        server: &'a ServerName,
        method: &'a str,
        params: Option<&'a RawValue>,
    ) -> BoxFuture<'a, Result<Box<RawValue>, ErrorObject<'static>>> {
        self.note();
        self.handler.other(server, method, params)
    }

    fn notified(&self, server: &ServerName, method: &str, params: Option<&RawValue>) {
        self.handler.notified(server, method, params);
    }

    fn flooded(&self, server: &ServerName, limits: QuestionLimits) {
        self.handler.flooded(server, limits);
    }
}
