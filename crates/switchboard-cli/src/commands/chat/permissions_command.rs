//! `/permissions`: the rules in force, what this session was granted, and revoking a grant.

use anstyle::Style;
use switchboard::permissions::Policy;
use switchboard_config::text::visible;

use crate::commands::permissions;
use crate::error::Failure;
use crate::printer::{Table, paint, style};
use crate::servers::Servers;
use crate::session::{self, CommandHost};

/// Runs the text typed after `/permissions`, and returns what to print.
pub(super) fn run(
    typed: &str,
    configured: &Servers,
    session: &CommandHost<'_>,
) -> Result<Vec<String>, Failure> {
    let usage = |message: String| {
        Failure::usage(message).hint("/permissions, or /permissions revoke NUMBER")
    };
    let words: Vec<&str> = typed.split_whitespace().collect();
    match words[..] {
        [] => Ok(list(configured, session)),
        ["revoke", number] => {
            let unknown = || usage(format!("no grant number `{}`", visible(number)));
            let parsed: u64 = number.parse().map_err(|_| unknown())?;
            if !session.gate.revoke_grant(parsed) {
                return Err(unknown());
            }
            Ok(vec![format!("grant {parsed} revoked; you are asked again")])
        }
        ["revoke", ..] => Err(usage("`/permissions revoke` takes one number".to_owned())),
        _ => Err(usage(format!(
            "unknown command `/permissions {}`",
            visible(typed)
        ))),
    }
}

fn list(configured: &Servers, session: &CommandHost<'_>) -> Vec<String> {
    let context = session.context;
    let engine = session::engine(configured, context, Policy::agent());
    let quiet = |text: &str| paint(style::QUIET, text);
    let mut lines = Vec::new();
    if engine.rules().is_empty() {
        lines.push(quiet("no rules"));
    } else {
        lines.push(permissions::rules(&engine, context).to_string());
    }
    let default = engine.policy().default.name();
    lines.push(quiet(&format!(
        "default without a matching rule: {default}"
    )));
    lines.push(quiet(
        "`switchboard permissions explain TOOL` explains a decision",
    ));
    let grants = session.gate.session_grants();
    if grants.is_empty() {
        lines.push(quiet("nothing was granted for this session"));
        return lines;
    }
    let mut table = Table::with_heading(&["GRANT", "TOOL", "ALLOWED IN THIS SESSION"]);
    for grant in grants {
        table.row([
            (style::NAME, &grant.number.to_string()),
            (Style::new(), &grant.tool),
            (Style::new(), &grant.words),
        ]);
    }
    lines.push(format!("\n{table}"));
    lines.push(quiet("/permissions revoke NUMBER revokes a grant"));
    lines
}
