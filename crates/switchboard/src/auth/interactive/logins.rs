//! Background logins started by a model through a server's `authenticate` tool.
//!
//! At most one pending login per server, each with a deadline. Dropping the owner cancels them all. The model only
//! receives the URL; the user decides whether to open it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use switchboard_config::resolve::Server;
use switchboard_config::settings::Settings;
use tokio::sync::oneshot;
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
    ) -> BoxFuture<'a, Result<Option<Begun>, BeginError>>;
}

/// A login that waits for the user.
#[derive(Debug)]
pub struct Begun {
    /// URL for the user to open.
    pub url: Url,
    /// Time until the login times out.
    pub patience: Duration,
    /// Resolves when the login succeeds; closes if it fails. `None` if an earlier call started the login.
    pub done: Option<oneshot::Receiver<()>>,
    /// Error of the previous attempt.
    pub failed_before: Option<String>,
}

/// Logins whose callback is received on this machine.
#[derive(Debug)]
pub struct BackgroundLogins {
    targets: HashMap<ServerName, LoginTarget>,
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
    /// Builds the login target of an entry; `None` if the server needs no login.
    pub fn of(
        server: &Server,
        connectors: &Connectors,
        settings: &Settings,
    ) -> Result<Option<Self>, ConnectorError> {
        let target = connectors.login(server, settings)?;
        Ok(target.map(|(protected, fetcher)| Self {
            server: protected,
            fetcher,
            address: CallbackAddress::of(server.effective()),
        }))
    }
}

#[derive(Debug)]
struct Waiting {
    url: Url,
    stage: Arc<Mutex<Stage>>,
    task: AbortHandle,
}

#[derive(Debug, Clone, Default)]
enum Stage {
    #[default]
    Waiting,
    Done,
    Failed(String),
}

impl Waiting {
    fn stage(&self) -> Stage {
        let stage = self.stage.lock();
        stage.unwrap_or_else(PoisonError::into_inner).clone()
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
            targets,
            vault,
            patience: PATIENCE,
            waiting: tokio::sync::Mutex::default(),
        }
    }

    /// Overrides the time to wait for the user.
    #[must_use]
    pub fn waiting(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    async fn begin_one(&self, name: &ServerName) -> Result<Option<Begun>, BeginError> {
        let Some(target) = self.targets.get(name) else {
            return Ok(None);
        };
        let mut waiting = self.waiting.lock().await;
        let before = waiting.get(name).map(|before| (before, before.stage()));
        let failed_before = match before {
            Some((before, Stage::Waiting)) => {
                return Ok(Some(Begun {
                    url: before.url.clone(),
                    patience: self.patience,
                    done: None,
                    failed_before: None,
                }));
            }
            Some((_, Stage::Failed(why))) => Some(why),
            Some((_, Stage::Done)) | None => None,
        };
        // Drop the finished attempt to release its port.
        waiting.remove(name);
        let LoginTarget {
            server,
            fetcher,
            address,
        } = target.clone();
        let attempt = Attempt::begin(server, fetcher, Arc::clone(&self.vault), address).await?;
        let url = attempt.url().clone();
        let (sender, done) = oneshot::channel();
        let stage: Arc<Mutex<Stage>> = Arc::default();
        let task = tokio::spawn(wait(attempt, self.patience, sender, Arc::clone(&stage)));
        let entry = Waiting {
            url: url.clone(),
            stage,
            task: task.abort_handle(),
        };
        waiting.insert(name.clone(), entry);
        Ok(Some(Begun {
            url,
            patience: self.patience,
            done: Some(done),
            failed_before,
        }))
    }
}

impl Logins for BackgroundLogins {
    fn begin<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Option<Begun>, BeginError>> {
        Box::pin(self.begin_one(server))
    }
}

async fn wait(
    attempt: Attempt,
    patience: Duration,
    done: oneshot::Sender<()>,
    stage: Arc<Mutex<Stage>>,
) {
    let outcome = match timeout(patience, attempt.answer()).await {
        Ok(answer) => attempt
            .finish(answer)
            .await
            .map_err(|error| error.to_string()),
        Err(_) => Err("the login timed out".to_owned()),
    };
    let reached = match &outcome {
        Ok(()) => Stage::Done,
        Err(why) => {
            tracing::info!(%why, "login failed");
            Stage::Failed(why.clone())
        }
    };
    *stage.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    if outcome.is_ok() {
        // The receiver may be gone; the tokens are stored anyway.
        let _ = done.send(());
    }
}
