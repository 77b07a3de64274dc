//! Prints a call's result: for people, as JSON, and to files.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use serde_json::value::RawValue;
use switchboard::CallOutcome;
use switchboard::internal::call::shape::without_content;
use switchboard::internal::catalog::text::neutralise;
use switchboard_config::text::visible;
use switchboard_protocol::types::content::{ContentBlock, ResourceLink};
use switchboard_protocol::types::resource::ResourceContents;
use switchboard_protocol::types::tool::CallToolResult;
use switchboard_protocol::types::{Number, decode, encode};

use crate::commands::status::size;
use crate::context::Context;
use crate::error::Failure;
use crate::json_text;
use crate::printer::{Printer, paint, style};

/// Servers send base64 with and without padding.
pub(crate) const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Prints a result; writes binary parts to files if `output` is set.
pub(super) fn show(
    outcome: &CallOutcome,
    output: Option<&Path>,
    context: &Context,
) -> Result<(), Failure> {
    let printer = &context.printer;
    let raw = outcome.result.raw();
    let result: CallToolResult<'_> =
        decode(raw).map_err(|error| Failure::failed("cannot decode the result").because(error))?;
    let mut parts = parts(&result);
    if parts.is_empty()
        && let Some(rest) = without_content(raw)
    {
        parts.push(Part::Text(json_text::indented(rest)));
    }
    let target = output.map(|file| context.cwd.join(file));
    if let Some(target) = &target {
        write_files(&mut parts, target, printer)?;
    }
    if printer.json {
        return printer.json_text(&complete(raw.get()));
    }
    printer.data(to_text(&parts, target.is_some()))
}

/// One content block for people, sanitized.
pub(crate) fn block_text(block: &ContentBlock<'_>) -> String {
    to_text(&[part(block)], true)
}

#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Text as sent by the server.
    Text(String),
    /// A note about content that is not displayed, sanitized.
    Note(String),
    /// Binary content and its description.
    Bytes { what: String, bytes: Vec<u8> },
}

fn parts(result: &CallToolResult<'_>) -> Vec<Part> {
    let mut parts: Vec<Part> = result.content.items.iter().map(part).collect();
    for entry in &result.content.set_aside {
        parts.push(Part::Text(json_text::indented(entry.raw.get())));
    }
    // Content blocks are meant for people; structured content is shown only without them. JSON output has both.
    if let Some(structured) = &result.structured_content
        && parts.is_empty()
        && structured.get() != "null"
    {
        parts.push(Part::Text(json_text::indented(structured.get())));
    }
    parts
}

fn part(block: &ContentBlock<'_>) -> Part {
    match block {
        ContentBlock::Text(content) => Part::Text(content.text.decode().into_owned()),
        ContentBlock::Bare(content) => Part::Text(content.decode().into_owned()),
        ContentBlock::Image(image) => bytes("image", &image.mime_type, &image.data.decode()),
        ContentBlock::Audio(audio) => bytes("audio", &audio.mime_type, &audio.data.decode()),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::Text(contents) => Part::Text(contents.text.decode().into_owned()),
            ResourceContents::Blob(contents) => {
                let what = format!("resource {}", visible(&contents.uri));
                let mime_type = contents.mime_type.as_deref();
                let mime_type = mime_type.unwrap_or("application/octet-stream");
                bytes(&what, mime_type, &contents.blob.decode())
            }
        },
        ContentBlock::ResourceLink(link) => Part::Note(link_note(link)),
        other => Part::Text(json_text::indented(&encode(other))),
    }
}

fn bytes(what: &str, mime_type: &str, base64: &str) -> Part {
    // Some encoders break base64 into lines.
    let compact: String = base64.split_ascii_whitespace().collect();
    let what = format!("{what}, {}", visible(mime_type));
    match BASE64.decode(compact) {
        Ok(bytes) => Part::Bytes { what, bytes },
        Err(error) => Part::Note(format!("[{what}, invalid base64: {error}]")),
    }
}

fn link_note(link: &ResourceLink<'_>) -> String {
    let name = link.title.as_deref().unwrap_or(&link.name);
    let mut note = format!("[link to {}: {}", visible(name), visible(&link.uri));
    if let Some(mime_type) = &link.mime_type {
        let _ = write!(note, ", {}", visible(mime_type));
    }
    if let Some(bytes) = link.size.as_ref().and_then(Number::as_u64) {
        let _ = write!(note, ", {}", size(bytes));
    }
    note.push(']');
    note
}

fn to_text(parts: &[Part], written: bool) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::Text(part) => text.push_str(&neutralise(part)),
            Part::Note(note) => text.push_str(note),
            Part::Bytes { what, bytes } => {
                let hint = if written {
                    ""
                } else {
                    "; save it with --output FILE"
                };
                let note = format!("[{what}, {}{hint}]", size(bytes.len() as u64));
                text.push_str(&paint(style::QUIET, note));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text
}

