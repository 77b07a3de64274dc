//! Attaches what a prompt mentions: resources as `@server:uri`, and files as `@path`.

use std::path::Path;

use base64::Engine as _;
use switchboard::internal::files::{open_regular, read_whole};
use switchboard::{Host, ServerName};
use switchboard_agent::Prompt;
use switchboard_agent::message::{Image, Part};
use switchboard_config::text::visible;
use switchboard_protocol::types::decode;
use switchboard_protocol::types::resource::{ReadResourceResult, ResourceContents};

use crate::commands::call::result::BASE64;
use crate::commands::content;
use crate::error::Failure;
use crate::session::CommandHost;

/// Maximum size of one attachment, in bytes; a tool can read larger resources in parts.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// A resource mentioned in a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) server: String,
    pub(super) uri: String,
}

/// Reads the mentioned resources and builds the prompt. Fails if any of them cannot be read.
pub(super) async fn prompt(text: &str, session: &CommandHost<'_>) -> Result<Prompt, Failure> {
    let mentions = mentions(text, |name| session.servers.has(name));
    let mut prompt = Prompt::from(text);
    for mention in mentions {
        session.start_one(&mention.server).await?;
        prompt
            .parts
            .extend(read(&mention, &session.host, session).await?);
    }
    for path in files(text, |name| session.servers.has(name), &session.context.cwd) {
        prompt.parts.push(read_file(&path, &session.context.cwd)?);
    }
    Ok(prompt)
}

/// The words of a text that may be mentions, without the @ and without punctuation around them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().filter_map(|word| {
        let word = word.trim_start_matches(['(', '"', '\'', '[', '<']);
        let word = word.strip_prefix('@')?;
        let word = word.trim_end_matches([',', ';', '!', '?', '"', '\'', ')', ']', '>']);
        Some(word.strip_suffix('.').unwrap_or(word))
    })
}

/// The distinct files mentioned in a text, relative to a folder. Words that name no file are ignored.
fn files(text: &str, is_server: impl Fn(&str) -> bool, folder: &Path) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for word in words(text) {
        let is_resource = word
            .split_once(':')
            .is_some_and(|(server, _)| is_server(server));
        let is_file = !word.is_empty() && folder.join(word).is_file();
        if is_file && !is_resource && !files.iter().any(|known| known == word) {
            files.push(word.to_owned());
        }
    }
    files
}

fn read_file(path: &str, folder: &Path) -> Result<Part, Failure> {
    let unreadable = |reason: String| {
        let message = format!(
            "`@{}` cannot be attached, so nothing was sent",
            visible(path)
        );
        Failure::failed(message).because(reason)
    };
    let (file, _) =
        open_regular(&folder.join(path)).map_err(|error| unreadable(error.to_string()))?;
    let bytes =
        read_whole(file, MAX_BYTES as u64).map_err(|error| unreadable(error.to_string()))?;
    if let Some(mime_type) = image_type(&bytes) {
        let data = base64::engine::general_purpose::STANDARD.encode(bytes);
        let mime_type = mime_type.to_owned();
        return Ok(Part::Image(Image { mime_type, data }));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| unreadable("it is neither text nor an image".to_owned()))?;
    let text = format!("<file path=\"{path}\">\n{text}\n</file>");
    Ok(Part::Text { text })
}

/// The type of an image that models accept, by its first bytes.
fn image_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    match bytes {
        _ if bytes.starts_with(b"\x89PNG\r\n\x1a\n") => Some("image/png"),
        _ if bytes.starts_with(b"\xff\xd8\xff") => Some("image/jpeg"),
        _ if bytes.starts_with(b"GIF8") => Some("image/gif"),
        _ if is_webp => Some("image/webp"),
        _ => None,
    }
}

/// The distinct resources mentioned in a text. Words with an @ that does not precede a server's name are ignored.
pub(super) fn mentions(text: &str, is_server: impl Fn(&str) -> bool) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    for word in words(text) {
        let Some((server, uri)) = word.split_once(':') else {
            continue;
        };
        let mention = Mention {
            server: server.to_owned(),
            uri: uri.to_owned(),
        };
        if !uri.is_empty() && is_server(server) && !mentions.contains(&mention) {
            mentions.push(mention);
        }
    }
    mentions
}

