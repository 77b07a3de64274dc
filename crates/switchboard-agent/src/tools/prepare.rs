//! What all tools share: definitions, arguments, work that blocks, and text within its limit.

use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::catalog::Tokens;
use switchboard::service::Cancellation;

use super::{LocalContext, LocalOutput};
use crate::message::ToolDefinition;

/// A definition, with its schema as JSON.
pub(super) fn definition(name: &str, description: &str, schema: &str) -> ToolDefinition {
    let schema = RawValue::from_string(schema.to_owned());
    ToolDefinition {
        name: name.to_owned(),
        description: description.to_owned(),
        // All schemas are written in this crate, and its tests read them.
        input_schema: schema.unwrap_or_else(|_| RawValue::NULL.to_owned()),
    }
}

/// The arguments as the tool takes them. They were checked against the schema, so this seldom fails.
pub(super) fn arguments<'a, T: Deserialize<'a>>(arguments: &'a RawValue) -> Result<T, LocalOutput> {
    serde_json::from_str(arguments.get())
        .map_err(|error| LocalOutput::error(format!("these arguments cannot be used: {error}")))
}

/// The output of a tool, or that which says why it cannot run.
pub(super) async fn or_told(
    work: impl Future<Output = Result<LocalOutput, LocalOutput>>,
) -> LocalOutput {
    work.await.unwrap_or_else(|told| told)
}

/// Does work that blocks. It is told when nobody waits for it any longer, and has to look now and then.
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
    done.unwrap_or_else(|error| LocalOutput::error(format!("the tool has failed: {error}")))
}

/// How many characters an output may have.
pub(super) fn limit(context: &LocalContext) -> usize {
    Tokens(context.max_output_tokens).characters()
}

/// The text if it fits, or else its beginning and its end, and where the whole is.
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
        Some(Ok(spilled)) => format!("the whole is in {}", spilled.path.display()),
        Some(Err(error)) => format!("the rest is lost: {error}"),
        None => "the rest is lost: there is no folder for it".to_owned(),
    };
    let note = format!("\n[… the middle of {characters} characters is left out; {place}]\n");
    let room = limit.saturating_sub(note.chars().count());
    let head = before_line_end(first(&text, room / 2));
    let tail = after_line_end(last(&text, room - room / 2));
    format!("{head}{note}{tail}")
}

/// Adds a remark of ours on a line of its own.
pub(super) fn remark(text: &mut String, remark: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    // Writing into a text does not fail.
    let _ = write!(text, "[{remark}]");
}

/// The first so many characters.
pub(super) fn first(text: &str, count: usize) -> &str {
    let end = text.char_indices().nth(count).map(|(end, _)| end);
    end.and_then(|end| text.get(..end)).unwrap_or(text)
}

/// The last so many characters.
fn last(text: &str, count: usize) -> &str {
    let Some(before) = count.checked_sub(1) else {
        return "";
    };
    let start = text.char_indices().rev().nth(before);
    let start = start.and_then(|(start, _)| text.get(start..));
    start.unwrap_or(text)
}

/// Cut behind the last line if that takes little away.
fn before_line_end(text: &str) -> &str {
    let kept = text.rfind('\n').and_then(|end| text.get(..end));
    kept.filter(|kept| text.len() - kept.len() <= text.len() / 10)
        .unwrap_or(text)
}

/// Cut before the first line if that takes little away.
fn after_line_end(text: &str) -> &str {
    let kept = text.find('\n').and_then(|end| text.get(end + 1..));
    kept.filter(|kept| text.len() - kept.len() <= text.len() / 10)
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
        let kept = std::fs::read_to_string(path.expect("a path")).expect("a file");
        assert_eq!(kept, long);
        check("\u{1f600}".repeat(100_000), &["\u{1f600}", "is left out"]);
    }
}
