//! `switchboard tools`: lists the catalogue.
//!
//! Lists what connected servers offer, or, with `--no-connect`, their cached lists: one read of the store, with no
//! runtime, thread or server.

use std::fmt::Write as _;

use anstyle::Style;
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard::catalog::{Catalog, CatalogServer, CatalogTool, Flag, SetAsideReason};
use switchboard::internal::catalog::{NOT_PINNED_HINT, PINS_UNREADABLE_HINT};
use switchboard::internal::remembered;
use switchboard_agent::FailedServer;
use switchboard_config::text::visible;
use unicode_width::UnicodeWidthStr as _;

use crate::cli::ToolsArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{paint, style};
use crate::servers::Servers;
use crate::session;
use crate::startup::counted;
use crate::terminal::{self, fitted};

/// Minimum width of a description, in columns.
const MIN_ABOUT_WIDTH: usize = 20;

pub(crate) fn run(arguments: &ToolsArguments, context: &Context) -> Outcome {
    let servers = Servers::load(context, arguments.server.as_deref())?;
    if arguments.no_connect {
        let catalog = remembered(&servers, context);
        let missing = match arguments.server {
            Some(_) => Vec::new(),
            None => servers.unusable(),
        };
        let detail = Detail::of(arguments, Detail::Remembered);
        show(&catalog, &missing, detail, context)?;
        return Ok(Exit::Done);
    }
    session::run_listing(context, &servers, async |session| {
        match &arguments.server {
            Some(wanted) => session.start_one(wanted).await?,
            None => session.start().await,
        }
        let detail = Detail::of(arguments, Detail::Usual);
        let missing = match arguments.server {
            Some(_) => Vec::new(),
            None => session.missing(),
        };
        show(&session.host.catalog(), &missing, detail, context)?;
        Ok(session.exit())
    })
}

/// The cached catalogue. Reports servers without a cached list.
pub(super) fn remembered(servers: &Servers, context: &Context) -> Catalog {
    servers.report_unusable(context);
    let (outlines, lists) = servers.remembered(context);
    for (outline, list) in outlines.iter().zip(&lists) {
        if list.lists.is_none() {
            let name = visible(outline.name.as_str());
            context.printer.note(format!(
                "{name} has not been connected yet, so its tools are unknown"
            ));
        }
    }
    remembered::catalog(&outlines, &lists)
}

fn show(
    catalog: &Catalog,
    missing: &[FailedServer],
    detail: Detail,
    context: &Context,
) -> Result<(), Failure> {
    let printer = &context.printer;
    warn_of_pins(catalog, context);
    if printer.json {
        let mut entries: Vec<Entry<'_>> = catalog
            .servers()
            .iter()
            .flat_map(|server| entries(server, detail == Detail::All))
            .collect();
        if detail == Detail::All {
            entries.extend(missing.iter().map(Entry::of_missing));
        }
        let text = serde_json::to_string(&entries)
            .map_err(|error| Failure::failed("could not write JSON").because(error))?;
        return printer.json_text(&text);
    }
    let mut text = to_text(catalog, detail, terminal::width());
    if detail == Detail::All {
        for server in missing {
            let name = paint(style::NAME, visible(&server.name));
            let why = format!("{}: {}", server.state, visible(&server.reason));
            let gap = if text.is_empty() { "" } else { "\n" };
            let _ = writeln!(text, "{gap}{name}  {}", paint(style::WARNING, why));
        }
    }
    printer.data(text)
}

