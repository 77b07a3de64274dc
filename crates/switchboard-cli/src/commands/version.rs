//! `switchboard version`: prints the version.

use serde_json::json;

use crate::error::Outcome;
use crate::exit::Exit;
use crate::printer::Printer;

pub(crate) fn run(printer: &Printer) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    if printer.json {
        printer.json(&json!({"name": "switchboard", "version": version}))?;
    } else {
        printer.data(format!("switchboard {version}"))?;
    }
    Ok(Exit::Done)
}