/// Writes the binary parts, or the text if there are none, and replaces each written part with a note.
fn write_files(parts: &mut Vec<Part>, target: &Path, printer: &Printer) -> Result<(), Failure> {
    let mut count = 0;
    for part in parts.iter_mut() {
        let Part::Bytes { what, bytes } = part else {
            continue;
        };
        count += 1;
        let path = numbered(target, count);
        write_file(&path, bytes)?;
        let shown = path.display().to_string();
        let note = format!(
            "[{what}, {} in {}]",
            size(bytes.len() as u64),
            visible(&shown)
        );
        *part = Part::Note(note);
    }
    if count > 0 {
        return Ok(());
    }
    let texts = parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let mut text = texts.collect::<Vec<_>>().join("\n");
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    write_file(target, text.as_bytes())?;
    parts.retain(|part| !matches!(part, Part::Text(_)));
    let shown = target.display().to_string();
    let bytes = size(text.len() as u64);
    printer.note(format!("{bytes} written to {}", visible(&shown)));
    Ok(())
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| {
        let shown = path.display().to_string();
        Failure::failed(format!("could not write {}", visible(&shown)))
            .because(error)
            .hint("the call was made; check its effect before you repeat it")
    })
}

/// `picture.png`, `picture-2.png`, `picture-3.png`.
fn numbered(path: &Path, count: usize) -> PathBuf {
    if count == 1 {
        return path.to_owned();
    }
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{count}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// The result with `content` and `isError` always present. Everything else is as sent by the server.
fn complete(raw: &str) -> String {
    let raw = raw.trim();
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(raw).unwrap_or_default();
    let Some(body) = raw.strip_suffix('}') else {
        return raw.to_owned();
    };
    let mut text = body.trim_end().to_owned();
    for (name, default) in [("content", "[]"), ("isError", "false")] {
        if !members.contains_key(name) {
            let comma = if text.ends_with('{') { "" } else { "," };
            let _ = write!(text, "{comma}\"{name}\":{default}");
        }
    }
    text.push('}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(result: &str) -> String {
        let raw: &RawValue = serde_json::from_str(result).unwrap();
        let result: CallToolResult<'_> = decode(raw).unwrap();
        let text = to_text(&parts(&result), false);
        anstream::adapter::strip_str(&text).to_string()
    }

    #[test]
    fn every_part_is_shown_once_and_harmless() {
        for (result, expected) in [
            (
                r#"{"content": [{"type": "text", "text": "a\nb\u001b[2J"}]}"#,
                "a\nb\\u{1b}[2J\n",
            ),
            (r#"{"content": ["bare"]}"#, "bare\n"),
            (
                r#"{"content": [{"type": "text", "text": "one"}], "structuredContent": {"a":1}}"#,
                "one\n",
            ),
            (r#"{"structuredContent": [1]}"#, "[\n  1\n]\n"),
            (
                r#"{"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}"#,
                "[image, image/png, 2 B; save it with --output FILE]\n",
            ),
            (
                r#"{"content": [{"type": "audio", "data": "%", "mimeType": "audio/x\u001b"}]}"#,
                "[audio, audio/x\\u{1b}, invalid base64: Invalid symbol 37, offset 0.]\n",
            ),
            (
                r#"{"content": [{"type": "resource", "resource": {"uri": "x:y", "blob": "aGk"}}]}"#,
                "[resource x:y, application/octet-stream, 2 B; save it with --output FILE]\n",
            ),
            (
                r#"{"content": [{"type": "resource_link", "uri": "x:y", "name": "n", "size": 1500}]}"#,
                "[link to n: x:y, 1.5 kB]\n",
            ),
            (r#"{"content": []}"#, ""),
        ] {
            assert_eq!(shown(result), expected, "{result}");
        }
    }

    #[test]
    fn json_results_always_have_content_and_is_error() {
        for (result, expected) in [
            ("{}", r#"{"content":[],"isError":false}"#),
            (
                r#"{ "isError" : true, "content":[1.0] }"#,
                r#"{ "isError" : true, "content":[1.0]}"#,
            ),
            (
                r#"{"structuredContent":{"n":18446744073709551616}}"#,
                r#"{"structuredContent":{"n":18446744073709551616},"content":[],"isError":false}"#,
            ),
        ] {
            assert_eq!(complete(result), expected);
        }
    }

    #[test]
    fn further_files_are_numbered() {
        let names = [1, 2, 3].map(|count| numbered(Path::new("/a/p.tar.gz"), count));
        let names = names.map(|name| name.display().to_string());
        assert_eq!(names, ["/a/p.tar.gz", "/a/p.tar-2.gz", "/a/p.tar-3.gz"]);
        assert_eq!(numbered(Path::new("plain"), 2), Path::new("plain-2"));
    }
}
