//! Logins that a model begins: the tool `authenticate` of a server that wants one.
//!
//! Owns the logins that wait for a person in the background: one for each server, each with a deadline. Dropping the
//! owner ends them all. The model learns the address and nothing else; whether anybody goes there is up to the user.

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

/// How long a login waits for the person.
const PATIENCE: Duration = Duration::from_secs(600);

/// Begins logins for a host.
pub trait Logins: fmt::Debug + Send + Sync + 'static {
    /// Begins a login, or finds the one that waits already; `None` where there is nothing to log in to.
    fn begin<'a>(
        &'a self,
        server: &'a ServerName,
    ) -> BoxFuture<'a, Result<Option<Begun>, BeginError>>;
}

/// A login that waits for a person.
#[derive(Debug)]
pub struct Begun {
    /// Where the person is to go.
    pub url: Url,
    /// How long it waits.
    pub patience: Duration,
    /// Comes when the login is there, and never if it fails. Only whoever began it gets it.
    pub done: Option<oneshot::Receiver<()>>,
    /// Why the login before this one failed.
    pub failed_before: Option<String>,
}

/// Logins with an address on this machine to come back to.
#[derive(Debug)]
pub struct BackgroundLogins {
    targets: HashMap<ServerName, LoginTarget>,
    vault: Arc<dyn Vault>,
    patience: Duration,
    /// Held while a login begins, so that there is one for each server.
    waiting: tokio::sync::Mutex<HashMap<ServerName, Waiting>>,
}

/// A server that can be logged in to.
#[derive(Debug, Clone)]
pub struct LoginTarget {
    /// The server.
    pub server: ProtectedServer,
    /// How it is reached.
    pub fetcher: Fetcher,
    /// Where the answer is to come.
    pub address: CallbackAddress,
}

impl LoginTarget {
    /// How to log in to the server of an entry; `None` where there is nothing to log in to.
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

/// How far a login has come.
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
    /// Logins to these servers, kept in that vault.
    pub fn new(targets: HashMap<ServerName, LoginTarget>, vault: Arc<dyn Vault>) -> Self {
        Self {
            targets,
            vault,
            patience: PATIENCE,
            waiting: tokio::sync::Mutex::default(),
        }
    }

    /// The same, waiting this long for a person.
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
        // What came before has ended, and gives its port back.
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
            tracing::info!(%why, "a login has failed");
            Stage::Failed(why.clone())
        }
    };
    *stage.lock().unwrap_or_else(PoisonError::into_inner) = reached;
    if outcome.is_ok() {
        // Nobody may be listening any more, which is no matter: the login is kept.
        let _ = done.send(());
    }
}