/// Warns about tools and instructions set aside because of pins, with the reason and a hint.
pub(super) fn warn_of_pins(catalog: &Catalog, context: &Context) {
    for server in catalog.servers() {
        let name = visible(server.name().as_str());
        let (mut changed, mut renamed, mut new) = (0, 0, 0);
        let mut why = None;
        let mut is_unreadable = false;
        for aside in server.aside() {
            match &aside.reason {
                SetAsideReason::Changed { .. } => changed += 1,
                SetAsideReason::Renamed { .. } => renamed += 1,
                SetAsideReason::PinsUnreadable { why: reason } => {
                    (why, is_unreadable) = (Some(reason), true);
                    changed += 1;
                }
                SetAsideReason::NotPinned { why: reason } => {
                    why = Some(reason);
                    new += 1;
                }
                _ => {}
            }
        }
        if let Some(why) = why.filter(|_| is_unreadable) {
            let message = format!(
                "{name}: {} set aside, since the pins cannot be read: {}",
                counted(changed, "tool"),
                visible(why)
            );
            context.printer.warning(message, Some(PINS_UNREADABLE_HINT));
            continue;
        }
        if let Some(why) = why {
            let message = format!(
                "{name}: {} set aside, since new tools cannot be pinned: {}",
                counted(new, "tool"),
                visible(why)
            );
            context.printer.warning(message, Some(NOT_PINNED_HINT));
        }
        let mut what = Vec::new();
        if changed > 0 {
            what.push(counted(changed, "tool"));
        }
        if server.withholds_instructions() && new == 0 {
            what.push("its instructions".to_owned());
        }
        let hint = format!("`switchboard pins diff {name}`");
        if !what.is_empty() {
            let what = what.join(" and ");
            let message = format!("{name}: {what} changed since first use; set aside");
            context.printer.warning(message, Some(&hint));
        }
        if renamed > 0 {
            let what = counted(renamed, "tool");
            let message = format!("{name}: {what} renamed since first use; set aside");
            context.printer.warning(message, Some(&hint));
        }
    }
}

/// A tool as JSON: the name that models use, and the rest as sent by the server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'c> {
    name: Option<&'c str>,
    server: &'c str,
    tool: Option<&'c str>,
    title: Option<String>,
    description: Option<String>,
    input_schema: Option<&'c RawValue>,
    annotations: Option<&'c RawValue>,
    tokens: u64,
    /// Suspicious content.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    flags: Vec<FlagEntry>,
    /// Why it is set aside; only with `--all`.
    #[serde(skip_serializing_if = "Option::is_none")]
    aside: Option<String>,
}

impl<'c> Entry<'c> {
    /// A placeholder for the tools of a missing server.
    fn of_missing(server: &'c FailedServer) -> Self {
        Self {
            name: None,
            server: &server.name,
            tool: None,
            title: None,
            description: None,
            input_schema: None,
            annotations: None,
            tokens: 0,
            flags: Vec::new(),
            aside: Some(format!("the server is {}: {}", server.state, server.reason)),
        }
    }
}

/// A suspicious passage as JSON.
#[derive(Serialize)]
struct FlagEntry {
    rule: &'static str,
    about: &'static str,
    field: String,
    span: [usize; 2],
    excerpt: String,
}

impl From<&Flag> for FlagEntry {
    fn from(flag: &Flag) -> Self {
        Self {
            rule: flag.rule.name(),
            about: flag.rule.about(),
            field: flag.field.clone(),
            span: [flag.span.start, flag.span.end],
            excerpt: flag.excerpt.clone(),
        }
    }
}

fn entries(server: &CatalogServer, all: bool) -> Vec<Entry<'_>> {
    let name = server.name().as_str();
    let offered = server.tools().map(|tool| Entry {
        name: Some(tool.exposed().as_str()),
        server: name,
        tool: Some(tool.reference().tool.as_str()),
        title: tool.title().map(Into::into),
        description: tool.description().map(Into::into),
        input_schema: Some(tool.input_schema()),
        annotations: tool.field("annotations"),
        tokens: tool.tokens().0,
        flags: server.flags(tool).iter().map(FlagEntry::from).collect(),
        aside: None,
    });
    let aside = server.aside().filter(|_| all).map(|aside| Entry {
        name: None,
        server: name,
        tool: aside.name.as_deref(),
        title: None,
        description: None,
        input_schema: None,
        annotations: None,
        tokens: 0,
        flags: Vec::new(),
        aside: Some(aside.reason.to_string()),
    });
    offered.chain(aside).collect()
}

