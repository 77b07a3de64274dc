//! The methods of the protocol and their fixed properties.
//!
//! One table holds the name, the sender, the revisions and the source of `Mcp-Name` of each method. Unknown methods are
//! not an error; they are just not in the table.

use std::fmt;

use crate::revision::Revision;

/// A method of the specification or its tasks extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each variant is its wire name")]
pub enum Method {
    Initialize,
    Ping,
    Discover,
    SubscriptionsListen,
    ToolsList,
    ToolsCall,
    ResourcesList,
    ResourceTemplatesList,
    ResourcesRead,
    ResourcesSubscribe,
    ResourcesUnsubscribe,
    PromptsList,
    PromptsGet,
    Complete,
    SetLogLevel,
    TasksGet,
    TasksUpdate,
    TasksCancel,
    TasksList,
    TasksResult,
    SamplingCreateMessage,
    ElicitationCreate,
    RootsList,
    Initialized,
    Cancelled,
    Progress,
    LogMessage,
    ToolsListChanged,
    ResourcesListChanged,
    ResourcesUpdated,
    PromptsListChanged,
    RootsListChanged,
    ElicitationComplete,
    SubscriptionsAcknowledged,
    TaskStatus,
    TaskChanged,
}

/// The side that may send a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// Clients only.
    Client,
    /// Servers only.
    Server,
    /// Clients and servers.
    Either,
}

/// The member of the params that is mirrored in `Mcp-Name`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    /// `params.name`.
    Name,
    /// `params.uri`.
    Uri,
    /// `params.taskId`.
    TaskId,
}

impl NameSource {
    /// The member's name.
    pub const fn member(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Uri => "uri",
            Self::TaskId => "taskId",
        }
    }
}

impl Method {
    /// The method with this name, if the specification defines it.
    pub fn from_name(name: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.method)
    }

    /// All methods, in the order of the enum.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.method)
    }

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether it is a notification, which has no response.
    pub fn is_notification(self) -> bool {
        self.name().starts_with("notifications/")
    }

    /// The side that may send it.
    pub fn sender(self) -> Sender {
        self.row().sender
    }

    /// Whether a message with this method may be sent in a revision.
    ///
    /// In the stateless era sampling, elicitation and roots are not messages: they are embedded in results, so they do
    /// not exist as methods.
    pub fn exists_in(self, revision: Revision) -> bool {
        let Row { first, last, .. } = self.row();
        *first <= revision && revision <= *last
    }

    /// The source of the request's `Mcp-Name` header, if it has one.
    pub const fn name_source(self) -> Option<NameSource> {
        match self {
            Self::ToolsCall | Self::PromptsGet => Some(NameSource::Name),
            Self::ResourcesRead => Some(NameSource::Uri),
            Self::TasksGet | Self::TasksUpdate | Self::TasksCancel => Some(NameSource::TaskId),
            _ => None,
        }
    }

    /// Whether the result may be a request for input (`input_required`).
    pub const fn may_require_input(self) -> bool {
        matches!(
            self,
            Self::ToolsCall | Self::PromptsGet | Self::ResourcesRead
        )
    }

    /// Whether results carry cache hints (`ttlMs`, `cacheScope`).
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::Discover
                | Self::ToolsList
                | Self::PromptsList
                | Self::ResourcesList
                | Self::ResourceTemplatesList
                | Self::ResourcesRead
        )
    }

    fn row(self) -> &'static Row {
        // The table has the order of the enum, which a test checks.
        &TABLE[self as usize]
    }
}

