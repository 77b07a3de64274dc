//! Attaches resources mentioned as `@server:uri` to a prompt.

use base64::Engine as _;
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
    Ok(prompt)
}

/// The distinct resources mentioned in a text. Words with an @ that does not precede a server's name are ignored.
pub(super) fn mentions(text: &str, is_server: impl Fn(&str) -> bool) -> Vec<Mention> {
    let mut mentions: Vec<Mention> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_start_matches(['(', '"', '\'', '[', '<']);
        let Some((server, uri)) = word.strip_prefix('@').and_then(|word| word.split_once(':'))
        else {
            continue;
        };
        let uri = uri.trim_end_matches([',', ';', '!', '?', '"', '\'', ')', ']', '>']);
        let uri = uri.strip_suffix('.').unwrap_or(uri);
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
