//! `/diff` and `/undo`: the files that the agent's own tools have changed.

use anstyle::Style;
use switchboard_agent::{FileChange, Session as Conversation, UndoError};
use switchboard_config::text::visible;

use super::call_line;
use crate::error::Failure;
use crate::live::Line;
use crate::printer::{paint, style};

/// What the list does not cover.
const UNTRACKED: &str = "changes by Bash commands and by servers are not tracked";

/// All changes with their diffs, oldest first.
pub(super) fn differences(changes: &[FileChange]) -> Vec<Line> {
    let quiet = |text: &str| vec![(style::QUIET, text.to_owned())];
    if changes.is_empty() {
        return ["no file changed by Write or Edit", UNTRACKED]
            .map(quiet)
            .to_vec();
    }
    let mut lines = Vec::new();
    for change in changes {
        let what = match (change.is_undone, change.is_new) {
            (true, _) => "undone",
            (false, true) => "new file",
            (false, false) => "changed",
        };
        lines.push(vec![
            (style::HINT, format!("#{} ", change.number)),
            (style::NAME, visible(&change.name).into_owned()),
            (Style::new(), format!("  {what}")),
        ]);
        if change.is_undone {
            continue;
        }
        match &change.difference {
            Some(difference) => {
                let rows = call_line::display(difference, usize::MAX, None);
                lines.extend(rows.into_iter().skip(2));
            }
            None => lines.push(quiet("  not text, or too large to show")),
        }
    }
    let undo = "/undo takes the last one back, /undo N another";
    lines.extend([undo, UNTRACKED].map(quiet));
    lines
}

/// Undoes the change with the typed number, or the last one.
pub(super) async fn undo(typed: &str, conversation: &Conversation) -> Result<String, Failure> {
    let number = match typed.trim().trim_start_matches('#') {
        "" => None,
        text => Some(text.parse().map_err(|_| {
            Failure::usage(format!(
                "`{}` is not the number of a change",
                visible(typed)
            ))
            .hint("/diff shows the numbers")
        })?),
    };
    let undone = conversation
        .undo(number)
        .await
        .map_err(|error| failure(&error))?;
    let name = paint(style::NAME, visible(&undone.name));
    let outcome = if undone.is_new { "deleted" } else { "restored" };
    Ok(format!(
        "change {} undone: {name} is {outcome}",
        undone.number
    ))
}

fn failure(error: &UndoError) -> Failure {
    let failure = Failure::failed(visible(&error.to_string()).into_owned());
    match error {
        UndoError::Changed {
            later: Some(later), ..
        } => failure.hint(format!("undo the later change first: /undo {later}")),
        UndoError::Changed { later: None, .. } => {
            failure.hint("nothing was done; /diff shows the change, to take it back by hand")
        }
        UndoError::Nothing | UndoError::Unknown(_) | UndoError::Already(_) => {
            failure.hint("/diff lists the changes")
        }
        _ => failure,
    }
}
