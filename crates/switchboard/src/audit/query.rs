//! Queries of the audit log.

use serde_json::Value;
use switchboard_store::{LOG_PAGE_ENTRIES, LogQuery, Logged, StoreError, Timestamp};

use crate::permissions::NameGlob;

/// Selects entries.
#[derive(Debug, Default)]
pub struct Filter {
    /// Only entries since this time.
    pub since: Option<Timestamp>,
    /// Only entries of this server.
    pub server: Option<String>,
    /// Only tools whose own name, or `server/tool`, matches.
    pub tool: Option<NameGlob>,
    /// Only calls made for this client, such as `token:ci`.
    pub client: Option<String>,
    /// Only calls with this decision: `allow`, `ask`, `deny`.
    pub decision: Option<String>,
    /// The maximum number of entries.
    pub limit: usize,
}

/// A matching entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// When it happened.
    pub at: Timestamp,
    /// The entry, as JSON.
    pub entry: Value,
}

impl Filter {
    fn wants(&self, entry: &Value) -> bool {
        let text = |key: &str| entry.get(key).and_then(Value::as_str);
        let fits = |wanted: &Option<String>, key: &str| {
            wanted
                .as_deref()
                .is_none_or(|wanted| text(key) == Some(wanted))
        };
        let tool_fits = |glob: &NameGlob| {
            text("tool").is_some_and(|tool| {
                let server = text("server").unwrap_or_default();
                glob.matches(tool) || glob.matches(&format!("{server}/{tool}"))
            })
        };
        fits(&self.server, "server")
            && fits(&self.client, "client")
            && fits(&self.decision, "decision")
            && self.tool.as_ref().is_none_or(tool_fits)
    }
}

/// Returns the newest matching entries, oldest first. `page` reads one page of the log.
pub fn read(
    filter: &Filter,
    mut page: impl FnMut(LogQuery) -> Result<Vec<Logged>, StoreError>,
) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    let mut query = LogQuery {
        since: filter.since,
        ..LogQuery::default()
    };
    while found.len() < filter.limit {
        let entries = page(query)?;
        query.before = entries.last().map(|entry| entry.number);
        let is_last = entries.len() < LOG_PAGE_ENTRIES;
        // An undecodable entry is returned as it is: an audit must not omit entries silently.
        let read = |logged: &Logged| Found {
            at: logged.at,
            entry: serde_json::from_slice(&logged.value)
                .unwrap_or_else(|_| serde_json::json!({ "kind": "unreadable" })),
        };
        let wanted = entries
            .iter()
            .map(read)
            .filter(|found| filter.wants(&found.entry));
        found.extend(wanted.take(filter.limit - found.len()));
        if is_last {
            break;
        }
    }
    found.reverse();
    Ok(found)
}
