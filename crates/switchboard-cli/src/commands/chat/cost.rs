//! `/cost`: prints the tokens and the cost of the session, and the tokens of tool definitions.

use anstyle::Style;
use switchboard_agent::Session as Conversation;
use switchboard_agent::provider::{Cost, Model, Usage};
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::printer::{Table, paint, style};
use crate::session::CommandHost;

/// Prints what the session has used so far, and what tool definitions add to each request.
pub(super) async fn print(
    spent: Usage,
    conversation: &Conversation,
    model: &Model,
    session: &CommandHost<'_>,
) -> Result<(), Failure> {
    let printer = &session.context.printer;
    let Usage {
        input,
        cache_read,
        cache_write,
        output,
        is_estimate,
        cost,
    } = spent;
    let mut table = Table::with_heading(&["TOKENS", ""]);
    for (count, about) in [
        (input, "input, uncached"),
        (cache_read, "input, read from the provider's cache"),
        (cache_write, "input, written to the provider's cache"),
        (output, "output"),
    ] {
        table.row([(style::NAME, &count.to_string()), (Style::new(), about)]);
    }
    printer.table(&table)?;
    for line in money(cost, input + output + cache_read + cache_write, model) {
        printer.note(line);
    }
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
    let window = conversation.window().await;
    let count: usize = window.tools.iter().map(|tools| tools.count).sum();
    for line in [
        format!(
            "the model sees {count} tools in a context window of {} tokens",
            model.window
        ),
        "/tools lists what each tool costs".to_owned(),
    ] {
        printer.note(paint(style::QUIET, line));
    }
    Ok(())
}

/// What the tokens cost, or why that is unknown.
fn money(cost: Option<Cost>, tokens: u64, model: &Model) -> Vec<String> {
    let quiet = |text: String| paint(style::QUIET, text);
    let Some(cost) = cost else {
        let unknown = format!("no price is known for {}: tokens only", visible(&model.id));
        return match (tokens, model.price) {
            (0, Some(_)) => Vec::new(),
            _ => vec![quiet(unknown)],
        };
    };
    let about = format!("at list prices of {}", cost.as_of);
    let mut lines = vec![format!("{} {}", paint(style::NAME, cost), quiet(about))];
    if cost.is_partial {
        let text = "without the tokens of models whose price is unknown";
        lines.push(quiet(text.to_owned()));
    }
    lines
}
