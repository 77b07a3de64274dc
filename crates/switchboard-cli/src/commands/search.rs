//! `switchboard search`: tools by what they are for.
//!
//! It searches what `tools` lists: connected, what the servers offer now; with `--no-connect`, what they offered last
//! time. That nothing was found is an answer, not a failure.

use anstyle::Style;
use serde::Serialize;
use switchboard::catalog::{Catalog, CatalogServer, CatalogTool};
use switchboard::search::{Hit, Index};
use switchboard_config::text::visible;
use unicode_width::UnicodeWidthStr as _;

use crate::cli::SearchArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Table, style};
use crate::servers::Servers;
use crate::session;
use crate::terminal::{self, fitted};

use super::tools::{Detail, about, remembered, warn_of_pins};

/// A description is at least this wide, however narrow the terminal is.
const NARROWEST: usize = 20;

pub(crate) fn run(arguments: &SearchArguments, context: &Context) -> Outcome {
    let query = arguments.query.join(" ");
    if query.trim().is_empty() {
        return Err(Failure::usage("there is nothing to search for")
            .hint("say what the tool is for, as in `switchboard search read a web page`"));
    }
    let limit = usize::from(arguments.limit);
    let servers = Servers::load(context, arguments.server.as_deref())?;
    if arguments.no_connect {
        let catalog = remembered(&servers, context);
        let mut index = Index::new();
        index.update(&catalog);
        show(&catalog, &index.search(&query, limit), context)?;
        return Ok(Exit::Done);
    }
    session::look(context, &servers, async |session| {
        match &arguments.server {
            Some(wanted) => session.start_one(wanted).await?,
            None => session.start().await,
        }
        let hits = session.host.search(&query, limit);
        show(&session.host.catalog(), &hits, context)?;
        Ok(session.exit())
    })
}

/// A tool for scripts.
#[derive(Serialize)]
struct Entry<'c> {
    name: &'c str,
    server: &'c str,
    tool: &'c str,
    score: f64,
    description: String,
}

/// A tool that fits, with its server and how well it fits.
type Found<'c> = (&'c CatalogServer, &'c CatalogTool, f64);

fn show(catalog: &Catalog, hits: &[Hit], context: &Context) -> Result<(), Failure> {
    let printer = &context.printer;
    warn_of_pins(catalog, context);
    // A server may have changed its list since; what is gone is no answer any more.
    let found: Vec<Found<'_>> = hits
        .iter()
        .filter_map(|hit| {
            let tool = catalog.exposed(hit.name.as_str())?;
            let server = catalog.server(tool.reference().server.as_str())?;
            Some((server, tool, rounded(hit.score)))
        })
        .collect();
    if printer.json {
        let entries = found.iter().map(|(_, tool, score)| Entry {
            name: tool.exposed().as_str(),
            server: tool.reference().server.as_str(),
            tool: tool.reference().tool.as_str(),
            score: *score,
            description: tool.description().unwrap_or_default().into_owned(),
        });
        let text = serde_json::to_string(&entries.collect::<Vec<_>>())
            .map_err(|error| Failure::failed("could not write JSON").because(error))?;
        return printer.json_text(&text);
    }
    if found.is_empty() {
        printer.note("no tool fits; `switchboard tools` lists them all");
        return Ok(());
    }
    printer.data(table(&found, terminal::width()))
}

/// One line for each tool: its name, how well it fits, and what it does.
fn table(found: &[Found<'_>], width: Option<usize>) -> Table {
    let names = found
        .iter()
        .map(|(_, tool, _)| visible(tool.exposed().as_str()).width());
    let name_width = names.max().unwrap_or_default();
    let score_width = found
        .iter()
        .map(|(_, _, score)| format!("{score:.1}").len())
        .max();
    let score_width = score_width.unwrap_or_default();
    let room = width.map(|width| {
        let taken = name_width + 2 + score_width + 2;
        width.saturating_sub(taken).max(NARROWEST)
    });
    let mut table = Table::default();
    for (server, tool, score) in found {
        let (name_style, about) = about(server, tool, Detail::Usual);
        let about = match room {
            Some(room) => fitted(&about, room),
            None => about.as_str().into(),
        };
        table.row([
            (name_style, tool.exposed().as_str()),
            (style::QUIET, &format!("{score:>score_width$.1}")),
            (Style::new(), &about),
        ]);
    }
    table
}

/// Three decimals: enough to compare with, and the same on every machine.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1000.0).round() / 1000.0
}
