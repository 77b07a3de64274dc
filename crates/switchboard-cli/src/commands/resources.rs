//! `switchboard resources`: lists the resources and resource templates of all servers.

use anstyle::Style;
use switchboard::ListKind;
use switchboard_config::text::visible;
use switchboard_protocol::types::resource::{Resource, ResourceTemplate};
use switchboard_protocol::types::{Number, decode};

use super::content::{Listed, json_list, list_all};
use super::status::size;
use crate::cli::FromServer;
use crate::context::Context;
use crate::error::Outcome;
use crate::printer::{Column, Printer, Table, style};
use crate::servers::Servers;
use crate::{session, terminal};

pub(crate) fn run(from: &FromServer, context: &Context) -> Outcome {
    let wanted = from.server.as_deref();
    let servers = Servers::load(context, wanted)?;
    session::run(context, &servers, async |session| {
        session.start().await;
        if let Some(wanted) = wanted {
            session.need(wanted)?;
        }
        let resources = list_all(session, ListKind::Resources, wanted).await?;
        let templates = list_all(session, ListKind::Templates, wanted).await?;
        let printer = &context.printer;
        if printer.json {
            printer.json_text(&format!(
                "{{\"resources\":{},\"resourceTemplates\":{}}}",
                json_list(&resources),
                json_list(&templates)
            ))?;
        } else {
            printer.data(to_text(&resources, &templates, printer))?;
        }
        Ok(session.exit())
    })
}

fn to_text(resources: &[Listed], templates: &[Listed], printer: &Printer) -> String {
    let mut blocks = Vec::new();
    let mut table = Table::new(&[
        Column::new("SERVER"),
        Column::key("URI"),
        Column::text("NAME").dropped(3),
        Column::new("TYPE").dropped(1),
        Column::new("SIZE").dropped(2),
    ]);
    let mut count = 0;
    for (listed, item) in each(resources) {
        let Ok(resource) = decode::<Resource<'_>>(item) else {
            unreadable(listed, printer);
            continue;
        };
        let bytes = resource.size.as_ref().and_then(Number::as_u64);
        table.row([
            (style::NAME, listed.server.as_str()),
            (Style::new(), &resource.uri),
            (
                Style::new(),
                resource.title.as_deref().unwrap_or(&resource.name),
            ),
            (style::QUIET, resource.mime_type.as_deref().unwrap_or("–")),
            (style::QUIET, &bytes.map_or_else(|| "–".to_owned(), size)),
        ]);
        count += 1;
    }
    if count > 0 {
        blocks.push(table.fitted(terminal::width()));
    }
    let mut table = Table::new(&[
        Column::new("SERVER"),
        Column::key("TEMPLATE"),
        Column::text("NAME").dropped(2),
        Column::new("TYPE").dropped(1),
    ]);
    count = 0;
    for (listed, item) in each(templates) {
        let Ok(template) = decode::<ResourceTemplate<'_>>(item) else {
            unreadable(listed, printer);
            continue;
        };
        table.row([
            (style::NAME, listed.server.as_str()),
            (Style::new(), &template.uri_template),
            (
                Style::new(),
                template.title.as_deref().unwrap_or(&template.name),
            ),
            (style::QUIET, template.mime_type.as_deref().unwrap_or("–")),
        ]);
        count += 1;
    }
    if count > 0 {
        blocks.push(table.fitted(terminal::width()));
    }
    if blocks.is_empty() {
        printer.note("no server has resources");
    }
    blocks.join("\n")
}

fn each(lists: &[Listed]) -> impl Iterator<Item = (&Listed, &serde_json::value::RawValue)> {
    let with_list = |listed| {
        Listed::items(listed)
            .into_iter()
            .map(move |item| (listed, item))
    };
    lists.iter().flat_map(with_list)
}

fn unreadable(listed: &Listed, printer: &Printer) {
    let name = visible(listed.server.as_str());
    printer.warning(format!("{name} lists an invalid resource"), None);
}
