//! The `ListMcpResources` and `ReadMcpResource` tools.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use futures_util::future::{BoxFuture, join_all};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::catalog::Tokens;
use switchboard::internal::call::shape::{ShapeOptions, shape};
use switchboard::internal::catalog::text::{cut, neutralise};
use switchboard::{ContentError, Host, ListKind, Pages, ServerName, SharedJson, ToolRef};
use switchboard_protocol::types::resource::{Resource, ResourceTemplate};

use super::{LocalContext, LocalOutput, LocalTool, definition};
use crate::message::ToolDefinition;

/// Maximum length of a line in the list.
const MAX_LINE: usize = 400;

pub(crate) struct ListMcpResources(pub(crate) Host);

pub(crate) struct ReadMcpResource(pub(crate) Host);

#[derive(Deserialize)]
struct ListArguments {
    server: Option<String>,
}

#[derive(Deserialize)]
struct ReadArguments {
    server: String,
    uri: String,
}

impl LocalTool for ListMcpResources {
    fn definition(&self) -> ToolDefinition {
        definition(
            "ListMcpResources",
            "Lists the resources that MCP servers offer to read, and the templates by which further ones are named. \
             Of all servers, or of one.",
            r#"{"type":"object","properties":{"server":{"type":"string","description":"The server; all of them if not stated"}}}"#,
        )
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        Box::pin(async move {
            let ListArguments { server } = match serde_json::from_str(arguments.get()) {
                Ok(arguments) => arguments,
                Err(error) => return unreadable(&error),
            };
            let servers = match &server {
                Some(name) => vec![ServerName::from(name.as_str())],
                None => self.connected(),
            };
            let listing = servers.iter().map(async |server| {
                let resources = self.0.list(server, ListKind::Resources).await;
                (
                    server,
                    resources,
                    self.0.list(server, ListKind::Templates).await,
                )
            });
            let mut text = String::new();
            for (server, resources, templates) in join_all(listing).await {
                match resources {
                    Ok(pages) => list_resources(&mut text, server, &pages),
                    Err(error) if servers.len() == 1 => {
                        return failed(&error, &self.connected());
                    }
                    Err(error) => {
                        let _ = writeln!(text, "{server}: cannot be listed: {error}");
                    }
                }
                if let Ok(pages) = templates {
                    list_templates(&mut text, server, &pages);
                }
            }
            if text.is_empty() {
                text.push_str("No server offers resources.");
            }
            let limit = Tokens(context.max_output_tokens).characters();
            LocalOutput::text(cut(neutralise(&text), limit))
        })
    }
}

impl ListMcpResources {
    fn connected(&self) -> Vec<ServerName> {
        connected(&self.0)
    }
}

impl LocalTool for ReadMcpResource {
    fn definition(&self) -> ToolDefinition {
        definition(
            "ReadMcpResource",
            "Reads a resource of an MCP server, by its URI. ListMcpResources tells which there are.",
            r#"{"type":"object","properties":{"server":{"type":"string","description":"The server"},"uri":{"type":"string","description":"The URI of the resource"}},"required":["server","uri"]}"#,
        )
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        Box::pin(async move {
            let ReadArguments { server, uri } = match serde_json::from_str(arguments.get()) {
                Ok(arguments) => arguments,
                Err(error) => return unreadable(&error),
            };
            let server = ServerName::from(server);
            let result = match self.0.read_resource(&server, &uri).await {
                Ok(result) => result,
                Err(error) => return failed(&error, &connected(&self.0)),
            };
            let Some(result) = as_tool_result(&result) else {
                return LocalOutput::error(format!(
                    "the server {server} did not answer with contents"
                ));
            };
            let reference = ToolRef {
                server,
                tool: "resource".into(),
            };
            let options = ShapeOptions {
                max_tokens: Tokens(context.max_output_tokens),
                spill: context.spill.as_ref(),
            };
            match shape(&reference, &result, options) {
                Ok(shaped) => LocalOutput {
                    content: shaped.blocks,
                    is_error: shaped.is_error,
                    display: None,
                },
                Err(error) => LocalOutput::error(format!("the contents cannot be read: {error}")),
            }
        })
    }
}

fn connected(host: &Host) -> Vec<ServerName> {
    let statuses = host.statuses().into_iter();
    let connected = statuses.filter(|status| status.state.is_connected());
    connected.map(|status| status.name).collect()
}

/// Wraps the contents of a resource as a tool result, to shape it by the same rules.
fn as_tool_result(result: &SharedJson) -> Option<SharedJson> {
    #[derive(Deserialize)]
    struct Contents<'a> {
        #[serde(borrow)]
        contents: Vec<&'a RawValue>,
    }
    let Contents { contents } = serde_json::from_str(result.as_str()).ok()?;
    let blocks: Vec<String> = contents
        .iter()
        .map(|content| format!(r#"{{"type":"resource","resource":{}}}"#, content.get()))
        .collect();
    let whole = format!(r#"{{"content":[{}]}}"#, blocks.join(","));
    RawValue::from_string(whole).ok().map(SharedJson::from)
}

fn list_resources(text: &mut String, server: &ServerName, pages: &Pages) {
    for item in items(pages, "resources") {
        let Ok(resource) = switchboard_protocol::types::decode::<Resource<'_>>(item) else {
            continue;
        };
        let mut line = format!("{server}: {} ({}", resource.uri, resource.name);
        if let Some(mime_type) = &resource.mime_type {
            let _ = write!(line, ", {mime_type}");
        }
        line.push(')');
        add_line(text, &line);
    }
    if let Some(reason) = &pages.cut {
        let _ = writeln!(text, "{server}: the list is not complete: {reason}");
    }
}

fn list_templates(text: &mut String, server: &ServerName, pages: &Pages) {
    for item in items(pages, "resourceTemplates") {
        let decoded = switchboard_protocol::types::decode::<ResourceTemplate<'_>>(item);
        if let Ok(template) = decoded {
            let line = format!(
                "{server}: template {} ({})",
                template.uri_template, template.name
            );
            add_line(text, &line);
        }
    }
}

/// Adds text as one line, without the server's line breaks.
fn add_line(text: &mut String, line: &str) {
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    text.push_str(&cut(line.into(), MAX_LINE));
    text.push('\n');
}

fn items<'a>(pages: &'a Pages, field: &'a str) -> impl Iterator<Item = &'a RawValue> {
    pages.pages.iter().flat_map(move |page| {
        let members: HashMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(page.as_str()).unwrap_or_default();
        let list = members.get(field).copied();
        list.and_then(|list| serde_json::from_str::<Vec<&RawValue>>(list.get()).ok())
            .unwrap_or_default()
    })
}

fn failed(error: &ContentError, connected: &[ServerName]) -> LocalOutput {
    let names: Vec<&str> = connected.iter().map(ServerName::as_str).collect();
    let text = format!("{error}. The connected servers are: {}.", names.join(", "));
    LocalOutput::error(neutralise(&text))
}

fn unreadable(error: &serde_json::Error) -> LocalOutput {
    LocalOutput::error(format!("invalid arguments: {error}"))
}
