//! `switchboard tools`: lists the catalogue.
//!
//! Lists what connected servers offer, or, with `--no-connect`, their cached lists: one read of the store, with no
//! runtime, thread or server.

use anstyle::Style;
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard::catalog::{
    Catalog, CatalogServer, CatalogTool, Flag, LookupError, SetAsideReason,
};
use switchboard::internal::catalog::{NOT_PINNED_HINT, PINS_UNREADABLE_HINT};
use switchboard::internal::remembered;
use switchboard_agent::FailedServer;
use switchboard_config::text::visible;

use super::mcp::import;
use super::{call, tool};
use crate::adhoc::{self, AdHoc};
use crate::cli::ToolsArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::lookup;
use crate::printer::{Column, Table, paint, style};
use crate::servers::Servers;
use crate::session;
use crate::startup::counted;
use crate::terminal;

/// Narrower terminals show tools by their own names: with the server's, little room is left for descriptions.
const MIN_WIDTH_FOR_EXPOSED: usize = 100;

pub(crate) fn run(arguments: &ToolsArguments, context: &Context) -> Outcome {
    let (servers, what) = load(arguments, context)?;
    let server = match &what {
        What::All | What::Tool(_) => None,
        What::Server(server) => Some(server.as_str()),
    };
    if arguments.no_connect {
        let catalog = remembered(&servers, context);
        let detail = Detail::of(arguments, Detail::Remembered);
        if let What::Tool(name) = &what {
            return tool::show(&catalog, name, context);
        }
        let missing = server.map_or_else(|| servers.unusable(), |_| Vec::new());
        show(&catalog, &missing, detail, context)?;
        suggest_servers(&servers, context);
        return Ok(Exit::Done);
    }
    let likely = match &what {
        What::Tool(name) => call::likely_servers(name, &servers, context),
        _ => Vec::new(),
    };
    session::run_listing(context, &servers, async |session| {
        match (server, likely.as_slice()) {
            (Some(wanted), _) => session.start_one(wanted).await?,
            (None, [wanted]) => session.start_one(wanted).await?,
            (None, _) => session.start().await,
        }
        let catalog = session.host.catalog();
        if let What::Tool(name) = &what {
            return tool::show(&catalog, name, context);
        }
        let detail = Detail::of(arguments, Detail::Usual);
        let missing = server.map_or_else(|| session.missing(), |_| Vec::new());
        show(&catalog, &missing, detail, context)?;
        suggest_servers(&servers, context);
        Ok(session.exit())
    })
}

/// Says what to do if only the embedded server is there.
fn suggest_servers(servers: &Servers, context: &Context) {
    if servers.is_embedded_only() {
        import::suggest(context);
    }
}

/// What the command lists.
enum What {
    All,
    Server(String),
    Tool(String),
}

