//! Formats a call's result for the model: each part once, sanitized and within the token budget.
//!
//! Text over the budget is truncated with a note that names the file with the full text. Images and audio are passed
//! on; other binary data goes to files and is described in text. Blocks of an unknown kind are shown as raw JSON. The
//! gateway does not use this: it passes results on unchanged.

mod render;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_protocol::types::tool::CallToolResult;
use switchboard_protocol::types::{DecodeError, Raw, decode};

use super::spill::{SpillFolder, Spilled};
use crate::catalog::Tokens;
use crate::catalog::text::{first_characters, neutralise};
use crate::json::SharedJson;
use crate::names::ToolRef;
use render::Rendered;

/// Maximum number of images and audio clips in one result; more go to files. Providers reject a hundred.
const MAX_MEDIA: usize = 32;

/// Maximum number of files of one result; the last one is reserved for the text.
const MAX_FILES: usize = 64;

/// Number of parts above which adjacent texts are joined.
const MAX_PARTS: usize = 256;

/// Limits for one result.
#[derive(Debug, Clone, Copy)]
pub struct ShapeOptions<'a> {
    /// Maximum amount of text.
    pub max_tokens: Tokens,
    /// Folder for large and binary output; without one it is dropped.
    pub spill: Option<&'a SpillFolder>,
}

/// A result formatted for the model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shaped {
    /// Parts in order; never empty.
    pub blocks: Vec<Block>,
    /// Whether the tool reports a failure.
    pub is_error: bool,
    /// Whether text was truncated.
    pub is_cut: bool,
    /// Files with the content that is not shown.
    pub files: Vec<Spilled>,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Sanitized text.
    Text(String),
    /// An image.
    Image(Media),
    /// An audio clip.
    Audio(Media),
}

/// An image or an audio clip.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Media {
    /// Media type, such as `image/png`.
    pub mime_type: String,
    /// Content in base64.
    pub data: String,
}

impl Shaped {
    /// Joins all text blocks with newlines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for block in &self.blocks {
            if let Block::Text(part) = block {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(part);
            }
        }
        text
    }
}

/// Formats the raw result of `tools/call` for the model.
pub fn shape(
    tool: &ToolRef,
    result: &SharedJson,
    options: ShapeOptions<'_>,
) -> Result<Shaped, DecodeError> {
    let label = format!("{}-{}", tool.server, tool.tool);
    shape_as(&label, result, options, false)
}

/// Same as [`shape`], with a label for file names. Exact text is truncated but not sanitized: a local tool sanitizes
/// its own output and must be able to show a file unchanged.
pub(super) fn shape_as(
    label: &str,
    result: &SharedJson,
    options: ShapeOptions<'_>,
    is_exact: bool,
) -> Result<Shaped, DecodeError> {
    let raw = result.raw();
    let result: CallToolResult<'_> = decode(raw)?;
    let mut shaper = Shaper::new(label, options, is_exact);
    shaper.content(&result);
    if let Some(structured) = &result.structured_content {
        shaper.structured(structured);
    }
    if shaper.parts.is_empty()
        && let Some(json) = without_content(raw)
    {
        shaper.parts.push(Part::Text(Cow::Borrowed(json)));
    }
    shaper.join_texts();
    if shaper.parts.is_empty() {
        shaper
            .parts
            .push(Part::Note("[the tool returned no content]".to_owned()));
    }
    Ok(shaper.finish(result.is_error()))
}

/// Formats a text of the host.
pub(super) fn shape_text(
    label: &str,
    text: String,
    is_error: bool,
    options: ShapeOptions<'_>,
) -> Shaped {
    let mut shaper = Shaper::new(label, options, false);
    shaper.parts.push(Part::Text(Cow::Owned(text)));
    shaper.finish(is_error)
}

/// Returns the result as JSON if it has data outside of `content` and `structuredContent`, as servers of older drafts
/// and non-conforming ones send. `None` if it has no such data.
pub fn without_content(result: &RawValue) -> Option<&str> {
    const KNOWN: [&str; 5] = [
        "content",
        "structuredContent",
        "isError",
        "_meta",
        "resultType",
    ];
    let members: HashMap<Cow<'_, str>, &RawValue> = serde_json::from_str(result.get()).ok()?;
    let says = |(name, value): (&Cow<'_, str>, &&RawValue)| {
        !KNOWN.contains(&name.as_ref()) && value.get() != "null"
    };
    members.iter().any(says).then(|| result.get())
}

