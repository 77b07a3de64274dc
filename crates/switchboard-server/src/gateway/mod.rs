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
//! | `pass` | what is added to requests and results on their way, and what becomes of errors |
//! | `relay` | passes what servers ask on to the client whose request it belongs to |
//! | `waiting` | calls that wait until a client of the stateless era has provided input |
//! | `seal` | state that leaves for a client, sealed |
//! | `search_tools`, `budget` | search mode: three tools in place of all definitions, and for which clients |

mod budget;
mod direct;
mod offers;
mod pass;
mod relay;
mod seal;
mod search_tools;
mod session;
mod view;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use switchboard::internal::service::Sink;
use switchboard::service::Failure;
use switchboard::{Host, ServerName};
use switchboard_config::files::Folders;
use switchboard_config::resolve::Config;
use switchboard_protocol::{ErrorCode, ErrorObject};

use crate::handler::{Client, Exchange, Handler, service_exchange};
use offers::Offers;
use seal::Sealer;
use session::GatewaySession;
use view::{Profiles, View};
use waiting::WaitingCalls;

pub use relay::GatewayQuestions;
pub use search_tools::SearchMode;

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
    waiting: WaitingCalls,
}

impl Gateway {
    /// Serves the servers of `host`, whose handler and approver must be `questions`. Must be called within a tokio
    /// runtime.
    pub fn new(host: Host, questions: GatewayQuestions, options: GatewayOptions) -> Self {
        let profiles = Profiles::default();
        let offers = Offers::new(host.clone(), options.transparent.clone());
        let everything = profiles.follow(View::new(offers));
        Self(Arc::new(Core {
            host,
            everything,
            profiles,
            options,
            questions,
            sealer: Sealer::new(),
            waiting: WaitingCalls::default(),
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
        let session = GatewaySession::new(Arc::clone(&self.0), view, client, number);
        service_exchange(Arc::new(session), sink)
    }

    fn has_profile(&self, profile: &str) -> bool {
        let only = self.0.options.profile.as_deref();
        only.is_none_or(|only| only == profile) && self.0.profiles.has(profile)
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
