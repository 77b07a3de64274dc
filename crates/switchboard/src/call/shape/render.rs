//! Converts one content block to a form for the model.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use switchboard_protocol::text::JsonStr;
use switchboard_protocol::types::content::{ContentBlock, EmbeddedResource, ResourceLink};
use switchboard_protocol::types::resource::ResourceContents;
use switchboard_protocol::types::{Number, encode};

use super::Media;

/// Maximum length of a displayed media type, in characters.
const MAX_EXCERPT: usize = 100;

/// Servers send base64 with and without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Form of a converted block.
pub(super) enum Rendered<'a> {
    /// Text from the server.
    Text(Cow<'a, str>),
    Image(Media),
    Audio(Media),
    /// Binary data for a file.
    Bytes {
        what: String,
        extension: &'static str,
        bytes: Vec<u8>,
    },
}

pub(super) fn block<'a>(block: &ContentBlock<'a>) -> Rendered<'a> {
    match block {
        ContentBlock::Text(content) => Rendered::Text(text(&content.text)),
        ContentBlock::Bare(content) => Rendered::Text(text(content)),
        ContentBlock::Image(content) => media("image", &content.mime_type, &content.data),
        ContentBlock::Audio(content) => media("audio", &content.mime_type, &content.data),
        ContentBlock::Resource(content) => resource(content),
        ContentBlock::ResourceLink(link) => Rendered::Text(Cow::Owned(self::link(link))),
        // Not allowed in a tool result by any revision; shown as raw JSON.
        other => Rendered::Text(Cow::Owned(encode(other))),
    }
}

fn resource<'a>(embedded: &EmbeddedResource<'a>) -> Rendered<'a> {
    match &embedded.resource {
        ResourceContents::Text(contents) => {
            let mut text = format!("[resource {}", contents.uri);
            if let Some(mime_type) = &contents.mime_type {
                let _ = write!(text, " ({mime_type})");
            }
            text.push_str("]\n");
            text.push_str(&contents.text.decode());
            Rendered::Text(Cow::Owned(text))
        }
        ResourceContents::Blob(contents) => {
            let mime_type = contents
                .mime_type
                .as_deref()
                .unwrap_or("application/octet-stream");
            let kind = mime_type.split('/').next().unwrap_or_default();
            if kind == "image" || kind == "audio" {
                return media(kind, mime_type, &contents.blob);
            }
            let what = format!("binary resource {} ({})", contents.uri, excerpt(mime_type));
            bytes(what, mime_type, &contents.blob)
        }
    }
}

fn media<'a>(kind: &str, mime_type: &str, data: &JsonStr<'_>) -> Rendered<'a> {
    let decoded = data.decode();
    let expected = if kind == "image" { "image/" } else { "audio/" };
    // A single invalid image makes a provider reject the whole conversation.
    if decoded.is_empty()
        || !mime_type.starts_with(expected)
        || BASE64.decode(decoded.as_bytes()).is_err()
    {
        return bytes(
            format!("{kind} ({}) that cannot be shown", excerpt(mime_type)),
            mime_type,
            data,
        );
    }
    let media = Media {
        mime_type: excerpt(mime_type),
        data: decoded.into_owned(),
    };
    if kind == "image" {
        Rendered::Image(media)
    } else {
        Rendered::Audio(media)
    }
}

/// Converts media over the limit to a file.
pub(super) fn as_bytes<'a>(media: &Media) -> Rendered<'a> {
    let what = format!("{}, over the limit of media per result", media.mime_type);
    bytes(what, &media.mime_type, &JsonStr::from(media.data.as_str()))
}

fn bytes<'a>(what: String, mime_type: &str, data: &JsonStr<'_>) -> Rendered<'a> {
    let written = data.decode();
    let compact: String;
    // Some encoders insert line breaks into base64.
    let written = if written.contains(char::is_whitespace) {
        compact = written.split_whitespace().collect();
        compact.as_str()
    } else {
        &written
    };
    match BASE64.decode(written) {
        Ok(bytes) => Rendered::Bytes {
            what,
            extension: extension(mime_type),
            bytes,
        },
        Err(_) => Rendered::Bytes {
            what: format!("{what}, not valid base64, saved as received"),
            extension: "txt",
            bytes: written.as_bytes().to_vec(),
        },
    }
}

fn link(link: &ResourceLink<'_>) -> String {
    let name = link.title.as_deref().unwrap_or(&link.name);
    let mut note = format!("[resource link: {} at {}", name, link.uri);
    if let Some(mime_type) = &link.mime_type {
        let _ = write!(note, ", {mime_type}");
    }
    if let Some(size) = link.size.as_ref().and_then(Number::as_u64) {
        let _ = write!(note, ", {size} bytes");
    }
    if let Some(description) = &link.description {
        let _ = write!(note, ": {description}");
    }
    note.push(']');
    note
}

/// Borrows the text from the result if it has no escapes.
fn text<'a>(text: &JsonStr<'a>) -> Cow<'a, str> {
    text.clone().into_decoded()
}

fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(MAX_EXCERPT).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn extension(mime_type: &str) -> &'static str {
    let essence = mime_type.split(';').next().unwrap_or_default().trim();
    match essence {
        "application/pdf" => "pdf",
        "application/zip" => "zip",
        "application/gzip" => "gz",
        "application/json" => "json",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "image/svg+xml" => "svg",
        "audio/wav" | "audio/x-wav" => "wav",
        "audio/mpeg" => "mp3",
        "text/html" => "html",
        "text/csv" => "csv",
        _ if essence.starts_with("text/") => "txt",
        _ => "bin",
    }
}
