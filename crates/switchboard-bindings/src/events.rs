//! Events and statuses as JSON. Keys are in snake case; the Node package renames them.

use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};
use switchboard::{Event, ListKind, LogSource, ServerName, ServerStatus, WireName};
use switchboard_config::entry::Transport;
use switchboard_protocol::Revision;

/// A status, with reason and remedy.
pub fn status(status: &ServerStatus) -> Value {
    let remedy = status.remedy().map(|remedy| remedy.to_string());
    let since = status.since.duration_since(UNIX_EPOCH);
    json!({
        "name": status.name.as_str(),
        "state": status.word(),
        "reason": status.reason(),
        "remedy": remedy,
        "transport": status.transport.map(Transport::name),
        "required": status.required,
        "tools": status.tools,
        "protocol_version": status.revision.map(Revision::as_str),
        "restarts": status.restarts,
        "latency_ms": status.latency.map(milliseconds),
        "startup_ms": status.startup.map(milliseconds),
        "pid": status.process,
        "since": since.unwrap_or_default().as_secs_f64(),
    })
}

/// An event: an object with `type` and the facts; `None` for one that this version does not pass on.
pub fn event(event: &Event) -> Option<Value> {
    Some(match event {
        Event::StartupUpdate { server, state } => json!({
            "type": "startup_update",
            "server": server.as_str(),
            "state": state.word(),
            "reason": state.reason(),
        }),
        Event::StartupComplete { ready, failed } => {
            let failed = failed.iter();
            let failed =
                failed.map(|(name, reason)| json!({"name": name.as_str(), "reason": reason}));
            json!({
                "type": "startup_complete",
                "ready": ready.iter().map(ServerName::as_str).collect::<Vec<_>>(),
                "failed": failed.collect::<Vec<_>>(),
            })
        }
        Event::Installing {
            server,
            elapsed,
            line,
        } => json!({
            "type": "installing",
            "server": server.as_str(),
            "elapsed_ms": milliseconds(*elapsed),
            "line": line,
        }),
        Event::StateChanged { server, state } => json!({
            "type": "state_changed",
            "server": server.as_str(),
            "state": state.word(),
            "reason": state.reason(),
        }),
        Event::Removed { server } => json!({"type": "removed", "server": server.as_str()}),
        Event::CatalogChanged { server, list } => json!({
            "type": "catalog_changed",
            "server": server.as_str(),
            "list": list_name(*list),
        }),
        Event::ToolsPinned { server, tools } => json!({
            "type": "tools_pinned",
            "server": server.as_str(),
            "tools": tools.iter().map(WireName::as_str).collect::<Vec<_>>(),
        }),
        Event::PinsDiffer {
            server,
            tools,
            instructions,
        } => json!({
            "type": "pins_differ",
            "server": server.as_str(),
            "tools": tools.iter().map(WireName::as_str).collect::<Vec<_>>(),
            "instructions": instructions,
        }),
        Event::Suspicious { server, found } => {
            let found = found.iter().map(|(tool, flags)| {
                let flags = flags.iter().map(ToString::to_string);
                json!({
                    "tool": tool.as_ref().map(WireName::as_str),
                    "flags": flags.collect::<Vec<_>>(),
                })
            });
            json!({
                "type": "suspicious",
                "server": server.as_str(),
                "found": found.collect::<Vec<_>>(),
            })
        }
        Event::ResourceUpdated { server, uri } => json!({
            "type": "resource_updated",
            "server": server.as_str(),
            "uri": uri,
        }),
        Event::CallBegin { call, server, tool } => json!({
            "type": "call_begin",
            "call": call.to_string(),
            "server": server.as_ref().map(ServerName::as_str),
            "tool": tool.as_str(),
        }),
        Event::CallProgress {
            call,
            progress,
            elapsed,
        } => json!({
            "type": "call_progress",
            "call": call.to_string(),
            "progress": progress.as_ref().map(|progress| progress.progress),
            "total": progress.as_ref().and_then(|progress| progress.total),
            "message": progress.as_ref().and_then(|progress| progress.message.as_deref()),
            "elapsed_ms": milliseconds(*elapsed),
        }),
        // The result itself is the caller's: events are for observers.
        Event::CallEnd {
            call,
            server,
            tool,
            elapsed,
            is_error,
            result,
            error,
        } => json!({
            "type": "call_end",
            "call": call.to_string(),
            "server": server.as_ref().map(ServerName::as_str),
            "tool": tool.as_str(),
            "elapsed_ms": milliseconds(*elapsed),
            "is_error": is_error,
            "bytes": result.as_ref().map(|result| result.0.size()),
            "error": error,
        }),
        Event::Log { server, line } => {
            let (source, level, logger) = match &line.source {
                LogSource::Stderr => ("stderr", None, None),
                LogSource::Message { level, logger } => ("message", Some(level), logger.as_ref()),
                LogSource::Noise => ("noise", None, None),
            };
            json!({
                "type": "log",
                "server": server.as_str(),
                "source": source,
                "level": level,
                "logger": logger,
                "text": line.text,
            })
        }
        Event::AuthNeeded { server } => json!({"type": "auth_needed", "server": server.as_str()}),
        Event::LoggedIn { server, tools } => json!({
            "type": "logged_in",
            "server": server.as_str(),
            "tools": tools,
        }),
        _ => return None,
    })
}

/// What a receiver that fell behind gets instead of the events it lost.
pub(crate) fn lagged(lost: u64) -> Value {
    json!({"type": "lagged", "lost": lost})
}

const fn list_name(list: ListKind) -> &'static str {
    match list {
        ListKind::Tools => "tools",
        ListKind::Prompts => "prompts",
        ListKind::Resources => "resources",
        ListKind::Templates => "resource_templates",
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}
