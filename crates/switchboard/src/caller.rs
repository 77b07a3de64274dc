//! The client on whose behalf a request is made, when a host serves several of them.
//!
//! A gateway makes requests for its clients over shared connections. What a server asks while a request runs must reach
//! the client that made the request, and no other. Each request therefore names its [`Caller`]; the connection finds out
//! whose request a question belongs to, and [`asked_by`] tells the handler of the host.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use switchboard_protocol::types::Raw;
use switchboard_protocol::types::capabilities::ClientCapabilities;
use switchboard_protocol::{Era, meta};

use crate::handler::ClientHandler;
use crate::profile::Profile;

/// The extension for long-running calls, which the host follows itself.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

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
    /// Whether the client belongs to the stateless era. A result that requires input is then returned as it is, for the
    /// client to provide the input, and servers are told of the client's capabilities and of no others.
    pub takes_unfinished: bool,
    /// Whether a task is returned as it is, for the client to follow (tasks extension). Otherwise it is followed here.
    pub takes_tasks: bool,
    /// The client's wish that the call runs as a task: the member `task` of its params (2025-11-25).
    pub task: Option<Box<RawValue>>,
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
            let capabilities = self.handler.capabilities();
            let capabilities = if self.takes_unfinished {
                capabilities
            } else {
                // Tasks of its calls are followed here.
                with_tasks(capabilities)
            };
            members.set(meta::CLIENT_CAPABILITIES, &capabilities).ok()?;
        }
        if let Some(own) = &self.meta {
            let own: OrderedMembers<'_> = serde_json::from_str(own.get()).ok()?;
            for (key, value) in own.0 {
                // In the stateful era, a level is set once per connection.
                if era == Era::Stateless || key != meta::LOG_LEVEL {
                    members.set(key.into_owned(), value).ok()?;
                }
            }
        }
        Some(members)
    }

    /// Whether a task of a server of this era is returned as it is.
    pub(crate) fn takes_task(&self, era: Era) -> bool {
        match era {
            Era::Stateful => self.task.is_some(),
            Era::Stateless => self.takes_tasks,
        }
    }
}

/// The members of an object, in the order of their text.
#[derive(Debug, Default)]
pub struct OrderedMembers<'a>(pub Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for OrderedMembers<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members<'a>(PhantomData<&'a ()>);

        impl<'de: 'a, 'a> Visitor<'de> for Members<'a> {
            type Value = OrderedMembers<'a>;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry::<Name<'a>, &'a RawValue>()? {
                    members.push((name, value));
                }
                Ok(OrderedMembers(members))
            }
        }

        /// A name, borrowed if it has no escapes.
        #[derive(Deserialize)]
        struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

        deserializer.deserialize_map(Members(PhantomData))
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
            takes_tasks: false,
            task: None,
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

    #[test]
    fn a_client_of_the_stateless_era_has_no_more_capabilities_than_it_declares() {
        let info: Option<&str> = None;
        let host = with_tasks(ClientCapabilities::new());
        let connection = MetaMembers::stateless(Revision::LATEST, &host, info).unwrap();
        let exact = Caller {
            takes_unfinished: true,
            ..caller(None)
        };
        let members = exact.members(&connection, Era::Stateless).unwrap();
        let text = text(&members);
        assert!(text.contains(r#"clientCapabilities":{}"#), "{text}");
    }

    #[test]
    fn members_of_meta_keep_their_order_and_their_text() {
        let meta = r#"{"z":1.0,"a":{"x" : [1e3]},"m\u00e4":"\u0041"}"#;
        let members = caller(Some(meta)).members(&MetaMembers::new(), Era::Stateful);
        let expected = r#"{"_meta":{"z":1.0,"a":{"x" : [1e3]},"mä":"\u0041"}}"#;
        assert_eq!(text(&members.unwrap()), expected);
    }
}
