//! `/cost`: prints the tokens used by the session, and those of tool definitions.

use anstyle::Style;
use switchboard_agent::Session as Conversation;
use switchboard_agent::provider::Usage;

use crate::error::Failure;
use crate::printer::{Table, paint, style};
use crate::session::CommandHost;

/// Prints what the session has used so far, and what tool definitions add to each request.
pub(super) async fn print(
    conversation: &Conversation,
    window: u64,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    let printer = &session.context.printer;
    let Usage {
        input,
        cache_read,
        cache_write,
        output,
        is_estimate,
    } = conversation.usage().await;
    let mut table = Table::with_heading(&["TOKENS", ""]);
    for (count, about) in [
        (input, "input, uncached"),
        (cache_read, "input, read from the provider's cache"),
        (cache_write, "input, written to the provider's cache"),
        (output, "output"),
    ] {
        table.row([(style::NAME, &count.to_string()), (Style::new(), about)]);
    }
    printer.data(table)?;
    if is_estimate {
        let note = "partly estimated: the model's endpoint does not report token counts";
        printer.note(paint(style::QUIET, note));
    }
    let catalog = session.host.catalog();
    if catalog.servers().is_empty() {
        printer.note(paint(
            style::QUIET,
            "no server is connected yet, so tools use no tokens",
        ));
        return Ok(());
    }
    let mut table = Table::with_heading(&["SERVER", "TOOLS", "TOKENS", "MOST EXPENSIVE"]);
    for server in catalog.servers() {
        let dearest = server.tools().max_by_key(|tool| tool.tokens().0);
        let dearest =
            dearest.map(|tool| format!("{} ({})", tool.exposed().as_str(), tool.tokens().0));
        table.row([
            (style::NAME, server.name().as_str()),
            (Style::new(), &server.tools().count().to_string()),
            (Style::new(), &server.tokens().0.to_string()),
            (style::QUIET, &dearest.unwrap_or_default()),
        ]);
    }
    printer.data(format!("\n{table}"))?;
    let count = conversation.tools().await.len();
    for line in [
        format!("the model sees {count} tools in a context window of {window} tokens"),
        "/tools lists what each tool costs".to_owned(),
    ] {
        printer.note(paint(style::QUIET, line));
    }
    Ok(())
}
