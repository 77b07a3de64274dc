//! The client on whose behalf a request is made, when a host serves several of them.
//!
//! A gateway makes requests for its clients over shared connections. What a server asks while a request runs must reach
//! the client that made the request, and no other. Each request therefore names its [`Caller`]; the connection finds out
//! whose request a question belongs to, and [`asked_by`] tells the handler of the host.

use std::sync::Arc;

use serde_json::value::RawValue;
use switchboard_protocol::types::Raw;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::{Era, meta};

use crate::handler::ClientHandler;
use crate::profile::Profile;

/// The extension for long-running calls, which the host follows itself.
pub(crate) const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A request of one client.
#[derive(Clone)]
pub struct Caller {
    /// Number of the client. Requests with the same number belong to the same client.
    pub client: u64,
    /// Number under which the client has connections of its own. Differs from `client` if each of its requests is a
    /// client to us.
    pub owner: u64,
    /// Who the client is, for the audit log, such as `token:ci`.
    pub principal: Arc<str>,
    /// What the client may use; `None`: everything.
    pub profile: Option<Arc<Profile>>,
    /// Answers what the server asks while the request runs. Its capabilities are those of the client.
    pub handler: Arc<dyn ClientHandler>,
    /// Members of the client's `_meta` to pass on, an object; `None` if there are none.
    pub meta: Option<Box<RawValue>>,
    /// Members that repeat a request with input (`inputResponses`, `requestState`), an object; `None` if the client has
    /// not been asked.
    pub input: Option<Box<RawValue>>,
    /// Whether a result that requires input is returned as it is, for the client to provide the input.
    pub takes_unfinished: bool,
}

impl Caller {
    /// The `_meta` members of its requests, if they differ from those of the connection.
    pub(crate) fn members(
        &self,
        connection: &meta::MetaMembers,
        era: Era,
    ) -> Option<meta::MetaMembers> {
        if era == Era::Stateful && self.meta.is_none() {
            return None;
        }
        let mut members = connection.clone();
        if era == Era::Stateless {
            let capabilities = with_tasks(self.handler.capabilities());
            members.set(meta::CLIENT_CAPABILITIES, &capabilities).ok()?;
        }
        if let Some(own) = &self.meta {
            let own: std::collections::BTreeMap<String, &RawValue> =
                serde_json::from_str(own.get()).ok()?;
            for (key, value) in own {
                members.set(key, value).ok()?;
            }
        }
        Some(members)
    }
}

impl std::fmt::Debug for Caller {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Caller")
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Adds the tasks extension to what a client declares in the stateless era.
pub(crate) fn with_tasks(
    mut capabilities: ClientCapabilities<'static>,
) -> ClientCapabilities<'static> {
    if let Ok(nothing) = Raw::parse("{}") {
        capabilities.extensions.push(TASKS_EXTENSION, nothing);
    }
    capabilities
}

/// Whose request a question of a server belongs to.
#[derive(Debug, Clone, Default)]
pub enum AskedBy {
    /// No request of a client is running: the server asks by itself.
    #[default]
    NoRequest,
    /// A request of this client.
    Client(Arc<Caller>),
    /// Several clients use the connection, and the transport does not tell whose request it is.
    Unclear,
}

tokio::task_local! {
    static ASKED_BY: AskedBy;
}

/// Whose request the question belongs to that is being answered in this task.
pub fn asked_by() -> AskedBy {
    ASKED_BY.try_with(Clone::clone).unwrap_or_default()
}

impl AskedBy {
    /// Runs a future in which [`asked_by`] returns this.
    pub(crate) async fn scope<F: Future>(self, answering: F) -> F::Output {
        ASKED_BY.scope(self, answering).await
    }
}

impl From<Option<&Arc<Caller>>> for AskedBy {
    fn from(caller: Option<&Arc<Caller>>) -> Self {
        caller.map_or(Self::NoRequest, |caller| Self::Client(Arc::clone(caller)))
    }
}

#[cfg(test)]
mod tests {
    use switchboard_protocol::Revision;
    use switchboard_protocol::meta::MetaMembers;
    use switchboard_protocol::types::capabilities::SamplingCapability;

    use super::*;
    use crate::handler::DeclineAll;

    fn caller(meta: Option<&str>) -> Caller {
        Caller {
            client: 1,
            owner: 1,
            principal: "parent".into(),
            profile: None,
            handler: Arc::new(DeclineAll),
            meta: meta.map(|text| RawValue::from_string(text.to_owned()).unwrap()),
            input: None,
            takes_unfinished: false,
        }
    }

    fn text(members: &MetaMembers) -> String {
        meta::merge(None, members).unwrap().get().to_owned()
    }

    #[test]
    fn requests_carry_the_meta_and_the_capabilities_of_their_client() {
        let none = MetaMembers::new();
        assert_eq!(caller(None).members(&none, Era::Stateful), None);
        let traced = caller(Some(r#"{"traceparent":"00-1"}"#));
        let members = traced.members(&none, Era::Stateful).unwrap();
        assert_eq!(text(&members), r#"{"_meta":{"traceparent":"00-1"}}"#);

        let mut host = ClientCapabilities::new();
        host.sampling = Some(SamplingCapability::new());
        let info: Option<&str> = None;
        let connection = MetaMembers::stateless(Revision::LATEST, &host, info).unwrap();
        assert!(text(&connection).contains("sampling"));
        let members = traced.members(&connection, Era::Stateless).unwrap();
        let text = text(&members);
        assert!(!text.contains("sampling"), "{text}");
        assert!(text.contains(r#""traceparent":"00-1""#), "{text}");
        assert!(text.contains(TASKS_EXTENSION), "{text}");
    }
}