/// A part before the budget is applied.
enum Part<'a> {
    /// Text from the server.
    Text(Cow<'a, str>),
    /// Text from the host.
    Note(String),
    Image(Media),
    Audio(Media),
}

struct Shaper<'o, 'a> {
    label: &'o str,
    options: ShapeOptions<'o>,
    is_exact: bool,
    parts: Vec<Part<'a>>,
    media: usize,
    files: Vec<Spilled>,
}

impl<'o, 'a> Shaper<'o, 'a> {
    fn new(label: &'o str, options: ShapeOptions<'o>, is_exact: bool) -> Self {
        Self {
            label,
            options,
            is_exact,
            parts: Vec::new(),
            media: 0,
            files: Vec::new(),
        }
    }

    fn content(&mut self, result: &CallToolResult<'a>) {
        // Blocks that could not be decoded are shown as raw JSON, in their original positions.
        let mut bad = result.content.set_aside.iter().peekable();
        let mut position = 0;
        for block in &result.content.items {
            while let Some(entry) = bad.next_if(|entry| entry.index <= position) {
                self.parts
                    .push(Part::Text(Cow::Owned(entry.raw.get().to_owned())));
                position += 1;
            }
            let rendered = render::block(block);
            self.add(rendered);
            position += 1;
        }
        for entry in bad {
            self.parts
                .push(Part::Text(Cow::Owned(entry.raw.get().to_owned())));
        }
    }

    fn add(&mut self, rendered: Rendered<'a>) {
        let rendered = match rendered {
            Rendered::Image(media) | Rendered::Audio(media) if self.media >= MAX_MEDIA => {
                render::as_bytes(&media)
            }
            rendered => rendered,
        };
        let part = match rendered {
            Rendered::Text(text) => Part::Text(text),
            Rendered::Image(media) => {
                self.media += 1;
                Part::Image(media)
            }
            Rendered::Audio(media) => {
                self.media += 1;
                Part::Audio(media)
            }
            Rendered::Bytes {
                what,
                extension,
                bytes,
            } => {
                let saved = if self.files.len() + 1 < MAX_FILES {
                    self.spill(extension, &bytes)
                } else {
                    Err("there are too many".to_owned())
                };
                let place = match saved {
                    Ok(path) => format!("saved to {path}"),
                    Err(reason) => format!("not saved: {reason}"),
                };
                Part::Note(format!("[{what}, {} bytes, {place}]", bytes.len()))
            }
        };
        self.parts.push(part);
    }

    /// Adds structured content, unless a text block has the same value.
    fn structured(&mut self, structured: &Raw<'a>) {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_ref()),
            _ => None,
        });
        if structured.get() == "null" || says_the_same(structured.get(), texts) {
            return;
        }
        self.parts
            .push(Part::Text(Cow::Owned(structured.get().to_owned())));
    }

    fn join_texts(&mut self) {
        if self.parts.len() <= MAX_PARTS {
            return;
        }
        let mut joined: Vec<Part<'a>> = Vec::new();
        for part in self.parts.drain(..) {
            match (joined.last_mut(), part) {
                (Some(Part::Text(before)), Part::Text(text)) => {
                    let before = before.to_mut();
                    before.push('\n');
                    before.push_str(&text);
                }
                (_, part) => joined.push(part),
            }
        }
        self.parts = joined;
    }

    fn finish(mut self, is_error: bool) -> Shaped {
        let limit = self.options.max_tokens.characters();
        // The file needs the original texts; media can be moved.
        let sanitized: Vec<Block> = self
            .parts
            .iter_mut()
            .map(|part| match part {
                Part::Text(text) if self.is_exact => Block::Text(text.clone().into_owned()),
                Part::Text(text) => Block::Text(neutralise(text).into_owned()),
                Part::Note(note) => Block::Text(neutralise(note).into_owned()),
                Part::Image(media) => Block::Image(std::mem::take(media)),
                Part::Audio(media) => Block::Audio(std::mem::take(media)),
            })
            .collect();
        let characters: usize = sanitized.iter().map(Block::characters).sum();
        if characters <= limit {
            return Shaped {
                blocks: sanitized,
                is_error,
                is_cut: false,
                files: self.files,
            };
        }
        let note = self.spill_text(characters);
        Shaped {
            blocks: fit(sanitized, &note, limit),
            is_error,
            is_cut: true,
            files: self.files,
        }
    }

    /// Writes the full text, unsanitized, to a file; returns the note for the model.
    fn spill_text(&mut self, characters: usize) -> String {
        let mut full = String::new();
        let mut count = 0;
        for part in &self.parts {
            let text = match part {
                Part::Text(text) => text.as_ref(),
                Part::Note(note) => note.as_str(),
                Part::Image(_) | Part::Audio(_) => continue,
            };
            if count > 0 {
                full.push('\n');
            }
            full.push_str(text);
            count += 1;
        }
        let is_json = count == 1 && full.starts_with(['{', '[']);
        let extension = if is_json { "json" } else { "txt" };
        let mut note = format!("\n[output truncated: {characters} characters in total");
        match self.spill(extension, full.as_bytes()) {
            Ok(path) => {
                let _ = write!(note, "; the full output is in {path}; read it in parts]");
            }
            Err(reason) => {
                let _ = write!(note, "; the rest was dropped: {reason}]");
            }
        }
        note
    }

    fn spill(&mut self, extension: &str, bytes: &[u8]) -> Result<String, String> {
        let folder = self
            .options
            .spill
            .ok_or_else(|| "no folder for large output".to_owned())?;
        let spilled = folder
            .write(self.label, extension, bytes)
            .map_err(|error| error.to_string())?;
        let path = spilled.path.display().to_string();
        self.files.push(spilled);
        Ok(path)
    }
}