impl fmt::Display for Method {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

struct Row {
    method: Method,
    name: &'static str,
    sender: Sender,
    first: Revision,
    last: Revision,
}

const fn row(
    method: Method,
    name: &'static str,
    sender: Sender,
    first: Revision,
    last: Revision,
) -> Row {
    Row {
        method,
        name,
        sender,
        first,
        last,
    }
}

#[rustfmt::skip]
static TABLE: [Row; 36] = {
    use Method as M;
    use Revision::{V2024_11_05 as V1, V2025_06_18 as V3, V2025_11_25 as V4, V2026_07_28 as V5};
    use Sender::{Client, Either, Server};
    [
        row(M::Initialize, "initialize", Client, V1, V4),
        row(M::Ping, "ping", Either, V1, V4),
        row(M::Discover, "server/discover", Client, V5, V5),
        row(M::SubscriptionsListen, "subscriptions/listen", Client, V5, V5),
        row(M::ToolsList, "tools/list", Client, V1, V5),
        row(M::ToolsCall, "tools/call", Client, V1, V5),
        row(M::ResourcesList, "resources/list", Client, V1, V5),
        row(M::ResourceTemplatesList, "resources/templates/list", Client, V1, V5),
        row(M::ResourcesRead, "resources/read", Client, V1, V5),
        row(M::ResourcesSubscribe, "resources/subscribe", Client, V1, V4),
        row(M::ResourcesUnsubscribe, "resources/unsubscribe", Client, V1, V4),
        row(M::PromptsList, "prompts/list", Client, V1, V5),
        row(M::PromptsGet, "prompts/get", Client, V1, V5),
        row(M::Complete, "completion/complete", Client, V1, V5),
        row(M::SetLogLevel, "logging/setLevel", Client, V1, V4),
        row(M::TasksGet, "tasks/get", Either, V4, V5),
        row(M::TasksUpdate, "tasks/update", Client, V5, V5),
        row(M::TasksCancel, "tasks/cancel", Either, V4, V5),
        row(M::TasksList, "tasks/list", Either, V4, V4),
        row(M::TasksResult, "tasks/result", Either, V4, V4),
        row(M::SamplingCreateMessage, "sampling/createMessage", Server, V1, V4),
        row(M::ElicitationCreate, "elicitation/create", Server, V3, V4),
        row(M::RootsList, "roots/list", Server, V1, V4),
        row(M::Initialized, "notifications/initialized", Client, V1, V4),
        row(M::Cancelled, "notifications/cancelled", Either, V1, V5),
        row(M::Progress, "notifications/progress", Either, V1, V5),
        row(M::LogMessage, "notifications/message", Server, V1, V5),
        row(M::ToolsListChanged, "notifications/tools/list_changed", Server, V1, V5),
        row(M::ResourcesListChanged, "notifications/resources/list_changed", Server, V1, V5),
        row(M::ResourcesUpdated, "notifications/resources/updated", Server, V1, V5),
        row(M::PromptsListChanged, "notifications/prompts/list_changed", Server, V1, V5),
        row(M::RootsListChanged, "notifications/roots/list_changed", Client, V1, V4),
        row(M::ElicitationComplete, "notifications/elicitation/complete", Server, V4, V4),
        row(M::SubscriptionsAcknowledged, "notifications/subscriptions/acknowledged", Server, V5, V5),
        row(M::TaskStatus, "notifications/tasks/status", Either, V4, V4),
        row(M::TaskChanged, "notifications/tasks", Server, V5, V5),
    ]
};

#[cfg(test)]
mod tests {
    use switchboard_test::shared::protocol_data;

    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_enum() {
        for method in Method::all() {
            assert_eq!(method.row().method, method);
            assert_eq!(Method::from_name(method.name()), Some(method));
        }
        assert_eq!(Method::TaskChanged as usize + 1, TABLE.len());
        assert_eq!(Method::from_name("tools/Call"), None);
    }

    #[test]
    fn names_come_from_the_params_the_specification_says() {
        for (method, expected) in [
            (Method::ToolsCall, Some("name")),
            (Method::PromptsGet, Some("name")),
            (Method::ResourcesRead, Some("uri")),
            (Method::TasksGet, Some("taskId")),
            (Method::TasksUpdate, Some("taskId")),
            (Method::TasksCancel, Some("taskId")),
            (Method::ToolsList, None),
            (Method::Discover, None),
        ] {
            assert_eq!(
                method.name_source().map(NameSource::member),
                expected,
                "{method}"
            );
        }
    }

    /// The table must have the methods of each revision's schema.
    #[test]
    fn the_table_agrees_with_the_schemas() {
        for revision in Revision::ALL {
            let Some(folder) = protocol_data(revision.as_str()) else {
                return;
            };
            let text = std::fs::read_to_string(folder.join("schema.json")).unwrap();
            let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
            let definitions = schema
                .get("$defs")
                .or_else(|| schema.get("definitions"))
                .unwrap()
                .as_object()
                .unwrap();
            let mut named: Vec<&str> = definitions
                .values()
                .filter_map(|definition| definition.pointer("/properties/method/const")?.as_str())
                .collect();
            named.sort_unstable();
            named.dedup();
            // Embedded requests are still defined in the schema although they are no longer messages; tasks moved into
            // an extension with its own schema.
            let embedded = ["sampling/createMessage", "elicitation/create", "roots/list"];
            if revision == Revision::V2026_07_28 {
                named.retain(|name| !embedded.contains(name));
            }
            let mut ours: Vec<&str> = Method::all()
                .filter(|method| method.exists_in(revision))
                .map(Method::name)
                .filter(|name| revision != Revision::V2026_07_28 || !name.contains("tasks"))
                .collect();
            ours.sort_unstable();
            assert_eq!(ours, named, "{revision}");
        }
    }
}
