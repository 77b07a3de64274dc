//! `/diff` and `/undo`: the files that the agent's own tools have changed.

use switchboard_agent::{FileChange, Session as Conversation, UndoError};
use switchboard_config::text::visible;

use crate::error::Failure;
use crate::printer::{paint, style};
use crate::questions::safe;

/// What the list does not cover.
const UNTRACKED: &str = "changes by Bash commands and by servers are not tracked";

/// All changes with their diffs, oldest first.
pub(super) fn differences(changes: &[FileChange]) -> Vec<String> {
    if changes.is_empty() {
        let remarks = ["no file changed by Write or Edit", UNTRACKED];
        let remarks = remarks.map(|remark| paint(style::QUIET, remark));
        return remarks.to_vec();
    }
    let mut lines = Vec::new();
    for change in changes {
        let what = match (change.is_undone, change.is_new) {
            (true, _) => "undone",
            (false, true) => "new file",
            (false, false) => "changed",
        };
        let name = paint(style::NAME, visible(&change.name));
        lines.push(format!(
            "{} {name}  {what}",
            paint(style::HINT, format!("#{}", change.number))
        ));
        if change.is_undone {
            continue;
        }
        match &change.difference {
            Some(difference) => lines.extend(difference.lines().skip(2).map(colored)),
            None => lines.push(paint(style::QUIET, "  not text, or too large to show")),
        }
    }
    let undo = "/undo takes the last one back, /undo N another";
    for remark in [undo, UNTRACKED] {
        lines.push(paint(style::QUIET, remark));
    }
    lines
}

fn colored(line: &str) -> String {
    let style = match line.chars().next() {
        Some('+') => style::GOOD,
        Some('-') => style::REMOVED,
        Some('@') => style::HINT,
        _ => style::QUIET,
    };
    paint(style, safe(&line.replace('\t', "    ")))
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
