//! `switchboard config path`: lists every file that is looked up, highest precedence first.

use anstyle::Style;
use serde_json::json;

use crate::context::Context;
use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::{Column, Table, style};
use crate::view;

pub(crate) fn run(context: &Context) -> Outcome {
    let printer = &context.printer;
    let config = context.load();
    if printer.json {
        let places = config.looked.iter().map(|looked| {
            json!({
                "scope": looked.scope.name(),
                "path": looked.path.display().to_string(),
                "found": looked.found,
            })
        });
        printer.json(&places.collect())?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        Column::new("SCOPE"),
        Column::new("FOUND"),
        Column::path("PATH"),
    ]);
    for looked in &config.looked {
        let (found, word) = if looked.found {
            (style::GOOD, "yes")
        } else {
            (style::QUIET, "no")
        };
        let path = view::path(&looked.path, &context.environment.home);
        table.row([
            (Style::new(), looked.scope.name()),
            (found, word),
            (Style::new(), &path),
        ]);
    }
    printer.table(&table)?;
    Ok(Exit::Done)
}
