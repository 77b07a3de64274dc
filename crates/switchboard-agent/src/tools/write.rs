//! The tool `Write`: a file with these contents, new or in place of another.
//!
//! A file that is there is only replaced if the session has read it and nobody has changed it since: a model that
//! writes over what it has not seen loses somebody's work.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::edit::difference;
use super::files::{Knowledge, Known, resolve, shown};
use super::prepare::{arguments, blocking, definition, or_told};
use super::replace::Target;
use super::{Output, Tool, ToolContext};
use crate::message::ToolDefinition;

/// A larger file that is replaced is not shown as a difference.
const MAX_COMPARED: u64 = 4 * 1024 * 1024;

const DESCRIPTION: &str = "Write a whole file, with the folders it needs. A file that exists must have been read with Read before. To change a part of a file use Edit.";

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"Path, absolute or from the workspace"},"content":{"type":"string","description":"The whole contents"}},"required":["file_path","content"],"additionalProperties":false}"#;

/// The tool.
pub(super) struct Write {
    known: Arc<Known>,
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    content: String,
}

impl Write {
    pub(super) fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl Tool for Write {
    fn definition(&self) -> ToolDefinition {
        definition("Write", DESCRIPTION, SCHEMA)
    }

    fn run<'a>(&'a self, raw: &'a RawValue, context: &'a ToolContext) -> BoxFuture<'a, Output> {
        or_told(async move {
            let wanted: Arguments = arguments(raw)?;
            let path = resolve(&wanted.file_path, context)?;
            let name = shown(&path, &context.workspace);
            let known = Arc::clone(&self.known);
            // A file is written whole or not at all, so there is nothing to look out for meanwhile.
            let output = blocking(move |_| {
                write(&path, &name, &wanted.content, &known).unwrap_or_else(|reason| {
                    Output::error(format!("{name} is not written: {reason}"))
                })
            })
            .await;
            Ok(output)
        })
        .boxed()
    }
}

fn write(path: &Path, name: &str, content: &str, known: &Known) -> Result<Output, String> {
    let target = Target::at(path)?;
    let mut before = Some(String::new());
    if let Some(metadata) = &target.metadata {
        match known.of(path, metadata) {
            Knowledge::Current => {}
            Knowledge::Unread => return Err("it exists; read it with Read first".to_owned()),
            Knowledge::Stale => {
                return Err("it has changed since it was read; read it again first".to_owned());
            }
        }
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
    Ok(Output {
        display: before.map(|before| difference(name, &before, content)),
        ..Output::text(text)
    })
}
