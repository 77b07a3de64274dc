//! The `Edit` tool: replaces text in a file.
//!
//! The text must match exactly, and only once unless `replace_all` is set. If it does not match, the error shows the
//! nearest text. Line endings are preserved.

mod near;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;
use similar::TextDiff;
use switchboard::permissions::Preview;
use switchboard::service::Cancellation;

use super::files::{Knowledge, Known, resolve, shown};
use super::prepare::{arguments, blocking, definition, fit, output_or_error};
use super::previewed::{FileState, Previewed, difference as difference_shown, failing, unchanged};
use super::replace::Target;
use super::{LocalContext, LocalOutput, LocalTool};
use crate::changes::{Before, Changes};
use crate::message::ToolDefinition;

/// Maximum size of a file, before and after the edit.
const MAX_FILE: usize = 16 * 1024 * 1024;
/// Maximum number of listed line numbers.
const MAX_PLACES: usize = 10;
/// Time limit of a diff; after it the diff is coarser.
const COMPARING: Duration = Duration::from_millis(200);
/// Maximum number of diff lines shown.
const MAX_DIFFERENCE: usize = 400;

const DESCRIPTION: &str = "Replace text in a file. old_string must be in it exactly, white space included and without the line numbers of Read, and only once unless replace_all is true.";

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"Path, absolute or from the workspace"},"old_string":{"type":"string","minLength":1,"description":"Text to replace"},"new_string":{"type":"string","description":"Text to put in its place"},"replace_all":{"type":"boolean","description":"Replace it everywhere"}},"required":["file_path","old_string","new_string"],"additionalProperties":false}"#;

pub(super) struct Edit {
    known: Arc<Known>,
    changes: Arc<Changes>,
    previewed: Previewed,
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

/// Arguments covered by the diff of the preview.
const COVERED: [&str; 3] = ["old_string", "new_string", "replace_all"];

impl Edit {
    pub(super) fn new(known: Arc<Known>, changes: Arc<Changes>) -> Self {
        Self {
            known,
            changes,
            previewed: Previewed::default(),
        }
    }
}

impl LocalTool for Edit {
    fn definition(&self) -> ToolDefinition {
        definition("Edit", DESCRIPTION, SCHEMA)
    }

    fn preview<'a>(
        &'a self,
        raw: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, Option<Preview>> {
        async move {
            let wanted: Arguments = arguments(raw).ok()?;
            let path = resolve(&wanted.file_path, context).ok()?;
            let name = shown(&path, &context.workspace);
            let preview = tokio::task::spawn_blocking(move || {
                let state = FileState::of(&path);
                let preview = match changed(&path, &wanted, &Cancellation::default()) {
                    Ok(change) => {
                        let title = format!("change {name}, {}", at_lines(&change.lines));
                        difference_shown(title, &name, &change.before, &change.after, &COVERED)
                    }
                    Err(reason) => failing(&name, &reason),
                };
                (preview, state)
            });
            let (preview, state) = preview.await.ok()?;
            self.previewed.note(raw, state);
            Some(preview)
        }
        .boxed()
    }

    fn run<'a>(
        &'a self,
        raw: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        output_or_error(async move {
            let wanted: Arguments = arguments(raw)?;
            let path = resolve(&wanted.file_path, context)?;
            let name = shown(&path, &context.workspace);
            let (known, changes) = (Arc::clone(&self.known), Arc::clone(&self.changes));
            let context = context.clone();
            let shown = self.previewed.take(raw);
            let output = blocking(move |cancellation| {
                let _writing = changes.writing();
                let seen = shown.as_ref();
                match edit(&path, &name, &wanted, &known, seen, cancellation) {
                    Ok((change, output)) => {
                        let path = change.target.path();
                        changes.record(path, &name, Before::Text(change.before), &change.after);
                        output
                    }
                    Err(reason) => {
                        let text = format!("{name} is not changed: {reason}");
                        let whole = text.clone();
                        LocalOutput::error(fit(text, whole.as_bytes(), "edit", &context))
                    }
                }
            })
            .await;
            Ok(output)
        })
        .boxed()
    }
}

struct Change {
    target: Target,
    before: String,
    after: String,
    /// Lines of the replacements.
    lines: Vec<usize>,
}