async fn read(
    mention: &Mention,
    host: &Host,
    session: &CommandHost<'_>,
) -> Result<Vec<Part>, Failure> {
    let Mention { server, uri } = mention;
    let unreadable = |failure: Failure| {
        let shown = format!("@{}:{}", visible(server), visible(uri));
        let mut combined = Failure::new(
            failure.exit,
            format!("`{shown}` cannot be attached, so nothing was sent"),
        );
        combined.causes = std::iter::once(failure.message)
            .chain(failure.causes)
            .collect();
        combined.hint(format!(
            "`switchboard resources --server {}` lists its resources",
            visible(server)
        ))
    };
    let result = host
        .read_resource(&ServerName::from(server.as_str()), uri)
        .await;
    let result = result.map_err(|error| unreadable(content::failure(&error, session)))?;
    let read: ReadResourceResult<'_> = decode(result.raw())
        .map_err(|error| unreadable(Failure::failed("cannot decode the answer").because(error)))?;
    let mut parts = Vec::new();
    for part in &read.contents.items {
        parts.push(attached(mention, part).map_err(|reason| unreadable(Failure::failed(reason)))?);
    }
    if parts.is_empty() {
        return Err(unreadable(Failure::failed("it is empty")));
    }
    Ok(parts)
}

fn attached(mention: &Mention, part: &ResourceContents<'_>) -> Result<Part, String> {
    let Mention { server, uri } = mention;
    match part {
        ResourceContents::Text(part) => {
            let text = part.text.decode();
            if text.len() > MAX_BYTES {
                return Err(format!(
                    "it has {} bytes; the limit is {MAX_BYTES}",
                    text.len()
                ));
            }
            let text = format!("<resource server=\"{server}\" uri=\"{uri}\">\n{text}\n</resource>");
            Ok(Part::Text { text })
        }
        ResourceContents::Blob(part) => {
            let mime_type = part
                .mime_type
                .as_deref()
                .unwrap_or("application/octet-stream");
            let mime_type = mime_type
                .split(';')
                .next()
                .unwrap_or_default()
                .trim()
                .to_ascii_lowercase();
            if !Image::MIME_TYPES.contains(&mime_type.as_str()) {
                return Err(format!(
                    "it is neither text nor an image ({})",
                    visible(&mime_type)
                ));
            }
            let compact: String = part.blob.decode().split_ascii_whitespace().collect();
            let bytes = BASE64
                .decode(&compact)
                .map_err(|_| "its content is not valid base64")?;
            if bytes.len() > MAX_BYTES {
                return Err(format!(
                    "it has {} bytes; the limit is {MAX_BYTES}",
                    bytes.len()
                ));
            }
            let data = base64::engine::general_purpose::STANDARD.encode(bytes);
            Ok(Part::Image(Image { mime_type, data }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_attached_as_text_or_image() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("a.txt", b"hello");
        write("b.png", b"\x89PNG\r\n\x1a\nrest");
        write("c.bin", b"\xff\xfe\0");
        let found = files(
            "see @a.txt, (@b.png) and @a.txt. @missing me@a.txt @docs:a.txt @ @.",
            |name| name == "docs",
            folder.path(),
        );
        assert_eq!(found, ["a.txt", "b.png"]);
        let text = read_file("a.txt", folder.path()).unwrap();
        let expected = "<file path=\"a.txt\">\nhello\n</file>".to_owned();
        assert_eq!(text, Part::Text { text: expected });
        let image = read_file("b.png", folder.path()).unwrap();
        assert!(matches!(image, Part::Image(image) if image.mime_type == "image/png"));
        let failure = read_file("c.bin", folder.path()).unwrap_err();
        assert_eq!(failure.causes, ["it is neither text nor an image"]);
    }

    #[test]
    fn only_servers_are_mentioned() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let found = mentions(text, |name| ["docs", "git"].contains(&name));
            let expected: Vec<Mention> = expected
                .iter()
                .map(|(server, uri)| Mention {
                    server: (*server).to_owned(),
                    uri: (*uri).to_owned(),
                })
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check(
            "look at @docs:file:///a.md, please",
            &[("docs", "file:///a.md")],
        );
        check(
            "(@git:git://x?y=1) and @docs:b. @docs:b",
            &[("git", "git://x?y=1"), ("docs", "b")],
        );
        check("mail me@docs:x or @other:y or @docs: or @docs", &[]);
    }
}
