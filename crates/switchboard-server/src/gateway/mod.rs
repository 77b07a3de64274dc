//! The gateway: all servers of a host behind one MCP server.
//!
//! Every call goes through [`Host::request`], so permissions, pins, limits, hooks and the audit log apply. Results pass
//! as the servers sent them. Both eras meet here: clients of either one use servers of either one.
//!
//! | where | what |
//! |---|---|
//! | this file | the handler behind a front end: one session per client, and events of the host for all of them |
//! | `session` | one client: its requests, forwarded to the servers |
//! | `offers` | what all servers offer as one list, and the way back from an exposed name to its server |
//! | `pass` | what is added to requests and results on their way, and what becomes of errors |
//! | `relay` | passes what servers ask on to the client whose request it belongs to |
//! | `waiting` | calls that wait until a client of the stateless era has provided input |
//! | `seal` | state that leaves for a client, sealed |
//! | `search_tools` | search mode: three tools in place of all definitions |

mod offers;
mod pass;
mod relay;
mod seal;
mod search_tools;
mod session;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use switchboard::internal::service::Sink;
use switchboard::service::{Changes, Failure};
use switchboard::{Event, Host, ListKind, LogSource, ServerName};
use switchboard_protocol::types::logging::{LoggingLevel, LoggingMessageNotificationParams};
use switchboard_protocol::types::{IntoOwned as _, Raw};
use switchboard_protocol::{ErrorCode, ErrorObject};
use tokio::sync::broadcast::error::RecvError;
use tokio::task::AbortHandle;

use crate::handler::{Client, Exchange, Handler, service_exchange};
use offers::Offers;
use seal::Sealer;
use session::GatewaySession;
use waiting::WaitingCalls;

pub use relay::GatewayQuestions;
pub use search_tools::SearchMode;

/// What a gateway offers, and how.
#[derive(Debug, Clone, Default)]
pub struct GatewayOptions {
    /// Offer one server as it is, with its own names and identity.
    pub transparent: Option<ServerName>,
    /// Whether clients get search tools instead of all definitions.
    pub search: SearchMode,
    /// Whether there is only one client ever, as over standard input and output. Servers are then connected with the
    /// capabilities of that client.
    pub single_client: bool,
}

/// Serves all servers of a host as one. Cheap to clone; clones share their state.
#[derive(Clone)]
pub struct Gateway(Arc<Core>);

struct Core {
    offers: Offers,
    options: GatewayOptions,
    questions: GatewayQuestions,
    changes: Arc<Changes>,
    sealer: Option<Sealer>,
    waiting: WaitingCalls,
    clients: AtomicU64,
    /// The task that passes events of the host on.
    following: AbortHandle,
}

impl Gateway {
    /// Serves the servers of `host`, whose handler and approver must be `questions`. Must be called within a tokio
    /// runtime.
    pub fn new(host: Host, questions: GatewayQuestions, options: GatewayOptions) -> Self {
        let changes = Arc::new(Changes::default());
        let following = tokio::spawn(follow(
            Offers::new(host.clone(), options.transparent.clone()),
            Arc::clone(&changes),
        ));
        Self(Arc::new(Core {
            offers: Offers::new(host, options.transparent.clone()),
            options,
            questions,
            changes,
            sealer: Sealer::new(),
            waiting: WaitingCalls::default(),
            clients: AtomicU64::new(0),
            following: following.abort_handle(),
        }))
    }
}

impl Handler for Gateway {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        let number = self.0.clients.fetch_add(1, Ordering::Relaxed) + 1;
        let session = GatewaySession::new(Arc::clone(&self.0), client, number);
        service_exchange(Arc::new(session), sink)
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.following.abort();
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

/// Announces what changes in the host to all clients.
async fn follow(offers: Offers, changes: Arc<Changes>) {
    let mut events = offers.host.events();
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => {
                // Something may have been missed: everything may have changed.
                changes.tools();
                changes.prompts();
                changes.resources();
                continue;
            }
            Err(RecvError::Closed) => return,
        };
        let is_meant = |server: &ServerName| {
            offers
                .transparent
                .as_ref()
                .is_none_or(|only| only == server)
        };
        match event {
            Event::CatalogChanged { server, list } if is_meant(&server) => match list {
                ListKind::Tools => changes.tools(),
                ListKind::Prompts => changes.prompts(),
                ListKind::Resources | ListKind::Templates => changes.resources(),
            },
            Event::StateChanged { server, .. } | Event::Removed { server } if is_meant(&server) => {
                changes.tools();
                changes.prompts();
                changes.resources();
            }
            Event::ResourceUpdated { server, uri } if is_meant(&server) => {
                changes.resource(&offers.exposed_uri(&server, &uri).await);
            }
            Event::Log { server, line } if is_meant(&server) => {
                let LogSource::Message { level, logger } = line.source else {
                    continue;
                };
                let logger = match (&offers.transparent, logger) {
                    (Some(_), logger) => logger,
                    (None, Some(logger)) => Some(format!("{server}/{logger}")),
                    (None, None) => Some(server.to_string()),
                };
                let level = LoggingLevel::from(std::borrow::Cow::from(level.as_str())).into_owned();
                let data = Raw::parse(&line.text).ok().map(Raw::into_owned);
                let data = data.filter(|data| data.get().starts_with(['{', '[']));
                let data = data.or_else(|| Raw::from_serialize(&line.text).ok());
                if let Some(data) = data {
                    let mut message = LoggingMessageNotificationParams::new(level, data);
                    message.logger = logger.map(Into::into);
                    changes.log(&message);
                }
            }
            _ => {}
        }
    }
}

fn internal(message: &str) -> Failure {
    ErrorObject::new(ErrorCode::INTERNAL_ERROR, message.to_owned()).into()
}