/// Computes the edit; the error is the reason for the model.
fn changed(path: &Path, wanted: &Arguments, cancellation: &Cancellation) -> Result<Change, String> {
    if wanted.old_string.is_empty() {
        return Err("old_string is empty; use Write for a new file".to_owned());
    }
    if wanted.old_string == wanted.new_string {
        return Err("old_string and new_string are the same".to_owned());
    }
    // Only for its error, which suggests similar names.
    drop(super::files::open(path)?);
    let target = Target::at(path)?;
    let metadata = target.metadata.as_ref().ok_or("no such file")?;
    if metadata.len() > MAX_FILE as u64 {
        return Err(format!("it is larger than {MAX_FILE} bytes; use a program"));
    }
    let before = fs::read(path).map_err(|error| error.to_string())?;
    let before = String::from_utf8(before).map_err(|_| "it is not UTF-8 text; use a program")?;
    let (old, new) = with_line_ends(&before, &wanted.old_string, &wanted.new_string);
    let places: Vec<usize> = memmem::find_iter(before.as_bytes(), old.as_bytes()).collect();
    if places.is_empty() {
        return Err(near::explain(&before, &wanted.old_string, cancellation));
    }
    let lines = line_numbers(&before, &places);
    if places.len() > 1 && !wanted.replace_all {
        return Err(format!(
            "old_string matches {} times, {}; add surrounding lines until it matches once, or set replace_all",
            places.len(),
            at_lines(&lines),
        ));
    }
    let grown = new
        .len()
        .saturating_sub(old.len())
        .saturating_mul(places.len());
    if before.len().saturating_add(grown) > MAX_FILE {
        return Err(format!("it would be larger than {MAX_FILE} bytes"));
    }
    let after = before.replace(&*old, &new);
    Ok(Change {
        target,
        before,
        after,
        lines,
    })
}

fn edit(
    path: &Path,
    name: &str,
    wanted: &Arguments,
    known: &Known,
    shown: Option<&FileState>,
    cancellation: &Cancellation,
) -> Result<(Change, LocalOutput), String> {
    unchanged(path, shown)?;
    let change = changed(path, wanted, cancellation)?;
    let metadata = change.target.metadata.as_ref();
    let was_known = metadata.is_some_and(|metadata| known.of(path, metadata) == Knowledge::Current);
    // The file may have changed while it was read.
    unchanged(path, shown)?;
    let metadata = change.target.write(change.after.as_bytes());
    let metadata = metadata.map_err(|error| error.to_string())?;
    // A partial read does not make the whole file known.
    if was_known {
        known.note(path, &metadata);
    }
    let count = match change.lines.len() {
        1 => String::new(),
        count => format!("{count} times, "),
    };
    let text = format!("changed {name}: {count}{}", at_lines(&change.lines));
    let output = LocalOutput {
        display: Some(difference(name, &change.before, &change.after)),
        ..LocalOutput::text(text)
    };
    Ok((change, output))
}

/// Converts both texts to CRLF if all lines of the file end in CRLF.
fn with_line_ends<'a>(
    file: &str,
    old: &'a str,
    new: &'a str,
) -> (std::borrow::Cow<'a, str>, std::borrow::Cow<'a, str>) {
    let lines = memchr::memchr_iter(b'\n', file.as_bytes()).count();
    let carried = memmem::find_iter(file.as_bytes(), "\r\n").count();
    if lines == 0 || lines != carried {
        return (old.into(), new.into());
    }
    let convert = |text: &str| text.replace("\r\n", "\n").replace('\n', "\r\n");
    (convert(old).into(), convert(new).into())
}

/// Line numbers of these sorted offsets.
fn line_numbers(text: &str, places: &[usize]) -> Vec<usize> {
    let mut line = 1;
    let mut counted = 0;
    let number = |place: &usize| {
        let between = text.as_bytes().get(counted..*place).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', between).count();
        counted = *place;
        line
    };
    places.iter().map(number).collect()
}

fn at_lines(lines: &[usize]) -> String {
    let named = lines.iter().take(MAX_PLACES).map(usize::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    let word = if lines.len() == 1 { "line" } else { "lines" };
    let more = if lines.len() > MAX_PLACES {
        ", …"
    } else {
        ""
    };
    format!("{word} {named}{more}")
}

/// Unified diff, complete.
pub(crate) fn whole_difference(name: &str, before: &str, after: &str) -> String {
    let difference = TextDiff::configure()
        .timeout(COMPARING)
        .diff_lines(before, after);
    let mut unified = difference.unified_diff();
    unified.context_radius(3).header(name, name).to_string()
}

/// Unified diff, cut to a maximum length.
pub(super) fn difference(name: &str, before: &str, after: &str) -> String {
    let unified = whole_difference(name, before, after);
    let mut lines = unified.split_inclusive('\n');
    let mut shown: String = lines.by_ref().take(MAX_DIFFERENCE).collect();
    let left = lines.count();
    if left > 0 {
        // Writing to a `String` cannot fail.
        let _ = writeln!(shown, "… {left} more lines");
    }
    shown
}
