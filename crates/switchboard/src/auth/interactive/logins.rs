//! Background logins started by a model through a server's `authenticate` tool.
//!
//! At most one pending login per server, each with a deadline. Dropping the owner cancels them all. The model only
//! receives the URL; the user decides whether to open it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::entry::ServerEntry;
use switchboard_config::resolve::Server;
use switchboard_config::settings::Settings;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::timeout;
use url::Url;

use super::callback::CallbackAddress;
use super::{Attempt, BeginError};
use crate::auth::vault::Vault;
use crate::auth::{Fetcher, ProtectedServer};
use crate::connectors::{ConnectorError, Connectors};
use crate::names::ServerName;

/// Default time that a login waits for the user.
const PATIENCE: Duration = Duration::from_secs(600);

/// Starts logins for a host.
pub trait Logins: fmt::Debug + Send + Sync + 'static {
    /// Starts a login, or returns the one already pending; `None` if the server needs no login.
    fn begin<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Option<StartedLogin>, BeginError>>;

    /// Adds a server that joined the host at run time.
    fn add(&self, server: ServerName, target: LoginTarget);
}

/// A login that waits for the user.
#[derive(Debug)]
pub struct StartedLogin {
    /// URL for the user to open.
    pub url: Url,
    /// Time until the login times out.
    pub patience: Duration,
    /// Whether this call started the login; otherwise an earlier one did.
    pub is_new: bool,
    /// The outcome, once there is one.
    pub outcome: LoginOutcome,
    /// Error of the previous attempt.
    pub failed_before: Option<String>,
}

/// Logins whose callback is received on this machine.
#[derive(Debug)]
pub struct BackgroundLogins {
    targets: Mutex<HashMap<ServerName, LoginTarget>>,
    vault: Arc<dyn Vault>,
    patience: Duration,
    /// Locked while a login starts, so that each server has at most one.
    waiting: tokio::sync::Mutex<HashMap<ServerName, Waiting>>,
}

/// A server that supports login.
#[derive(Debug, Clone)]
pub struct LoginTarget {
    /// Server to log in to.
    pub server: ProtectedServer,
    /// HTTP client for the login.
    pub fetcher: Fetcher,
    /// Address of the callback.
    pub address: CallbackAddress,
}

impl LoginTarget {
    /// Builds the login target of a server; `None` if it needs no login.
    pub fn of(
        server: &Server,
        connectors: &Connectors,
        settings: &Settings,
    ) -> Result<Option<Self>, ConnectorError> {
        Self::of_entry(server.effective(), connectors, settings)
    }

    /// Builds the login target of an entry; `None` if its server needs no login.
    pub(crate) fn of_entry(
        entry: &ServerEntry,
        connectors: &Connectors,
        settings: &Settings,
    ) -> Result<Option<Self>, ConnectorError> {
        let target = connectors.login(entry, settings)?;
        Ok(target.map(|(protected, fetcher)| Self {
            server: protected,
            fetcher,
            address: CallbackAddress::of(entry),
        }))
    }
}

#[derive(Debug)]
struct Waiting {
    url: Url,
    outcome: LoginOutcome,
    task: AbortHandle,
}

/// The outcome of a login that may still be pending. Cheap to clone.
#[derive(Debug, Clone)]
pub struct LoginOutcome(watch::Receiver<Option<Result<(), String>>>);

impl LoginOutcome {
    /// Waits for the outcome; the error is the reason of the failure.
    pub async fn wait(mut self) -> Result<(), String> {
        let outcome = self.0.wait_for(Option::is_some).await;
        let outcome = outcome.map(|outcome| outcome.clone());
        // The sender is gone only if the login was abandoned.
        outcome
            .ok()
            .flatten()
            .unwrap_or_else(|| Err("the login was abandoned".to_owned()))
    }

    /// The outcome, if there is one.
    fn now(&self) -> Option<Result<(), String>> {
        self.0.borrow().clone()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl BackgroundLogins {
    /// Logs in to `targets` and stores the tokens in `vault`.
    pub fn new(targets: HashMap<ServerName, LoginTarget>, vault: Arc<dyn Vault>) -> Self {
        Self {
            targets: Mutex::new(targets),
            vault,
            patience: PATIENCE,
            waiting: tokio::sync::Mutex::default(),
        }
    }

    /// Logs in to configured servers, and stores the tokens in the vault of the connectors.
    pub fn of<'s>(
        servers: impl IntoIterator<Item = &'s Server>,
        connectors: &Connectors,
        settings: &Settings,
    ) -> Self {
        let target = |server: &'s Server| {
            let target = LoginTarget::of(server, connectors, settings).ok()??;
            Some((ServerName::from(server.name.as_str()), target))
        };
        let targets = servers.into_iter().filter_map(target).collect();
        Self::new(targets, Arc::clone(&connectors.vault))
    }

    /// Overrides the time to wait for the user.
    #[must_use]
    pub fn waiting(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn begin_one(&self, name: &ServerName) -> Result<Option<StartedLogin>, BeginError> {
        let target = self.targets().get(name).cloned();
        let Some(target) = target else {
            return Ok(None);
        };
        let mut waiting = self.waiting.lock().await;
        let before = waiting.get(name);
        let failed_before = match before.map(|before| (before, before.outcome.now())) {
            Some((before, None)) => {
                return Ok(Some(StartedLogin {
                    url: before.url.clone(),
                    patience: self.patience,
                    is_new: false,
                    outcome: before.outcome.clone(),
                    failed_before: None,
                }));
            }
            Some((_, Some(Err(why)))) => Some(why),
            Some((_, Some(Ok(())))) | None => None,
        };
        // Drop the finished attempt to release its port.
        waiting.remove(name);
        let LoginTarget {
            server,
            fetcher,
            address,
        } = target;
        let attempt = Attempt::begin(server, fetcher, Arc::clone(&self.vault), address).await?;
        let url = attempt.url().clone();
        let (sender, outcome) = watch::channel(None);
        let outcome = LoginOutcome(outcome);
        let task = tokio::spawn(wait(attempt, self.patience, sender));
        let entry = Waiting {
            url: url.clone(),
            outcome: outcome.clone(),
            task: task.abort_handle(),
        };
        waiting.insert(name.clone(), entry);
        Ok(Some(StartedLogin {
            url,
            patience: self.patience,
            is_new: true,
            outcome,
            failed_before,
        }))
    }

    fn targets(&self) -> MutexGuard<'_, HashMap<ServerName, LoginTarget>> {
        self.targets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Logins for BackgroundLogins {
    fn begin<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Option<StartedLogin>, BeginError>> {
        Box::pin(self.begin_one(server))
    }

    fn add(&self, server: ServerName, target: LoginTarget) {
        self.targets().insert(server, target);
    }
}

async fn wait(
    attempt: Attempt,
    patience: Duration,
    done: watch::Sender<Option<Result<(), String>>>,
) {
    let outcome = match timeout(patience, attempt.answer()).await {
        Ok(answer) => attempt
            .finish(answer)
            .await
            .map_err(|error| error.to_string()),
        Err(_) => Err("the login timed out".to_owned()),
    };
    if let Err(why) = &outcome {
        tracing::info!(%why, "login failed");
    }
    // Without a receiver, the tokens are stored anyway.
    done.send_replace(Some(outcome));
}
