//! The `Write` tool: creates or replaces a file.
//!
//! An existing file is replaced only if the session has read it and it has not changed since: otherwise the model could
//! overwrite contents that it has not seen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::permissions::Preview;

use super::edit::difference;
use super::files::{Knowledge, Known, resolve, shown};
use super::prepare::{arguments, blocking, definition, output_or_error};
use super::previewed::{FileState, Previewed, difference as difference_shown, failing, unchanged};
use super::replace::Target;
use super::{LocalContext, LocalOutput, LocalTool};
use crate::changes::{Before, Changes};
use crate::message::ToolDefinition;

/// Maximum size of a replaced file for a diff.
const MAX_COMPARED: u64 = 4 * 1024 * 1024;

const DESCRIPTION: &str = "Write a whole file, with the folders it needs. A file that exists must have been read with Read before. To change a part of a file use Edit.";

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"Path, absolute or from the workspace"},"content":{"type":"string","description":"The whole contents"}},"required":["file_path","content"],"additionalProperties":false}"#;

pub(super) struct Write {
    known: Arc<Known>,
    changes: Arc<Changes>,
    previewed: Previewed,
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    content: String,
}

impl Write {
    pub(super) fn new(known: Arc<Known>, changes: Arc<Changes>) -> Self {
        Self {
            known,
            changes,
            previewed: Previewed::default(),
        }
    }
}

impl LocalTool for Write {
    fn definition(&self) -> ToolDefinition {
        definition("Write", DESCRIPTION, SCHEMA)
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
            let known = Arc::clone(&self.known);
            let preview =
                tokio::task::spawn_blocking(move || preview(&path, &name, &wanted.content, &known));
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
            let shown = self.previewed.take(raw);
            // Writes are atomic, so there is nothing to cancel.
            let output = blocking(move |_| {
                let _writing = changes.writing();
                let written = write(&path, &name, &wanted.content, &known, shown.as_ref());
                match written {
                    Ok(Written {
                        path,
                        before,
                        output,
                    }) => {
                        changes.record(&path, &name, before, &wanted.content);
                        output
                    }
                    Err(reason) => LocalOutput::error(format!("{name} is not written: {reason}")),
                }
            })
            .await;
            Ok(output)
        })
        .boxed()
    }
}

/// Returns the preview, and the current state of the file.
fn preview(path: &Path, name: &str, content: &str, known: &Known) -> (Preview, FileState) {
    const COVERS: &[&str] = &["content"];
    let state = FileState::of(path);
    let target =
        Target::at(path).and_then(|target| may_replace(path, &target, known).map(|()| target));
    let lines = content.lines().count();
    let preview = match target {
        Err(reason) => failing(name, &reason),
        Ok(target) if target.metadata.is_none() => Preview {
            title: format!("new file {name}, {lines} lines, {} bytes", content.len()),
            text: content.to_owned(),
            covers: COVERS,
        },
        Ok(target) => {
            let is_small = target
                .metadata
                .is_some_and(|metadata| metadata.len() <= MAX_COMPARED);
            let before = is_small
                .then(|| std::fs::read_to_string(path).ok())
                .flatten();
            match before {
                Some(before) => {
                    difference_shown(format!("replace {name}"), name, &before, content, COVERS)
                }
                None => Preview {
                    title: format!("replace {name}, which cannot be compared, by {lines} lines"),
                    text: content.to_owned(),
                    covers: COVERS,
                },
            }
        }
    };
    (preview, state)
}

struct Written {
    /// With links followed.
    path: PathBuf,
    before: Before,
    output: LocalOutput,
}

fn may_replace(path: &Path, target: &Target, known: &Known) -> Result<(), String> {
    let Some(metadata) = &target.metadata else {
        return Ok(());
    };
    match known.of(path, metadata) {
        Knowledge::Current => Ok(()),
        Knowledge::Unread => Err("it exists; read it with Read first".to_owned()),
        Knowledge::Stale => Err("it has changed since it was read; read it again first".to_owned()),
    }
}

fn write(
    path: &Path,
    name: &str,
    content: &str,
    known: &Known,
    shown: Option<&FileState>,
) -> Result<Written, String> {
    let target = Target::at(path)?;
    let mut before = Some(String::new());
    may_replace(path, &target, known)?;
    unchanged(path, shown)?;
    if let Some(metadata) = &target.metadata {
        let is_small = metadata.len() <= MAX_COMPARED;
        before = is_small
            .then(|| std::fs::read_to_string(path).ok())
            .flatten();
    }
    let metadata = target.write(content.as_bytes());
    let metadata = metadata.map_err(|error| error.to_string())?;
    known.note(path, &metadata);
    let verb = match target.metadata {
        Some(_) => "replaced",
        None => "created",
    };
    let lines = content.lines().count();
    let text = format!("{verb} {name}: {lines} lines, {} bytes", content.len());
    let difference = before
        .as_deref()
        .map(|before| difference(name, before, content));
    Ok(Written {
        path: target.path().to_owned(),
        before: match (&target.metadata, before) {
            (None, _) => Before::Absent,
            (Some(_), Some(before)) => Before::Text(before),
            (Some(_), None) => Before::NotKept,
        },
        output: LocalOutput {
            display: difference,
            ..LocalOutput::text(text)
        },
    })
}
