//! `switchboard search`: finds tools by purpose.
//!
//! Searches the same catalogue as `tools`: connected, or cached with `--no-connect`. No result is not a failure.

use anstyle::Style;
use serde::Serialize;
use switchboard::catalog::{Catalog, CatalogServer, CatalogTool};
use switchboard::search::{Hit, Index};

use crate::cli::SearchArguments;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, style};
use crate::servers::Servers;
use crate::session;

use super::tools::{Detail, about, remembered, warn_of_pins};

pub(crate) fn run(arguments: &SearchArguments, context: &Context) -> Outcome {
    let query = arguments.query.join(" ");
    if query.trim().is_empty() {
        return Err(Failure::usage("the query is empty")
            .hint("describe what the tool is for, as in `switchboard search read a web page`"));
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
    session::run_listing(context, &servers, async |session| {
        match &arguments.server {
            Some(wanted) => session.start_one(wanted).await?,
            None => session.start().await,
        }
        let hits = session.host.search(&query, limit);
        show(&session.host.catalog(), &hits, context)?;
        Ok(session.exit())
    })
}

/// A tool as JSON.
#[derive(Serialize)]
struct Entry<'c> {
    name: &'c str,
    server: &'c str,
    tool: &'c str,
    score: f64,
    description: String,
}

/// A match: server, tool, score.
type Found<'c> = (&'c CatalogServer, &'c CatalogTool, f64);

fn show(catalog: &Catalog, hits: &[Hit], context: &Context) -> Result<(), Failure> {
    let printer = &context.printer;
    warn_of_pins(catalog, context);
    // Skip tools removed since the index was built.
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
        printer.note("no matching tools; `switchboard tools` lists all");
        return Ok(());
    }
    printer.table(&table(&found))
}

/// One row per tool: name, score, description.
fn table(found: &[Found<'_>]) -> Table {
    let mut table = Table::new(&[
        Column::key(""),
        Column::new("").right().dropped(1),
        Column::text(""),
    ]);
    for (server, tool, score) in found {
        let (name_style, about) = about(server, tool, Detail::Usual);
        table.row([
            (name_style, tool.exposed().as_str()),
            (style::QUIET, &format!("{score:.1}")),
            (Style::new(), &about),
        ]);
    }
    table
}

/// Rounds to three decimals, so that the output is the same on every machine.
fn rounded(score: f32) -> f64 {
    (f64::from(score) * 1000.0).round() / 1000.0
}
