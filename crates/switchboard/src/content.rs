//! Resources, prompts and completion: everything of a server that is read rather than called.
//!
//! Reading has no effects, so a request that was lost is made once more when the server is back.

use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard_protocol::Method;
use switchboard_protocol::types::completion::CompleteRequestParams;
use switchboard_protocol::types::prompt::GetPromptRequestParams;
use switchboard_protocol::types::resource::ReadResourceRequestParams;
use switchboard_protocol::types::wire;
use tokio::sync::oneshot;

use crate::catalog::{SetAside, SetAsideReason};
use crate::host::{Host, RECONNECT_PATIENCE, ServerError};
use crate::json::SharedJson;
use crate::manager::{Command, Live, Trouble};
use crate::names::ServerName;
use crate::peer::{ListKind, Pages, RequestError, RequestOptions};
use crate::pins::ContentKind;

/// Why something could not be read.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The server cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// The server did not give it.
    #[error("the server \"{server}\" did not answer {method}: {error}")]
    Request {
        /// The server.
        server: ServerName,
        /// What was asked.
        method: Method,
        /// What happened.
        error: RequestError,
    },
    /// It differs from its pin, or cannot be compared with it.
    #[error("server \"{server}\": {aside}")]
    SetAside {
        /// The server.
        server: ServerName,
        /// What is withheld, and why.
        aside: Box<SetAside>,
    },
}

impl Host {
    /// One of a server's lists, from memory while it is fresh. Prompts and templates that differ from their pins are
    /// taken out of it: [`Pages::withheld`] says which and why.
    pub async fn list(
        &self,
        server: &ServerName,
        kind: ListKind,
    ) -> Result<Arc<Pages>, ContentError> {
        let deadline = self.options().settings.list_timeout;
        let live = self.connected(server).await?;
        let error = match live.lists.get(kind, deadline).await {
            Ok(pages) => return Ok(self.compared(&live, kind, pages).await),
            Err(error) => error,
        };
        let again = match self.back_after(&live, server, &error).await {
            Some(live) => match live.lists.get(kind, deadline).await {
                Ok(pages) => return Ok(self.compared(&live, kind, pages).await),
                Err(error) => error,
            },
            None => error,
        };
        Err(ContentError::Request {
            server: server.clone(),
            method: kind.method(),
            error: again.redacted(&live.spec.redactor),
        })
    }

    /// A list as it may be shown, by its pins.
    async fn compared(&self, live: &Live, kind: ListKind, pages: Arc<Pages>) -> Arc<Pages> {
        match ContentKind::of(kind) {
            Some(kind) if live.spec.rules.pins() => {
                let memory = self.memory();
                // The pins may have been approved since, here or elsewhere, so their revision is looked up each time.
                let revision = memory.content_revision(live.spec.identity, kind).await;
                if let Some(known) = live.lists.compared(kind, &pages, revision) {
                    return known;
                }
                let policy = self.options().settings.pins;
                let admitted = memory.admit(&live.spec, kind, &pages, policy).await;
                let (admitted, revision) = (Arc::new(admitted.0), admitted.1);
                live.lists.set_compared(kind, &pages, revision, &admitted);
                admitted
            }
            _ => pages,
        }
    }

    /// Reads a resource: a `ReadResourceResult` as the server sent it.
    pub async fn read_resource(
        &self,
        server: &ServerName,
        uri: &str,
    ) -> Result<SharedJson, ContentError> {
        let params = ReadResourceRequestParams::new(uri.into());
        self.read(server, Method::ResourcesRead, wire::encode(&params))
            .await
    }

    /// Gets a prompt, filled in with arguments: a `GetPromptResult` as the server sent it.
    pub async fn get_prompt(
        &self,
        server: &ServerName,
        params: &GetPromptRequestParams<'_>,
    ) -> Result<SharedJson, ContentError> {
        if self.connected(server).await?.spec.rules.pins() {
            // The list is kept while it is fresh, so this asks the server once.
            let listed = self.list(server, ListKind::Prompts).await?;
            let mut withheld = listed.withheld.iter();
            let is_meant = |aside: &&SetAside| {
                aside.name.as_deref() == Some(&*params.name)
                    && aside.reason != SetAsideReason::Duplicate
            };
            if let Some(aside) = withheld.find(is_meant) {
                return Err(ContentError::SetAside {
                    server: server.clone(),
                    aside: Box::new(aside.clone()),
                });
            }
        }
        self.read(server, Method::PromptsGet, wire::encode(params))
            .await
    }

    /// Asks for completions of an argument: a `CompleteResult` as the server sent it.
    pub async fn complete(
        &self,
        server: &ServerName,
        params: &CompleteRequestParams<'_>,
    ) -> Result<SharedJson, ContentError> {
        self.read(server, Method::Complete, wire::encode(params))
            .await
    }

    /// Asks to be told when a resource changes, over reconnects too; `false` if there is no such server.
    ///
    /// The changes come as [`Event::ResourceUpdated`](crate::events::Event::ResourceUpdated).
    pub async fn subscribe(&self, server: &ServerName, uri: &str) -> bool {
        self.set_subscribed(server, uri, true).await
    }

    /// Takes a subscription back; `false` if there is no such server.
    pub async fn unsubscribe(&self, server: &ServerName, uri: &str) -> bool {
        self.set_subscribed(server, uri, false).await
    }

    async fn set_subscribed(&self, server: &ServerName, uri: &str, wanted: bool) -> bool {
        let (done, reply) = oneshot::channel();
        self.tell(Command::Subscribe(
            server.clone(),
            uri.to_owned(),
            wanted,
            done,
        ))
        .await;
        reply.await.unwrap_or_default()
    }

    async fn read(
        &self,
        server: &ServerName,
        method: Method,
        params: String,
    ) -> Result<SharedJson, ContentError> {
        let failed = |error| ContentError::Request {
            server: server.clone(),
            method,
            error,
        };
        let params = RawValue::from_string(params)
            .map_err(|error| failed(RequestError::Unwritable(error.to_string())))?;
        let live = self.connected(server).await?;
        let once = async |live: &Live| {
            let options = RequestOptions::within(live.spec.tool_timeout);
            live.peer.request(method, Some(&params), &options).await
        };
        let error = match once(&live).await {
            Ok(result) => return Ok(result),
            Err(error) => error,
        };
        let again = match self.back_after(&live, server, &error).await {
            Some(live) => once(&live).await,
            None => Err(error),
        };
        again.map_err(|error| failed(error.redacted(&live.spec.redactor)))
    }

    /// A new connection after this error, if one is to be expected.
    async fn back_after(
        &self,
        live: &Live,
        server: &ServerName,
        error: &RequestError,
    ) -> Option<Live> {
        let trouble = if error.wants_authorization() {
            Trouble::Unauthorized
        } else if error.session_expired() {
            Trouble::SessionExpired
        } else if error.never_sent() || matches!(error, RequestError::Lost(_)) {
            Trouble::Suspect
        } else {
            return None;
        };
        self.tell(Command::Trouble(server.clone(), live.generation, trouble))
            .await;
        if trouble == Trouble::Unauthorized {
            return None;
        }
        self.connected_after(server, live.generation, RECONNECT_PATIENCE)
            .await
    }
}
