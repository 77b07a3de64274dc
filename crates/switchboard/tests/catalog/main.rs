//! Tests of the catalog, from raw pages to the tools exposed to a model.

#![expect(clippy::expect_used, reason = "tests stop on wrong data")]

mod assembly;
mod names;
mod schemas;
mod tools;

use std::sync::Arc;

use serde_json::Value;
use switchboard::catalog::{Catalog, Provenance};
use switchboard::internal::catalog::impersonation::KnownServers;
use switchboard::internal::catalog::{ListLimits, Reach, ServerTools, ToolRules};
use switchboard::{ServerName, SharedJson};

/// The tools of one server, from pages as a server sends them.
fn server_tools(server: &str, pages: &[Value]) -> ServerTools {
    with_rules(server, pages, &ToolRules::default(), Reach::Other)
}

fn with_rules(server: &str, pages: &[Value], rules: &ToolRules, reach: Reach) -> ServerTools {
    let pages: Vec<SharedJson> = pages.iter().map(SharedJson::from).collect();
    let server = ServerName::from(server);
    ServerTools::from_pages(
        &server,
        &pages,
        rules,
        reach,
        Provenance::Live,
        ListLimits::default(),
    )
}

/// A catalog of servers, configured in this order.
fn catalog(servers: &[(&str, Value)]) -> Catalog {
    let names: Vec<ServerName> = servers
        .iter()
        .map(|(name, _)| ServerName::from(*name))
        .collect();
    let (known, _) = KnownServers::admit(&names);
    Catalog::assemble(
        &known,
        servers.iter().map(|(name, page)| {
            let tools = server_tools(name, std::slice::from_ref(page));
            (ServerName::from(*name), Arc::new(tools), None)
        }),
    )
}

/// The names of the offered tools.
fn names(tools: &ServerTools) -> Vec<&str> {
    tools
        .tools()
        .iter()
        .map(|tool| tool.reference().tool.as_str())
        .collect()
}

/// The tools set aside, one line each.
fn aside(tools: &ServerTools) -> Vec<String> {
    tools.aside().iter().map(ToString::to_string).collect()
}
