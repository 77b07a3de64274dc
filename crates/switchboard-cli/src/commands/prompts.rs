//! `switchboard prompts`: lists the prompts of all servers, with their arguments.

use anstyle::Style;
use switchboard::ListKind;
use switchboard_config::text::visible;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::prompt::Prompt;

use super::content::{Listed, json_list, list_all};
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
        let lists = list_all(session, ListKind::Prompts, wanted).await?;
        let printer = &context.printer;
        if printer.json {
            printer.json_text(&format!("{{\"prompts\":{}}}", json_list(&lists)))?;
        } else {
            printer.data(to_text(&lists, printer))?;
        }
        Ok(session.exit())
    })
}

fn to_text(lists: &[Listed], printer: &Printer) -> String {
    let mut table = Table::new(&[
        Column::new("SERVER"),
        Column::key("PROMPT"),
        Column::text("ARGUMENTS"),
        Column::text("DESCRIPTION").dropped(1),
    ]);
    let mut count = 0;
    for listed in lists {
        for item in listed.items() {
            let Ok(prompt) = decode::<Prompt<'_>>(item) else {
                let name = visible(listed.server.as_str());
                printer.warning(format!("{name} lists an invalid prompt"), None);
                continue;
            };
            let about = prompt.description.as_deref().or(prompt.title.as_deref());
            let first_line = about.and_then(|about| about.lines().next());
            table.row([
                (style::NAME, listed.server.as_str()),
                (Style::new(), &prompt.name),
                (Style::new(), &arguments(&prompt)),
                (style::QUIET, first_line.unwrap_or_default()),
            ]);
            count += 1;
        }
    }
    if count == 0 {
        printer.note("no server has prompts");
        return String::new();
    }
    table.fitted(terminal::width())
}

/// `topic= [tone=]`: brackets mark optional arguments.
fn arguments(prompt: &Prompt<'_>) -> String {
    let written = prompt.arguments.items.iter().map(|argument| {
        if argument.required == Some(true) {
            format!("{}=", argument.name)
        } else {
            format!("[{}=]", argument.name)
        }
    });
    written.collect::<Vec<_>>().join(" ")
}