/// One block per server: its token cost, and its tools with their costs and first lines.
pub(super) fn to_text(catalog: &Catalog, detail: Detail, width: Option<usize>) -> String {
    let blocks: Vec<(&CatalogServer, Vec<Row>)> = catalog
        .servers()
        .iter()
        .map(|server| (server, rows(server, detail)))
        .collect();
    let cells = || blocks.iter().flat_map(|(_, rows)| rows);
    let name_width = cells().map(|row| row.name.width()).max();
    let name_width = name_width.unwrap_or_default();
    let cost_width = cells().map(|row| row.cost.width()).max();
    let cost_width = cost_width.unwrap_or_default();
    let room = width.map(|width| {
        let taken = 2 + name_width + 2 + cost_width + 2;
        width.saturating_sub(taken).max(MIN_ABOUT_WIDTH)
    });
    let mut text = String::new();
    for (server, rows) in &blocks {
        if !text.is_empty() {
            text.push('\n');
        }
        let cost = format!("{}, {} tokens", server.count(), server.tokens().0);
        let name = paint(style::NAME, visible(server.name().as_str()));
        let _ = writeln!(text, "{name}  {}", paint(style::QUIET, cost));
        for row in rows {
            let about = match room {
                Some(room) => fitted(&row.about, room),
                None => row.about.as_str().into(),
            };
            let gap = name_width.saturating_sub(row.name.width()) + 2;
            let cost = " ".repeat(cost_width.saturating_sub(row.cost.width())) + &row.cost;
            let name = paint(row.style, &row.name);
            let cost = paint(style::QUIET, cost);
            let line = format!("  {name}{:gap$}{cost}  {about}", "");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    if blocks.len() > 1 {
        let total = format!(
            "\n{} of {}, {} tokens",
            counted(catalog.len(), "tool"),
            counted(blocks.len(), "server"),
            catalog.tokens().0
        );
        let _ = writeln!(text, "{}", paint(style::QUIET, total));
    }
    text
}

/// A tool as shown to people, sanitized.
struct Row {
    style: Style,
    name: String,
    cost: String,
    about: String,
}

fn rows(server: &CatalogServer, detail: Detail) -> Vec<Row> {
    let offered = server.tools().map(|tool| {
        let (style, about) = about(server, tool, detail);
        Row {
            style,
            name: visible(tool.exposed().as_str()).into_owned(),
            cost: tool.tokens().0.to_string(),
            about,
        }
    });
    let is_shown = |_: &_| detail == Detail::All;
    let aside = server.aside().filter(is_shown).map(|aside| Row {
        style: style::WARNING,
        name: visible(aside.name.as_deref().unwrap_or("(no name)")).into_owned(),
        cost: "–".to_owned(),
        about: format!("set aside: {}", visible(&aside.reason.to_string())),
    });
    offered.chain(aside).collect()
}

/// A tool's description in one sanitized line, and the style of its name.
pub(super) fn about(server: &CatalogServer, tool: &CatalogTool, detail: Detail) -> (Style, String) {
    if detail == Detail::Remembered {
        return (Style::new(), first_line(tool));
    }
    match server.flags(tool).first() {
        None => (Style::new(), first_line(tool)),
        // With `--all`, the complete flag; otherwise a short warning.
        Some(flag) if detail == Detail::All => (style::WARNING, format!("suspicious: {flag}")),
        Some(flag) => {
            let about = format!("suspicious, {}: {}", flag.rule.about(), first_line(tool));
            (style::WARNING, about)
        }
    }
}

/// How much is shown of each tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The cached list, not scanned for suspicious content, for speed.
    Remembered,
    /// The offered tools, marked where suspicious.
    Usual,
    /// Also tools set aside, with the reason.
    All,
}

impl Detail {
    /// `All` with `--all`, else `otherwise`.
    fn of(arguments: &ToolsArguments, otherwise: Self) -> Self {
        if arguments.all { Self::All } else { otherwise }
    }
}

/// The first non-empty line of a tool's description.
pub(super) fn first_line(tool: &CatalogTool) -> String {
    let description = tool.description().or_else(|| tool.title());
    let description = description.unwrap_or_default();
    let mut lines = description.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    visible(line).into_owned()
}
