//! The tool `Read`: lines of a text file by number, or a picture.
//!
//! A file is read piece by piece, and no more of it is kept than is shown, so its size does not matter. What is no text
//! and no picture is refused with what to do instead.

use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io::{BufRead as _, BufReader, Read as _, Seek as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::{BoxFuture, FutureExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use switchboard::internal::call::shape::{Block, Media};
use switchboard::service::Cancellation;

use super::files::{Known, open, resolve, shown};
use super::prepare::{arguments, blocking, definition, first, limit, or_told, remark};
use super::{LocalContext, LocalOutput, LocalTool};
use crate::message::ToolDefinition;

/// How many lines are read unless another number is asked for.
const USUAL_LINES: u64 = 2000;
/// How much of a line is shown.
const MAX_LINE: usize = 2000;
/// The largest picture: providers take 5 MB of base64.
const MAX_PICTURE: u64 = 3_750_000;
/// How much is read at once, and how much of the beginning tells text from other things.
const CHUNK: usize = 64 * 1024;
const BEGINNING: usize = 8192;
/// What is left for remarks of ours.
const ROOM_FOR_REMARKS: usize = 400;

const DESCRIPTION: &str = "Read a text file, with line numbers and a tab before each line, or look at a picture (PNG, JPEG, GIF, WebP). Without offset and limit the first 2000 lines.";

const SCHEMA: &str = r#"{"type":"object","properties":{"file_path":{"type":"string","description":"Path, absolute or from the workspace"},"offset":{"type":"integer","minimum":1,"description":"First line, counted from 1"},"limit":{"type":"integer","minimum":1,"description":"How many lines"}},"required":["file_path"],"additionalProperties":false}"#;

/// The tool.
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
        or_told(async move {
            let wanted: Arguments = arguments(raw)?;
            let path = resolve(&wanted.file_path, context)?;
            let range = Range {
                first: wanted.offset.unwrap_or(1).max(1),
                count: wanted.limit.unwrap_or(USUAL_LINES).max(1),
                characters: limit(context).saturating_sub(ROOM_FOR_REMARKS),
            };
            let name = shown(&path, &context.workspace);
            let known = Arc::clone(&self.known);
            let output = blocking(move |cancellation| match read(&path, range, cancellation) {
                Ok((shown, metadata)) => {
                    known.note(&path, &metadata);
                    LocalOutput {
                        content: vec![shown],
                        is_error: false,
                        display: None,
                    }
                }
                Err(reason) => LocalOutput::error(format!("{name} cannot be read: {reason}")),
            })
            .await;
            Ok(output)
        })
        .boxed()
    }
}

/// Which lines are wanted, and how many characters they may come to.
#[derive(Clone, Copy)]
struct Range {
    first: u64,
    count: u64,
    characters: usize,
}

fn read(
    path: &Path,
    range: Range,
    cancellation: &Cancellation,
) -> Result<(Block, Metadata), String> {
    let (mut file, metadata) = open(path)?;
    let mut beginning = Vec::with_capacity(BEGINNING);
    let taken = (&mut file)
        .take(BEGINNING as u64)
        .read_to_end(&mut beginning);
    taken.map_err(|error| error.to_string())?;
    if let Some(mime_type) = picture_type(&beginning) {
        return Ok((picture(&mut file, &metadata, mime_type)?, metadata));
    }
    check_text(&beginning, &metadata)?;
    file.rewind().map_err(|error| error.to_string())?;
    let text = lines(file, range, cancellation)?;
    Ok((Block::Text(text), metadata))
}

/// The type of a picture that models can look at.
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

fn picture(file: &mut File, metadata: &Metadata, mime_type: &str) -> Result<Block, String> {
    let too_large = |size: u64| {
        format!(
            "the picture has {size} bytes, and {MAX_PICTURE} is the most; make it smaller first"
        )
    };
    if metadata.len() > MAX_PICTURE {
        return Err(too_large(metadata.len()));
    }
    file.rewind().map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    let taken = file.take(MAX_PICTURE + 1).read_to_end(&mut bytes);
    taken.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_PICTURE {
        return Err(too_large(bytes.len() as u64));
    }
    Ok(Block::Image(Media {
        mime_type: mime_type.to_owned(),
        data: STANDARD.encode(bytes),
    }))
}

