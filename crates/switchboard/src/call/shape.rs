//! A call's result as the model gets it: every part once, harmless, within the budget, nothing lost.
//!
//! Text is neutralised and, over the budget, cut with a note that names the file where the whole is. Pictures and sound
//! are handed on as such; other bytes go to files and are told in words. A block of a kind nobody knows is shown as the
//! JSON it came in. The gateway does not come by here: it passes results on as they are.

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

/// Pictures and sounds of one result; more go to files. Providers refuse a hundred.
const MAX_MEDIA: usize = 32;

/// Files of one result; the last one is for the text.
const MAX_FILES: usize = 64;

/// Parts of one result; beyond these, texts that follow one another are one.
const MAX_PARTS: usize = 256;

/// What a model may be shown of one result.
#[derive(Debug, Clone, Copy)]
pub struct ShapeOptions<'a> {
    /// The most text.
    pub max_tokens: Tokens,
    /// Where larger and binary output goes; nowhere to keep it if there is none.
    pub spill: Option<&'a SpillFolder>,
}

/// A result as the model gets it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shaped {
    /// The parts in order. There is always at least one.
    pub blocks: Vec<Block>,
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// Whether text was cut.
    pub is_cut: bool,
    /// The files that hold what is not shown.
    pub files: Vec<Spilled>,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Text, harmless.
    Text(String),
    /// A picture.
    Image(Media),
    /// Sound.
    Audio(Media),
}

/// A picture or sound.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Media {
    /// Its media type.
    pub mime_type: String,
    /// Its bytes, base64.
    pub data: String,
}

impl Shaped {
    /// All text, one block after the other.
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

/// Makes of the raw result of `tools/call` what the model gets.
pub fn shape(
    tool: &ToolRef,
    result: &SharedJson,
    options: ShapeOptions<'_>,
) -> Result<Shaped, DecodeError> {
    let label = format!("{}-{}", tool.server, tool.tool);
    shape_as(&label, result, options, false)
}

/// Does the same, with a label for the files. Text that is exact is only cut: a local tool has sanitized what needs it,
/// and must be able to show a file as it is.
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
        && let Some(whole) = without_content(raw)
    {
        shaper.parts.push(Part::Text(Cow::Borrowed(whole)));
    }
    shaper.join_texts();
    if shaper.parts.is_empty() {
        shaper
            .parts
            .push(Part::Note("[the tool answered with no content]".to_owned()));
    }
    Ok(shaper.finish(result.is_error()))
}

/// Shapes one text of ours.
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

/// A result that says what it has to say outside of `content` and `structuredContent`, as the JSON it is. Servers of older
/// drafts and sloppy ones do so. `None` where it says nothing.
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
    /// What the server said.
    Text(Cow<'a, str>),
    /// What we say.
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
        // Blocks that could not be decoded are shown as they came, in their places.
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
                let kept = if self.files.len() + 1 < MAX_FILES {
                    self.keep(extension, &bytes)
                } else {
                    Err("there are too many".to_owned())
                };
                let place = match kept {
                    Ok(path) => format!("saved to {path}"),
                    Err(reason) => format!("not kept: {reason}"),
                };
                Part::Note(format!("[{what}, {} bytes, {place}]", bytes.len()))
            }
        };
        self.parts.push(part);
    }

    /// Structured content, unless a text already says the same.
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
        // Texts are still needed as they are, for the file; pictures are not.
        let harmless: Vec<Block> = self
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
        let characters: usize = harmless.iter().map(Block::characters).sum();
        if characters <= limit {
            return Shaped {
                blocks: harmless,
                is_error,
                is_cut: false,
                files: self.files,
            };
        }
        let note = self.keep_whole(characters);
        Shaped {
            blocks: fit(harmless, &note, limit),
            is_error,
            is_cut: true,
            files: self.files,
        }
    }

    /// Writes all that the server said into a file, as it said it; the note that tells so.
    fn keep_whole(&mut self, characters: usize) -> String {
        let mut whole = String::new();
        let mut count = 0;
        for part in &self.parts {
            let text = match part {
                Part::Text(text) => text.as_ref(),
                Part::Note(note) => note.as_str(),
                Part::Image(_) | Part::Audio(_) => continue,
            };
            if count > 0 {
                whole.push('\n');
            }
            whole.push_str(text);
            count += 1;
        }
        let is_json = count == 1 && whole.starts_with(['{', '[']);
        let extension = if is_json { "json" } else { "txt" };
        let mut note = format!("\n[output cut: {characters} characters in all");
        match self.keep(extension, whole.as_bytes()) {
            Ok(path) => {
                let _ = write!(note, "; the whole is in {path}; read it in parts]");
            }
            Err(reason) => {
                let _ = write!(note, "; the rest is lost: {reason}]");
            }
        }
        note
    }

    fn keep(&mut self, extension: &str, bytes: &[u8]) -> Result<String, String> {
        let folder = self
            .options
            .spill
            .ok_or_else(|| "there is no folder for it".to_owned())?;
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

/// The blocks within the limit, and the note within it too. Pictures and sound stay.
fn fit(blocks: Vec<Block>, note: &str, limit: usize) -> Vec<Block> {
    let note = first_characters(note, limit);
    let mut left = limit - note.chars().count();
    let mut is_full = false;
    let mut kept = Vec::new();
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
                    kept.push(Block::Text(text));
                }
            }
            media => kept.push(media),
        }
    }
    // Behind the last text, so that it reads as the end of it.
    let last_text = kept.iter_mut().rev().find_map(|block| match block {
        Block::Text(text) => Some(text),
        _ => None,
    });
    match last_text {
        Some(text) => text.push_str(note),
        None => kept.push(Block::Text(note.to_owned())),
    }
    kept
}

/// Where to cut a text so that at most `limit` characters stay: behind a line if one ends near, at a character if not.
fn boundary(text: &str, limit: usize) -> usize {
    let end = first_characters(text, limit).len();
    let near = end - end / 10;
    match text.get(..end).and_then(|kept| kept.rfind('\n')) {
        Some(line) if line >= near => line,
        _ => end,
    }
}

/// Whether one of the texts is the same value as `structured`.
///
/// Some SDKs wrap what is no object as `{"result": …}`; then the text is the value without the wrapping.
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
        // Text that is much longer cannot be the same value; indentation makes it a few times as long.
        if text.len() > structured.len().saturating_mul(16) + 64 {
            return false;
        }
        serde_json::from_str::<Value>(text.trim()).is_ok_and(|shown| {
            same(&shown, &value) || wrapped.is_some_and(|inner| same(&shown, inner))
        })
    })
}

/// Whether two values are the same, numbers compared as numbers. Depth is bounded by the parser.
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
