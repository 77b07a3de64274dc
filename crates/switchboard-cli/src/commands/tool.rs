//! One tool in detail, for `switchboard tools TOOL`: its signature, its arguments and an example call.

use std::fmt::Write as _;

use anstyle::Style;
use switchboard::catalog::{Catalog, CatalogServer, CatalogTool, LookupError};
use switchboard_config::text::visible;

use super::tools::one_json;
use crate::context::Context;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::printer::{Column, Table, paint, style};
use crate::signature::{Parameter, Signature, bare};
use crate::{lookup, terminal};

pub(crate) fn show(catalog: &Catalog, name: &str, context: &Context) -> Outcome {
    let tool = lookup::tool(catalog, name).map_err(|error| unknown(&error))?;
    let server = catalog.server(tool.reference().server.as_str());
    let server = server.ok_or_else(|| Failure::failed("the server is gone"))?;
    let printer = &context.printer;
    if printer.json {
        printer.json_text(&one_json(server, tool)?)?;
    } else {
        printer.data(to_text(server, tool, terminal::width()))?;
    }
    Ok(Exit::Done)
}

fn unknown(error: &LookupError) -> Failure {
    let failure = Failure::failed(visible(&error.to_string()));
    match error.hint() {
        Some(hint) => failure.hint(visible(&hint)),
        None => failure.hint("`switchboard tools` lists all tools"),
    }
}

fn to_text(server: &CatalogServer, tool: &CatalogTool, width: Option<usize>) -> String {
    let reference = tool.reference().to_string();
    let signature = Signature::of(tool.input_schema());
    let mut text = format!(
        "{}  {}\n",
        paint(style::NAME, visible(&reference)),
        paint(style::QUIET, visible(tool.exposed().as_str()))
    );
    for flag in server.flags(tool) {
        let warning = format!("suspicious: {}", visible(&flag.to_string()));
        let _ = writeln!(text, "{}", paint(style::WARNING, warning));
    }
    if let Some(description) = tool.description() {
        let _ = writeln!(text);
        for line in description.trim().lines() {
            let _ = writeln!(text, "{}", visible(line.trim_end()));
        }
    }
    let own = tool.reference().tool.as_str().to_owned();
    let call = format!("{own}{}", signature.in_words());
    let _ = writeln!(text, "\n  {}", paint(style::HINT, visible(&call)));
    if !signature.parameters.is_empty() {
        let _ = write!(text, "\n{}", table(&signature).fitted(width));
    }
    let mut facts = hints(tool);
    facts.push(format!("{} tokens", tool.tokens().0));
    let _ = writeln!(text, "\n{}", paint(style::QUIET, facts.join(", ")));
    let example = signature.example(&reference);
    let _ = writeln!(text, "\nExample:\n  {}", visible(&example));
    text
}

/// One row per argument.
fn table(signature: &Signature) -> Table {
    let mut table = Table::new(&[
        Column::new("ARGUMENT"),
        Column::text("TYPE"),
        Column::new("").dropped(1),
        Column::wrapped("DESCRIPTION"),
    ]);
    for each in &signature.parameters {
        let about = each.about.as_deref().unwrap_or_default();
        let about: Vec<&str> = about.split_whitespace().collect();
        table.row([
            (style::NAME, &each.name),
            (Style::new(), &each.kind),
            (style::QUIET, &need(each)),
            (Style::new(), &about.join(" ")),
        ]);
    }
    table
}

/// Whether an argument may be left out, and what it is then.
fn need(parameter: &Parameter) -> String {
    match (&parameter.default, parameter.is_required) {
        (_, true) => "required".to_owned(),
        (Some(default), false) if !default.is_null() => format!("default {}", bare(default)),
        _ => "optional".to_owned(),
    }
}

/// What the server says about the tool's effects.
fn hints(tool: &CatalogTool) -> Vec<String> {
    let annotations = tool.field("annotations");
    let annotations: serde_json::Value = annotations
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .unwrap_or_default();
    let hints = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "reaches other systems"),
    ];
    let stated = hints
        .into_iter()
        .filter(|(key, _)| annotations[*key] == true);
    stated.map(|(_, word)| word.to_owned()).collect()
}