/// Refuses what is no text.
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
    // Text has no zero byte near its beginning, and nearly everything else has.
    if memchr::memchr(0, beginning).is_some() {
        return Err(format!(
            "it is a binary file of {size} bytes; look at it with a program, such as file or xxd"
        ));
    }
    Ok(())
}

/// The lines with their numbers, and a word on what is not shown.
fn lines(file: File, range: Range, cancellation: &Cancellation) -> Result<String, String> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let end = range.first.saturating_add(range.count);
    let mut shown = Shown {
        text: String::new(),
        left: range.characters,
        is_repaired: false,
    };
    let mut number = 1_u64;
    let mut line = Line::default();
    let mut more = None;
    loop {
        if cancellation.is_cancelled() {
            return Err("cancelled".to_owned());
        }
        let chunk = reader.fill_buf().map_err(|error| error.to_string())?;
        if chunk.is_empty() {
            if line.length > 0 && number >= range.first && !shown.add(number, &line) {
                more = Some(number);
            }
            number += u64::from(line.length > 0);
            break;
        }
        // What follows is only looked at to tell whether there is more.
        if number >= end {
            more = Some(number);
            break;
        }
        let length = chunk.len();
        let mut rest = chunk;
        while let Some(found) = memchr::memchr(b'\n', rest) {
            let (piece, after) = rest.split_at(found + 1);
            rest = after;
            if number >= range.first {
                line.add(piece);
                if !shown.add(number, &line) {
                    more = Some(number);
                    break;
                }
            }
            line = Line::default();
            number += 1;
            if number >= end && !rest.is_empty() {
                more = Some(number);
                break;
            }
        }
        if more.is_some() {
            break;
        }
        line.add(rest);
        reader.consume(length);
    }
    let lines = number - 1;
    if shown.text.is_empty() && more.is_none() {
        return match lines {
            0 => Ok("[the file is empty]".to_owned()),
            _ => Err(format!(
                "it has {lines} lines, so none from {}",
                range.first
            )),
        };
    }
    if let Some(next) = more {
        remark(
            &mut shown.text,
            &format!("more follows: read on with offset {next}"),
        );
    }
    if shown.is_repaired {
        let note = "bytes that are no UTF-8 are shown as \u{fffd}";
        remark(&mut shown.text, note);
    }
    Ok(shown.text)
}

/// A line, as far as it is shown.
#[derive(Default)]
struct Line {
    start: Vec<u8>,
    length: usize,
}

impl Line {
    fn add(&mut self, piece: &[u8]) {
        let room = (MAX_LINE * 4).saturating_sub(self.start.len());
        self.start
            .extend_from_slice(piece.get(..room).unwrap_or(piece));
        self.length += piece.len();
    }
}

/// What is shown so far.
struct Shown {
    text: String,
    /// How many more characters there may be.
    left: usize,
    is_repaired: bool,
}

impl Shown {
    /// Adds a line; `false` if it does not fit. The first one always does, as much of it as there is room for.
    fn add(&mut self, number: u64, line: &Line) -> bool {
        let start = line.start.strip_suffix(b"\n").unwrap_or(&line.start);
        let start = start.strip_suffix(b"\r").unwrap_or(start);
        let start = match number {
            1 => start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start),
            _ => start,
        };
        let text = String::from_utf8_lossy(start);
        let is_whole = line.length == line.start.len();
        let kept = first(&text, MAX_LINE);
        let mut entry = format!("{number}\t{kept}");
        if !is_whole || kept.len() < text.len() {
            let _ = write!(entry, " [… line of {} bytes cut]", line.length);
        }
        entry.push('\n');
        let characters = entry.chars().count();
        if characters > self.left && !self.text.is_empty() {
            return false;
        }
        // The cut of a long line may leave half a character, which is no fault of the file.
        self.is_repaired |= is_whole && matches!(text, std::borrow::Cow::Owned(_));
        self.left = self.left.saturating_sub(characters);
        self.text.push_str(&entry);
        true
    }
}
