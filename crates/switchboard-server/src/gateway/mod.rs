//! The gateway: all servers of a host behind one MCP server.
//!
//! Every call goes through [`Host::request`], so permissions, pins, limits, hooks and the audit log apply. Results pass
//! as the servers sent them. Both eras meet here: clients of either one use servers of either one.
//!
//! | where | what |
//! |---|---|
//! | this file | the handler behind a front end: one session per client, and events of the host for all of them |
//! | `session` | one client: its requests, forwarded to the servers |
//! | `direct` | requests that pass to one server as they are |
//! | `offers` | what all servers offer as one list, and the way back from an exposed name to its server |
//! | `view` | what the clients of one endpoint get: everything, or what a profile includes |
//! | `extensions`, `tasks` | methods of extensions and of tasks; the ids of tasks |
//! | `metrics` | counts calls, and writes the counters for Prometheus |
//! | `pass` | what is added to requests and results on their way, and what becomes of errors |
//! | `relay` | passes what servers ask on to the client whose request it belongs to |
//! | `waiting` | calls that wait until a client of the stateless era has provided input |
//! | `seal` | state that leaves for a client, sealed |
//! | `search_tools`, `budget` | search mode: three tools in place of all definitions, and for which clients |

mod budget;
mod direct;
mod extensions;
mod metrics;
mod offers;
mod pass;
mod relay;
mod seal;
mod search_tools;
mod session;
mod tasks;
mod view;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::future::BoxFuture;
use serde_json::value::RawValue;
use switchboard::internal::service::{ClientFrame, Sink};
use switchboard::service::Failure;
use switchboard::status::{ServerState, ServerStatus};
use switchboard::{Host, ServerName};
use switchboard_config::files::Folders;
use switchboard_config::resolve::Config;
use switchboard_protocol::headers::ReceivedHeaders;
use switchboard_protocol::types::method::{CallTool, Request as _};
use switchboard_protocol::{ErrorCode, ErrorObject, Method, Revision, trusted};
use tokio::sync::Semaphore;

use crate::handler::{
    Client, ClientKind, Exchange, Handler, Readiness, ServerReadiness, SessionKey, service_exchange,
};
use metrics::Metrics;
use offers::Offers;
use seal::{GatewayKey, Sealer};
use session::GatewaySession;
use tasks::TaskIds;
use view::{Profiles, View};
use waiting::WaitingCalls;

pub use relay::GatewayQuestions;
pub use search_tools::SearchMode;

/// Notifications of clients that may be on their way to servers at once; more are dropped.
const MAX_NOTIFYING: usize = 256;

/// What a gateway offers, and how.
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// Offer one server as it is, with its own names and identity.
    pub transparent: Option<ServerName>,
    /// The profile of all clients; `None`: each client may choose one.
    pub profile: Option<Arc<str>>,
    /// Pass requests to the one server as they are, for clients that apply permissions, pins and limits themselves.
    pub direct: bool,
    /// Whether clients get search tools instead of all definitions.
    pub search: SearchMode,
    /// Tokens of definitions from which `auto` means search; `None`: by the client.
    pub search_budget: Option<u64>,
    /// Whether there is only one client ever, as over standard input and output. Servers are then connected with the
    /// capabilities of that client.
    pub single_client: bool,
}

/// Numbers the clients of all gateways: connections may be shared by several hosts.
static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// Serves all servers of a host as one. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct Gateway(Arc<Core>);

struct Core {
    host: Host,
    /// What clients without a profile get.
    everything: Arc<View>,
    profiles: Profiles,
    options: GatewayOptions,
    questions: GatewayQuestions,
    sealer: Option<Sealer>,
    tasks: Option<TaskIds>,
    /// Bounds the notifications of clients that are being passed on.
    notifying: Arc<Semaphore>,
    waiting: WaitingCalls,
    metrics: Arc<Metrics>,
    /// Whether a client has started the servers.
    has_started: AtomicBool,
}

impl Gateway {
    /// Serves the servers of `host`, whose handler and approver must be `questions`. Must be called within a tokio
    /// runtime.
    pub fn new(host: Host, questions: GatewayQuestions, options: GatewayOptions) -> Self {
        let profiles = Profiles::default();
        let offers = Offers::new(host.clone(), options.transparent.clone());
        let everything = profiles.follow(View::new(offers));
        let key = GatewayKey::random();
        Self(Arc::new(Core {
            host,
            everything,
            profiles,
            options,
            questions,
            sealer: key.as_ref().and_then(Sealer::new),
            tasks: key.as_ref().map(TaskIds::new),
            notifying: Arc::new(Semaphore::new(MAX_NOTIFYING)),
            waiting: WaitingCalls::default(),
            metrics: Arc::default(),
            has_started: AtomicBool::new(false),
        }))
    }