impl Block {
    fn characters(&self) -> usize {
        match self {
            Self::Text(text) => text.chars().count(),
            Self::Image(_) | Self::Audio(_) => 0,
        }
    }
}

/// Truncates the texts so that they and the note fit the limit. Media stay.
fn fit(blocks: Vec<Block>, note: &str, limit: usize) -> Vec<Block> {
    let note = first_characters(note, limit);
    let mut left = limit - note.chars().count();
    let mut is_full = false;
    let mut fitted = Vec::new();
    for block in blocks {
        match block {
            Block::Text(_) if is_full => {}
            Block::Text(mut text) => {
                let characters = text.chars().count();
                if characters > left {
                    is_full = true;
                    text.truncate(boundary(&text, left));
                }
                left = left.saturating_sub(characters);
                if !text.is_empty() {
                    fitted.push(Block::Text(text));
                }
            }
            media => fitted.push(media),
        }
    }
    // Append to the last text, so that the note reads as its end.
    let last_text = fitted.iter_mut().rev().find_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    match last_text {
        Some(text) => text.push_str(note),
        None => fitted.push(Block::Text(note.to_owned())),
    }
    fitted
}

/// Byte index that leaves at most `limit` characters: a line end if one is near, else a character boundary.
fn boundary(text: &str, limit: usize) -> usize {
    let end = first_characters(text, limit).len();
    let near = end - end / 10;
    match text.get(..end).and_then(|start| start.rfind('\n')) {
        Some(line) if line >= near => line,
        _ => end,
    }
}

/// Whether one of the texts is the same JSON value as `structured`.
///
/// Some SDKs wrap non-objects as `{"result": …}`; the text then holds the unwrapped value.
fn says_the_same<'t>(structured: &str, mut texts: impl Iterator<Item = &'t str>) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(structured) else {
        return false;
    };
    let wrapped = value
        .as_object()
        .filter(|members| members.len() == 1)
        .and_then(|members| members.get("result"));
    texts.any(|text| {
        if wrapped.and_then(Value::as_str) == Some(text) || value.as_str() == Some(text) {
            return true;
        }
        // Much longer text cannot be the same value; indentation adds only a small factor.
        if text.len() > structured.len().saturating_mul(16) + 64 {
            return false;
        }
        serde_json::from_str::<Value>(text.trim()).is_ok_and(|shown| {
            same(&shown, &value) || wrapped.is_some_and(|inner| same(&shown, inner))
        })
    })
}

/// Compares values, with numbers by value. The parser bounds the depth.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right
                || left
                    .as_f64()
                    .is_some_and(|left| Some(left) == right.as_f64())
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(name, left)| right.get(name).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
