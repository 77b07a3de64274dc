//! `switchboard call --dry-run`: shows a call and whether it is permitted, without making it.

use serde_json::json;
use serde_json::value::RawValue;
use switchboard::CallRequest;
use switchboard::catalog::CatalogTool;
use switchboard::internal::call::arguments::{ArgumentCheck, Checked};
use switchboard::permissions::Subject;
use switchboard_config::entry::Permission;
use switchboard_config::text::visible;

use super::failure;
use crate::error::{Failure, Outcome};
use crate::exit::Exit;
use crate::json_text;
use crate::printer::{paint, style};
use crate::session::CommandHost;

/// Prints the tool, its arguments and the decision. Fails as the call itself would before it is sent.
pub(super) fn show(
    tool: &CatalogTool,
    request: &CallRequest,
    session: &CommandHost<'_>,
) -> Outcome {
    let name = tool.reference().to_string();
    let arguments = request.arguments.as_deref();
    let checked = ArgumentCheck::compile(tool.input_schema()).check(arguments);
    let checked = checked.map_err(|error| failure::of_arguments(&name, &error))?;
    let reference = tool.reference();
    let decision = session
        .gate
        .engine()
        .decide(&Subject::from(tool), arguments);
    let because = decision.grounds.because.to_string();
    let text = arguments.map_or("{}", RawValue::get);
    let printer = &session.context.printer;
    if printer.json {
        printer.json(&json!({
            "tool": tool.exposed().as_str(),
            "server": reference.server.as_str(),
            "arguments": arguments,
            "decision": decision.permission.name(),
            "reason": because,
        }))?;
    } else {
        let word = match decision.permission {
            Permission::Allow => paint(style::GOOD, "allowed"),
            Permission::Ask => paint(style::WARNING, "needs your consent"),
            Permission::Deny => paint(style::ERROR, "denied"),
        };
        let shown = json_text::indented(text);
        let lines: Vec<String> = shown
            .lines()
            .map(|line| visible(line).into_owned())
            .collect();
        printer.data(format!(
            "would call {}\n{}\n{word}: {}",
            paint(style::NAME, visible(&name)),
            lines.join("\n"),
            visible(&because)
        ))?;
    }
    if let Checked::NotChecked(reason) = checked {
        let message = format!(
            "the arguments are not checked: {}",
            visible(&reason.to_string())
        );
        printer.warning(message, None);
    }
    match decision.permission {
        Permission::Deny => {
            let name = visible(&name).into_owned();
            Err(
                Failure::new(Exit::Denied, format!("permission denied for tool {name}"))
                    .because(visible(&because))
                    .hint(failure::explain_hint(&name)),
            )
        }
        Permission::Allow | Permission::Ask => Ok(Exit::Done),
    }
}
