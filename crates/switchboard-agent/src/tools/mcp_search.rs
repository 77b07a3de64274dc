//! The `McpSearch` tool: finds tools of MCP servers by description.
//!
//! Found tools can be called from the next request on: the session adds them to its view.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::Host;
use switchboard::catalog::{Catalog, CatalogTool};
use switchboard::internal::call::ToolSubset;

use super::{LocalContext, LocalOutput, LocalTool, definition};
use crate::message::ToolDefinition;

pub(crate) const NAME: &str = "McpSearch";

/// Default and maximum number of results.
const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 25;

/// Maximum number of hits to filter by the allowed subset.
const MAX_HITS: usize = 1_000;

/// Maximum characters of a description. The model gets all of it with the definition.
const SHOWN_CHARACTERS: usize = 200;

pub(crate) struct McpSearch {
    pub(crate) host: Host,
    pub(crate) subset: ToolSubset,
    pub(crate) found: Found,
}

/// Names of found tools that are not in the view yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found(Arc<Mutex<Vec<String>>>);

impl Found {
    /// Removes and returns all names.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn add(&self, names: impl IntoIterator<Item = String>) {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        found.extend(names);
    }
}

#[derive(Deserialize)]
struct Arguments {
    query: String,
    #[serde(default)]
    limit: Option<u64>,
}

impl LocalTool for McpSearch {
    fn definition(&self) -> ToolDefinition {
        definition(
            NAME,
            "Finds tools of the connected MCP servers by what they do. The tools that it finds can be called from then \
             on, by the names it tells. Describe the task in a few words, such as \"create an issue on GitHub\"; name the \
             server if it is known. \"select:\" and names of tools, with commas between them, gets those tools.",
            r#"{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"},"limit":{"type":"integer","minimum":1,"maximum":25,"description":"How many tools to find; 10 if not stated"}},"required":["query"]}"#,
        )
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        _context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        Box::pin(async move {
            let arguments: Arguments = match serde_json::from_str(arguments.get()) {
                Ok(arguments) => arguments,
                Err(error) => {
                    return LocalOutput::error(format!("invalid arguments: {error}"));
                }
            };
            let limit = arguments.limit.map_or(DEFAULT_LIMIT, |limit| {
                usize::try_from(limit)
                    .unwrap_or(MAX_LIMIT)
                    .clamp(1, MAX_LIMIT)
            });
            let catalog = self.host.catalog();
            let tools = self.search(&catalog, &arguments.query, limit);
            if tools.is_empty() {
                return LocalOutput::text(nothing_found(&catalog));
            }
            let mut text = String::from("These tools can be called now:\n");
            for tool in &tools {
                let description = tool.model_description();
                let line: String = description
                    .split_whitespace()
                    .collect::<Vec<_>>()
                    .join(" ")
                    .chars()
                    .take(SHOWN_CHARACTERS)
                    .collect();
                let _ = writeln!(text, "- {}: {line}", tool.exposed());
            }
            self.found
                .add(tools.iter().map(|tool| tool.exposed().as_str().to_owned()));
            LocalOutput::text(text)
        })
    }
}

impl McpSearch {
    /// Allowed tools, best match first.
    fn search<'c>(&self, catalog: &'c Catalog, query: &str, limit: usize) -> Vec<&'c CatalogTool> {
        // With a subset, the best allowed tool may rank low.
        let wide = if self.subset.is_all() {
            limit
        } else {
            MAX_HITS
        };
        let hits = self.host.search(query, wide);
        let found = hits.iter().filter_map(|hit| catalog.get(&hit.tool));
        let usable = found.filter(|tool| self.subset.has(tool.exposed().as_str()));
        usable.take(limit).collect()
    }
}

fn nothing_found(catalog: &Catalog) -> String {
    let names: Vec<&str> = catalog
        .servers()
        .iter()
        .map(|server| server.name().as_str())
        .collect();
    if names.is_empty() {
        return "No MCP server is connected.".to_owned();
    }
    format!(
        "No tool fits. Try other words. The connected servers are: {}.",
        names.join(", ")
    )
}