    /// Serves the profiles of a configuration, in place of those before. Clients of a profile that is gone or cannot be
    /// used get nothing. Must be called within a tokio runtime.
    pub fn set_profiles(&self, config: &Config, folders: &Folders) {
        // With transparent mode, there is one server under its own names.
        if self.0.options.transparent.is_none() {
            self.0.profiles.set(&self.0.host, config, folders);
        }
    }
}

impl Handler for Gateway {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        let number = CLIENTS.fetch_add(1, Ordering::Relaxed) + 1;
        let profile = self.0.options.profile.as_ref().or(client.profile.as_ref());
        let view = match profile {
            None => Arc::clone(&self.0.everything),
            Some(profile) => self.0.profiles.view(&self.0.host, profile),
        };
        let session = GatewaySession::new(Arc::clone(&self.0), Arc::clone(&view), client, number);
        Box::new(GatewayExchange {
            view,
            inner: service_exchange(Arc::new(session), sink),
        })
    }

    fn resume(
        &self,
        client: &Client,
        _sink: Arc<dyn Sink>,
    ) -> Option<(Box<dyn Exchange>, Revision)> {
        // A session of the stateful era lives in the memory of its node. Its client has to start a new one.
        let ClientKind::Session(session) = &client.kind else {
            return None;
        };
        let sealer = self.0.sealer.as_ref()?;
        let owner = sealer.node_of_session(session.as_str())?;
        let is_own = owner == sealer.node();
        tracing::debug!(
            ?session,
            ?owner,
            is_own,
            "the session has ended, or is at another node"
        );
        None
    }

    fn session_key(&self) -> Option<SessionKey> {
        let sealer = self.0.sealer.as_ref()?;
        SessionKey::new(&sealer.session_id()?)
    }

    fn readiness(&self) -> Readiness {
        let statuses = self.0.host.statuses();
        let is_usable = |state: &ServerState| {
            use ServerState::{Connected, Idle, Lazy};
            matches!(state, Connected | Idle | Lazy { .. })
        };
        let is_missing = |status: &ServerStatus| status.required && !is_usable(&status.state);
        let servers = statuses.iter().map(|status| {
            let tools = status.state.is_connected().then_some(status.count.offered);
            let is_empty = tools == Some(0);
            let empty = || "connected, but it offers no tools".to_owned();
            ServerReadiness {
                name: status.name.to_string(),
                state: if is_empty { "empty" } else { status.word() },
                is_required: status.required,
                tools,
                reason: status.reason().or_else(|| is_empty.then(empty)),
            }
        });
        Readiness {
            is_ready: !statuses.iter().any(is_missing),
            servers: servers.collect(),
        }
    }

    fn metrics(&self) -> Option<String> {
        Some(self.0.metrics.text(&self.0.host))
    }

    fn has_profile(&self, profile: &str) -> bool {
        let only = self.0.options.profile.as_deref();
        only.is_none_or(|only| only == profile) && self.0.profiles.has(profile)
    }
}

/// The exchange with one client.
struct GatewayExchange {
    view: Arc<View>,
    inner: Box<dyn Exchange>,
}

impl Exchange for GatewayExchange {
    fn receive(&self, frame: ClientFrame, sink: &Arc<dyn Sink>) {
        self.inner.receive(frame, sink);
    }

    /// Checks mirrored parameters here, because the request that the server gets has headers of our own.
    fn check_headers(
        &self,
        headers: &ReceivedHeaders<'_>,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject<'static>> {
        if method != Method::ToolsCall.name() {
            return Ok(());
        }
        // Invalid params and unknown tools are rejected when the call is made.
        let Ok(call) = CallTool::decode_params(params) else {
            return Ok(());
        };
        let offers = &self.view.offers;
        let catalog = offers.host.catalog();
        let Ok(tool) = catalog.find(&offers.host_name(&call.name)) else {
            return Ok(());
        };
        let arguments = call.arguments.as_ref();
        let arguments = arguments.and_then(|arguments| trusted(arguments.get()));
        let checked = tool.param_headers().check(headers, arguments);
        checked.map_err(|mismatch| mismatch.to_error())
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn close(&self) {
        self.inner.close();
    }

    fn ended(&self) -> BoxFuture<'_, ()> {
        self.inner.ended()
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Gateway")
            .field("options", &self.0.options)
            .finish_non_exhaustive()
    }
}

fn internal(message: &str) -> Failure {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, message.to_owned()).into()
}
