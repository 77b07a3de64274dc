//! `switchboard audit`: lists calls, decisions and changes from the audit log.

use std::fmt::Write as _;
use std::time::SystemTime;

use serde_json::Value;
use switchboard::internal::audit::{Filter, Found, LOG, read};
use switchboard::internal::permissions::NameGlob;
use switchboard_config::text::visible;
use switchboard_store::{SqliteStore, Timestamp};

use crate::cli::AuditArguments;
use crate::commands::status::size;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, style};
use crate::session;
use crate::time;
use crate::view;

pub(crate) fn run(arguments: &AuditArguments, context: &Context) -> Outcome {
    let printer = &context.printer;
    let since = arguments.since.as_deref().map(since).transpose()?;
    let tool = arguments.tool.as_deref().map(|pattern| {
        NameGlob::new(pattern).ok_or_else(|| {
            Failure::usage(format!("\"{}\" is not a valid glob", visible(pattern)))
                .hint("use a pattern such as \"get_*\" or \"github/*\"")
        })
    });
    let filter = Filter {
        since,
        server: arguments.server.clone(),
        tool: tool.transpose()?,
        client: arguments.client.clone(),
        decision: arguments.decision.map(|decision| decision.to_string()),
        limit: arguments.limit,
    };
    let store = SqliteStore::new(session::store_file(context));
    let found = read(&filter, |query| store.read_log_blocking(LOG, query));
    let found = found.map_err(|error| {
        let failure =
            Failure::failed("cannot read the audit log").because(visible(&error.to_string()));
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    if printer.json {
        printer.json(&found.into_iter().map(entry_json).collect())?;
        return Ok(Exit::Done);
    }
    if found.is_empty() {
        printer.note("no matching audit entries");
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        Column::new("TIME"),
        Column::new("BY").dropped(3),
        Column::new("CLIENT").dropped(2),
        Column::key("WHAT"),
        Column::new("DECISION"),
        Column::text("OUTCOME").dropped(4),
        Column::path("BECAUSE").dropped(1),
    ]);
    for each in &found {
        let line = Line::of(each);
        let decision = match line.decision.as_str() {
            "deny" => style::ERROR,
            "ask" => style::WARNING,
            _ => style::GOOD,
        };
        table.row([
            (style::QUIET, &time::shown(each.at)),
            (style::QUIET, &line.by),
            (style::QUIET, &line.client),
            (style::NAME, &line.what),
            (decision, &line.decision),
            (anstyle::Style::new(), &line.outcome),
            (style::QUIET, &line.because),
        ]);
    }
    printer.table(&table)?;
    if found.len() == arguments.limit {
        printer.note(format!(
            "showing the newest {}; --limit shows more",
            arguments.limit
        ));
    }
    Ok(Exit::Done)
}

/// An entry as a table row.
struct Line {
    by: String,
    /// The client for which a call was made; empty if there is none.
    client: String,
    what: String,
    decision: String,
    outcome: String,
    because: String,
}

impl Line {
    fn of(found: &Found) -> Self {
        let entry = &found.entry;
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        let number = |key: &str| entry[key].as_u64();
        let kind = text("kind");
        let what = match kind.as_str() {
            "call" => match entry["server"].as_str() {
                Some(server) => format!("{server}/{}", text("tool")),
                None => text("tool"),
            },
            "login" => format!("{} {}", text("event"), text("server")),
            "change" => format!("{} {}", text("event"), text("about")),
            "lost" => {
                let count = number("count").unwrap_or_default();
                format!("{count} entries lost")
            }
            other => other.to_owned(),
        };
        let mut outcome = match (text("outcome").as_str(), entry["error"].as_str()) {
            (_, Some(error)) => error.to_owned(),
            ("", None) => String::new(),
            (outcome, None) => outcome.to_owned(),
        };
        if let Some(milliseconds) = number("milliseconds").filter(|_| outcome != "refused") {
            let _ = write!(outcome, ", {milliseconds} ms");
        }
        if let Some(bytes) = number("result_bytes") {
            let _ = write!(outcome, ", {}", size(bytes));
        }
        let because = match (entry["rule"].as_str(), entry["source"].as_str()) {
            (Some(rule), Some(source)) => format!("{rule} at {source}"),
            (None, Some(source)) => format!("{} at {source}", text("because")),
            _ => text("because"),
        };
        Self {
            by: text("by"),
            client: text("client"),
            what,
            decision: text("decision"),
            outcome,
            because,
        }
    }
}

fn entry_json(found: Found) -> Value {
    let mut entry = found.entry;
    if let Value::Object(members) = &mut entry {
        members.insert("at".to_owned(), time::exact(found.at).into());
        if let Some(source) = members.get_mut("source")
            && let Some(text) = source.as_str()
        {
            *source = view::text_place_json(text);
        }
    }
    entry
}

/// Parses a point in time: how long ago (`90s`, `30m`, `1h`, `7d`), a date, or a timestamp.
fn since(text: &str) -> Result<Timestamp, Failure> {
    let ago = time::length(text).map(|ago| Timestamp::from(SystemTime::now()).before(ago));
    ago.or_else(|| time::parse(text)).ok_or_else(|| {
        Failure::usage(format!("\"{}\" is not a valid time", visible(text)))
            .hint("use a duration (90s, 30m, 1h, 7d), a date (2026-11-01) or a timestamp (2026-11-01T08:00:00Z)")
    })
}