/// Loads the servers, and finds out whether the argument is a server, a tool or a URL.
fn load(arguments: &ToolsArguments, context: &Context) -> Result<(Servers, What), Failure> {
    let Some(what) = &arguments.what else {
        let wanted = arguments.server.as_deref();
        let servers = Servers::load(context, wanted)?;
        let what = wanted.map_or(What::All, |wanted| What::Server(wanted.to_owned()));
        return Ok((servers, what));
    };
    if adhoc::is_url(what) {
        let (servers, name) = Servers::load_with(context, &AdHoc::Url(what.clone()))?;
        return Ok((servers, What::Server(name)));
    }
    let servers = Servers::load(context, None)?;
    if servers.has(what) {
        return Ok((servers.only(what), What::Server(what.clone())));
    }
    let (outlines, lists) = servers.remembered(context);
    let catalog = remembered::catalog(&outlines, &lists);
    let is_unknown = matches!(
        lookup::tool(&catalog, what),
        Err(LookupError::Unknown { .. })
    );
    // A word without a separator may be a misspelled server. Only if it is not near one, all servers are started to find
    // a tool of that name.
    let is_tool = what.contains(['/', '.']) || what.starts_with("mcp__");
    let may_be_new = lists.iter().any(|list| list.lists.is_none()) && !servers.is_near(what);
    if is_tool || !is_unknown || may_be_new {
        return Ok((servers, What::Tool(what.clone())));
    }
    Err(servers.unknown_server_or_tool(what))
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
    let width = terminal::width();
    let mut table = table(catalog, detail, width);
    if detail == Detail::All {
        for (index, server) in missing.iter().enumerate() {
            if index > 0 || !catalog.servers().is_empty() {
                table.line("");
            }
            let name = paint(style::NAME, visible(&server.name));
            let why = format!("{}: {}", server.state, visible(&server.reason));
            table.line(format!("{name}  {}", paint(style::WARNING, why)));
        }
    }
    printer.data(table.fitted(width))
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

/// One tool as JSON, in the form of the list.
pub(super) fn one_json(server: &CatalogServer, tool: &CatalogTool) -> Result<String, Failure> {
    serde_json::to_string(&[Entry::of(server, tool)])
        .map_err(|error| Failure::failed("could not write JSON").because(error))
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
    /// An offered tool.
    fn of(server: &'c CatalogServer, tool: &'c CatalogTool) -> Self {
        Self {
            name: Some(tool.exposed().as_str()),
            server: server.name().as_str(),
            tool: Some(tool.reference().tool.as_str()),
            title: tool.title().map(Into::into),
            description: tool.description().map(Into::into),
            input_schema: Some(tool.input_schema()),
            annotations: tool.field("annotations"),
            tokens: tool.tokens().0,
            flags: server.flags(tool).iter().map(FlagEntry::from).collect(),
            aside: None,
        }
    }

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
    let offered = server.tools().map(|tool| Entry::of(server, tool));
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

/// The tools as text, for a terminal of this width.
pub(super) fn to_text(catalog: &Catalog, detail: Detail, width: Option<usize>) -> String {
    table(catalog, detail, width).fitted(width)
}

/// One block per server: its token cost, and its tools with their costs and first lines.
fn table(catalog: &Catalog, detail: Detail, width: Option<usize>) -> Table {
    let names = match width {
        Some(width) if width < MIN_WIDTH_FOR_EXPOSED => Names::Own,
        _ => Names::Exposed,
    };
    let mut table = Table::new(&[
        Column::key(""),
        Column::new("").right().dropped(1),
        Column::text("").dropped(2),
    ])
    .indented(2);
    let servers = catalog.servers();
    for (index, server) in servers.iter().enumerate() {
        if index > 0 {
            table.line("");
        }
        let cost = format!("{}, {} tokens", server.count(), server.tokens().0);
        let name = paint(style::NAME, visible(server.name().as_str()));
        table.line(format!("{name}  {}", paint(style::QUIET, cost)));
        for row in rows(server, detail, names) {
            table.row([
                (row.style, &row.name),
                (style::QUIET, &row.cost),
                (Style::new(), &row.about),
            ]);
        }
    }
    if servers.len() > 1 {
        let total = format!(
            "{} of {}, {} tokens",
            counted(catalog.len(), "tool"),
            counted(servers.len(), "server"),
            catalog.tokens().0
        );
        table.line("");
        table.line(paint(style::QUIET, total));
    }
    table
}

/// A tool as shown to people, sanitized.
struct Row {
    style: Style,
    name: String,
    cost: String,
    about: String,
}

/// How tools are named in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// As models see them.
    Exposed,
    /// As their server names them, below a line with the server.
    Own,
}

fn rows(server: &CatalogServer, detail: Detail, names: Names) -> Vec<Row> {
    let offered = server.tools().map(|tool| {
        let (style, about) = about(server, tool, detail);
        Row {
            style,
            name: match names {
                Names::Exposed => visible(tool.exposed().as_str()).into_owned(),
                Names::Own => visible(tool.reference().tool.as_str()).into_owned(),
            },
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
pub(crate) fn first_line(tool: &CatalogTool) -> String {
    let description = tool.description().or_else(|| tool.title());
    let description = description.unwrap_or_default();
    let mut lines = description.lines().map(str::trim);
    let line = lines.find(|line| !line.is_empty()).unwrap_or_default();
    visible(line).into_owned()
}
