//! Shared by all built-in tools: definitions, arguments, blocking work, and the output limit.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::catalog::Tokens;
use switchboard::service::Cancellation;

use super::{LocalContext, LocalOutput};
use crate::message::ToolDefinition;

pub(super) fn definition(name: &str, description: &str, schema: &str) -> ToolDefinition {
    let schema = RawValue::from_string(schema.to_owned());
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        // All schemas are constants of this crate, and tests parse them.
        input_schema: schema.unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}

/// Parses the arguments. They already passed the schema, so this rarely fails.
pub(super) fn arguments<'a, T: Deserialize<'a>>(arguments: &'a RawValue) -> Result<T, LocalOutput> {
    serde_json::from_str(arguments.get())
        .map_err(|error| LocalOutput::error(format!("invalid arguments: {error}")))
}

/// Merges the two outcomes: the error is an output for the model, too.
pub(super) async fn output_or_error(
    work: impl Future<Output = Result<LocalOutput, LocalOutput>>,
) -> LocalOutput {
    work.await.unwrap_or_else(|output| output)
}

/// Runs blocking work. If the future is dropped, the cancellation is triggered; `work` has to poll it.
pub(super) async fn blocking(
    work: impl FnOnce(&Cancellation) -> LocalOutput + Send + 'static,
) -> LocalOutput {
    struct CancelOnDrop(Cancellation);

    impl Drop for CancelOnDrop {
        fn drop(&mut self) {
            self.0.cancel();
        }
    }

    let cancellation = Cancellation::default();
    let _cancel = CancelOnDrop(cancellation.clone());
    let done = tokio::task::spawn_blocking(move || work(&cancellation)).await;
    done.unwrap_or_else(|error| LocalOutput::error(format!("the tool crashed: {error}")))
}

/// Maximum characters of an output.
pub(super) fn limit(context: &LocalContext) -> usize {
    Tokens(context.max_output_tokens).characters()
}

/// Returns the text if it fits, else its beginning and end, with the path of the full output.
pub(super) fn fit(text: String, whole: &[u8], label: &str, context: &LocalContext) -> String {
    let limit = limit(context);
    let characters = text.chars().count();
    if characters <= limit {
        return text;
    }
    let spilled = context
        .spill
        .as_ref()
        .map(|folder| folder.write(label, "txt", whole));
    let place = match spilled {
        Some(Ok(spilled)) => format!("the full output is in {}", spilled.path.display()),
        Some(Err(error)) => format!("the rest is lost: {error}"),
        None => "the rest is lost: there is no folder for it".to_owned(),
    };
    let note = format!("\n[… the middle of {characters} characters is left out; {place}]\n");
    let room = limit.saturating_sub(note.chars().count());
    let head = before_line_end(first(&text, room / 2));
    let tail = after_line_end(last(&text, room - room / 2));
    format!("{head}{note}{tail}")
}

/// Adds a bracketed note on its own line.
pub(super) fn remark(text: &mut String, remark: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing to a `String` cannot fail.
    let _ = write!(text, "[{remark}]");
}

/// The first `count` characters.
pub(super) fn first(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The last `count` characters.
fn last(text: &str, count: usize) -> &str {
    let Some(before) = count.checked_sub(1) else {
        return "";
    };
    let start = text.char_indices().rev().nth(before);
    let start = start.and_then(|(start, _)| text.get(start..));
    start.unwrap_or(text)
}

/// Cuts after the last complete line, if that removes little.
fn before_line_end(text: &str) -> &str {
    let lines = text.rfind('\n').and_then(|end| text.get(..end));
    lines
        .filter(|lines| text.len() - lines.len() <= text.len() / 10)
        .unwrap_or(text)
}

/// Cuts before the first complete line, if that removes little.
fn after_line_end(text: &str) -> &str {
    let lines = text.find('\n').and_then(|end| text.get(end + 1..));
    lines
        .filter(|lines| text.len() - lines.len() <= text.len() / 10)
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use switchboard::internal::call::spill::SpillFolder;

    use super::*;

    #[test]
    fn the_middle_is_cut_and_kept_elsewhere() {
        let folder = tempfile::tempdir().expect("a folder");
        let context = LocalContext {
            workspace: folder.path().to_owned(),
            max_output_tokens: 200,
            spill: Some(SpillFolder::new(folder.path())),
            progress: Arc::new(|_| {}),
            secrets: Arc::default(),
        };
        let check = |text: String, expected: &[&str]| {
            let shown = fit(text.clone(), text.as_bytes(), "test", &context);
            assert!(shown.chars().count() <= 500, "{}", shown.chars().count());
            for part in expected {
                assert!(shown.contains(part), "{part:?} in {shown:?}");
            }
            shown
        };
        assert_eq!(check("ä".repeat(500), &[]), "ä".repeat(500));
        let long = "a line\n".repeat(1000);
        let shown = check(long.clone(), &["a line\n", "is left out"]);
        let path = shown
            .split("is in ")
            .nth(1)
            .and_then(|rest| rest.split(']').next());
        let lines = std::fs::read_to_string(path.expect("a path")).expect("a file");
        assert_eq!(lines, long);
        check("\u{1f600}".repeat(100_000), &["\u{1f600}", "is left out"]);
    }
}
