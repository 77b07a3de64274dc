//! The `Read` tool: numbered lines of a text file, or an image.
//!
//! Files are streamed, and only the shown part is held in memory, so their size does not matter. Other binary files are
//! rejected, with a suggestion.

use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::call::shape::{Block, Media};
use switchboard::internal::files::{
    self, FileError, Line, LineRange, ReadEnd, read_lines, read_whole,
};
use switchboard::service::Cancellation;

use super::files::{Known, numbered, open, reason, resolve, shown};
use super::prepare::{arguments, blocking, definition, limit, output_or_error, remark};
use super::{LocalContext, LocalOutput, LocalTool};
use crate::message::ToolDefinition;

/// Default number of lines.
const USUAL_LINES: u64 = 2000;
/// Maximum characters shown per line.
const MAX_LINE: usize = 2000;
/// Maximum size of an image in bytes: providers accept 5 MB of base64.
const MAX_PICTURE: u64 = 3_750_000;
/// Characters reserved for notes.
const ROOM_FOR_REMARKS: usize = 400;

const DESCRIPTION: &str = "Read a text file, with line numbers and a tab before each line, or look at a picture (PNG, JPEG, GIF, WebP). Without offset and limit the first 2000 lines.";

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"Path, absolute or from the workspace"},"offset":{"type":"integer","minimum":1,"description":"First line, counted from 1"},"limit":{"type":"integer","minimum":1,"description":"How many lines"}},"required":["file_path"],"additionalProperties":false}"#;

pub(super) struct Read {
    known: Arc<Known>,
}

#[derive(Deserialize)]
struct Arguments {
    file_path: String,
    offset: Option<u64>,
    limit: Option<u64>,
}

impl Read {
    pub(super) fn new(known: Arc<Known>) -> Self {
        Self { known }
    }
}

impl LocalTool for Read {
    fn definition(&self) -> ToolDefinition {
        definition("Read", DESCRIPTION, SCHEMA)
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        raw: &'a RawValue,
        context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        output_or_error(async move {
            let wanted: Arguments = arguments(raw)?;
            let path = resolve(&wanted.file_path, context)?;
            let range = LineRange {
                first: wanted.offset.unwrap_or(1).max(1),
                count: wanted.limit.unwrap_or(USUAL_LINES).max(1),
                max_bytes: u64::MAX,
            };
            let characters = limit(context).saturating_sub(ROOM_FOR_REMARKS);
            let name = shown(&path, &context.workspace);
            let known = Arc::clone(&self.known);
            let output =
                blocking(
                    move |cancellation| match read(&path, &range, characters, cancellation) {
                        Ok((shown, metadata)) => {
                            known.note(&path, &metadata);
                            LocalOutput {
                                content: vec![shown],
                                is_error: false,
                                display: None,
                            }
                        }
                        Err(reason) => {
                            LocalOutput::error(format!("{name} cannot be read: {reason}"))
                        }
                    },
                )
                .await;
            Ok(output)
        })
        .boxed()
    }
}

fn read(
    path: &Path,
    range: &LineRange,
    characters: usize,
    cancellation: &Cancellation,
) -> Result<(Block, Metadata), String> {
    let (mut file, metadata) = open(path)?;
    let beginning = files::beginning(&mut file).map_err(|error| error.to_string())?;
    if let Some(mime_type) = picture_type(&beginning) {
        return Ok((picture(file, &metadata, mime_type)?, metadata));
    }
    check_text(&beginning, &metadata)?;
    let text = lines(file, range, characters, cancellation)?;
    Ok((Block::Text(text), metadata))
}

/// Media type of an image format supported by models; `None` for other files.
fn picture_type(beginning: &[u8]) -> Option<&'static str> {
    let starts = |magic: &[u8]| beginning.starts_with(magic);
    if starts(b"\x89PNG\r\n\x1a\n") {
        Some("image/png")
    } else if starts(b"\xff\xd8\xff") {
        Some("image/jpeg")
    } else if starts(b"GIF87a") || starts(b"GIF89a") {
        Some("image/gif")
    } else if starts(b"RIFF") && beginning.get(8..12) == Some(b"WEBP") {
        Some("image/webp")
    } else {
        None
    }
}

fn picture(file: File, metadata: &Metadata, mime_type: &str) -> Result<Block, String> {
    let too_large = |size: u64| {
        format!(
            "the picture has {size} bytes, and {MAX_PICTURE} is the most; make it smaller first"
        )
    };
    if metadata.len() > MAX_PICTURE {
        return Err(too_large(metadata.len()));
    }
    let bytes = read_whole(file, MAX_PICTURE).map_err(|error| match error {
        FileError::TooLarge(limit) => too_large(limit + 1),
        error => reason(&error),
    })?;
    Ok(Block::Image(Media {
        mime_type: mime_type.to_owned(),
        data: STANDARD.encode(bytes),
    }))
}

/// Rejects files that are not text.
fn check_text(beginning: &[u8], metadata: &Metadata) -> Result<(), String> {
    let size = metadata.len();
    if beginning.starts_with(b"%PDF-") {
        return Err(format!(
            "it is a PDF of {size} bytes; get its text with a program, such as pdftotext FILE -"
        ));
    }
    if beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff") {
        return Err("it is UTF-16; convert it with a program, such as iconv -f UTF-16".to_owned());
    }
    if files::is_binary(beginning) {
        return Err(format!(
            "it is a binary file of {size} bytes; look at it with a program, such as file or xxd"
        ));
    }
    Ok(())
}

/// Numbered lines, with a note if there are more.
fn lines(
    file: File,
    range: &LineRange,
    characters: usize,
    cancellation: &Cancellation,
) -> Result<String, String> {
    let mut shown = Shown {
        text: String::new(),
        left: characters,
        is_repaired: false,
    };
    let max_line = Line::max_bytes(MAX_LINE);
    let ended = read_lines(file, range, max_line, cancellation, |number, line| {
        shown.add(number, line)
    });
    let more = match ended.map_err(|error| reason(&error))? {
        ReadEnd::File(0) => return Ok("[the file is empty]".to_owned()),
        ReadEnd::File(lines) if shown.text.is_empty() => {
            return Err(format!(
                "it has {lines} lines, so none from {}",
                range.first
            ));
        }
        ReadEnd::Range(next) | ReadEnd::Full(next) => Some(next),
        ReadEnd::File(_) | ReadEnd::MaxBytes => None,
    };
    if let Some(next) = more {
        remark(
            &mut shown.text,
            &format!("more follows: read on with offset {next}"),
        );
    }
    if shown.is_repaired {
        let note = "bytes that are not UTF-8 are shown as \u{fffd}";
        remark(&mut shown.text, note);
    }
    Ok(shown.text)
}

struct Shown {
    text: String,
    /// Remaining characters.
    left: usize,
    is_repaired: bool,
}

impl Shown {
    /// Adds a line; `false` if it does not fit. The first line is always added.
    fn add(&mut self, number: u64, mut line: Line<'_>) -> bool {
        let length = line.length;
        if number == 1
            && let Some(rest) = line.start.strip_prefix(b"\xef\xbb\xbf")
        {
            line = Line {
                start: rest,
                length: length - 3,
            };
        }
        let text = line.text(MAX_LINE);
        let mut entry = numbered(number, '\t', &text, length);
        entry.push('\n');
        let characters = entry.chars().count();
        if characters > self.left && !self.text.is_empty() {
            return false;
        }
        self.is_repaired |= text.is_repaired;
        self.left = self.left.saturating_sub(characters);
        self.text.push_str(&entry);
        true
    }
}
