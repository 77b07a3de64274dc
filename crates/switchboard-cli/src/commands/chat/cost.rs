//! `/cost`: tokens of the conversation, and of the definitions of tools.

use anstyle::Style;
use switchboard_agent::Session as Conversation;
use switchboard_agent::provider::Usage;

use crate::error::Failure;
use crate::printer::{Table, paint, style};
use crate::session::Session;

/// What the conversation has cost, and what the definitions of tools cost each time.
pub(super) async fn tell(
    conversation: &Conversation,
    window: u64,
    session: &Session<'_>,
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
        (input, "read anew"),
        (cache_read, "read from the provider's cache"),
        (cache_write, "written to the provider's cache"),
        (output, "said by the model"),
    ] {
        table.row([(style::NAME, &count.to_string()), (Style::new(), about)]);
    }
    printer.data(table)?;
    if is_estimate {
        let told = "estimated, at least in part: the model's endpoint does not count tokens";
        printer.note(paint(style::QUIET, told));
    }
    let catalog = session.host.catalog();
    if catalog.servers().is_empty() {
        printer.note(paint(
            style::QUIET,
            "no server is connected yet, so no tool costs anything",
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
    let told = conversation.tools().await.len();
    for line in [
        format!("the model sees {told} tools in a window of {window} tokens"),
        "/tools lists what each tool costs".to_owned(),
    ] {
        printer.note(paint(style::QUIET, line));
    }
    Ok(())
}
