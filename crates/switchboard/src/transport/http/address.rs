//! Parses the address of a server.
//!
//! Besides `http` and `https` there is `unix`: the path of a socket and, after a colon, the path of the HTTP resource,
//! which defaults to `/`:
//!
//! | written | socket | resource |
//! |---|---|---|
//! | `unix:///run/tools.sock` | `/run/tools.sock` | `/` |
//! | `unix:///run/tools.sock:/mcp` | `/run/tools.sock` | `/mcp` |
//! | `unix:///run/a%3A/b.sock:/mcp?x=1` | `/run/a:/b.sock` | `/mcp?x=1` |
//!
//! The first `:/` separates the two; a colon within the socket's path is written `%3A`.

use std::fmt;
use std::path::{Path, PathBuf};

use switchboard_config::mask;
use switchboard_config::text::visible;
use url::{Position, Url};

use super::permit::Permits;
use crate::transport::{Destination, TransportError, TransportErrorKind};

#[derive(Clone)]
pub(in crate::transport) struct Address {
    url: Url,
    socket: Option<PathBuf>,
    shown: String,
}

impl Address {
    /// Parses an address with one of these schemes; `unix` counts as `http`.
    pub(in crate::transport) fn parse(
        text: &str,
        schemes: &[&str],
    ) -> Result<Self, TransportError> {
        let shown = visible(&mask::url(text)).into_owned();
        let invalid = |reason: String| {
            TransportError::new(
                TransportErrorKind::Invalid,
                format!("`{shown}` is not a valid address: {reason}"),
            )
        };
        let (scheme, rest) = text
            .split_once("://")
            .ok_or_else(|| invalid("it has no scheme such as https://".to_owned()))?;
        let (target, socket) = if scheme.eq_ignore_ascii_case("unix") {
            let (socket, resource) = match rest.split_once(":/") {
                Some((socket, resource)) => (socket, resource),
                None => (rest, ""),
            };
            if !socket.starts_with('/') {
                return Err(invalid("the path of the socket is not absolute".to_owned()));
            }
            let socket = decode_path(socket)
                .ok_or_else(|| invalid("the path of the socket cannot be read".to_owned()))?;
            (format!("http://localhost/{resource}"), Some(socket))
        } else {
            (text.to_owned(), None)
        };
        let mut url = Url::parse(&target).map_err(|error| invalid(error.to_string()))?;
        url.set_fragment(None);
        if !schemes.contains(&url.scheme()) {
            let expected = schemes.join(" or ");
            return Err(invalid(format!("its scheme is not {expected}")));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(invalid("it names no host".to_owned()));
        }
        Ok(Self { url, socket, shown })
    }

    pub(in crate::transport) fn url(&self) -> &Url {
        &self.url
    }

    /// Path of the Unix socket; `None` for a network address.
    pub(super) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// The address with secrets masked.
    pub(in crate::transport) fn shown(&self) -> &str {
        &self.shown
    }

    /// Host and port, or the socket, for messages.
    pub(in crate::transport) fn place(&self) -> String {
        if let Some(socket) = &self.socket {
            return socket.display().to_string();
        }
        let host = self.url.host_str().unwrap_or_default();
        match self.url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        }
    }

    /// The address as diagnostics report it.
    pub(in crate::transport) fn destination(
        &self,
        permits: &Permits,
        has_proxy: bool,
    ) -> Destination {
        Destination::Address {
            shown: self.shown.clone(),
            path: visible(self.url.path()).into_owned(),
            has_credentials: permits.has_credentials(),
            can_log_in: permits.can_log_in(),
            has_proxy,
        }
    }

    /// Whether a link has the same origin. Behind a socket there is only one origin.
    pub(super) fn has_origin_of(&self, other: &Url) -> bool {
        self.url.origin() == other.origin()
    }

    /// Resolves a link of the server against the address it was found at.
    pub(super) fn resolve(&self, base: &Url, link: &str) -> Result<Url, url::ParseError> {
        let mut url = base.join(link.trim())?;
        url.set_fragment(None);
        if self.socket.is_some() && matches!(url.scheme(), "http" | "https") {
            // A socket has no other host, whatever host the server names.
            return self.url.join(&url[Position::BeforePath..]);
        }
        // Credentials in the address apply to the whole origin.
        if self.has_origin_of(&url) && url.username().is_empty() {
            let _ = url.set_username(self.url.username());
            let _ = url.set_password(self.url.password());
        }
        Ok(url)
    }
}

/// Prints the address with secrets masked.
impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.shown)
    }
}

/// A link without its query, which may contain a key.
pub(super) fn shown_link(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    let _ = url.set_username("");
    let _ = url.set_password(None);
    visible(url.as_str()).into_owned()
}

fn decode_path(text: &str) -> Option<PathBuf> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        let (high, low) = (digit(after.first()?)?, digit(after.get(1)?)?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
        rest = after.get(2..)?;
    }
    if bytes.contains(&0) {
        return None;
    }
    Some(PathBuf::from(String::from_utf8(bytes).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_have_a_path_and_a_resource() {
        let check = |text: &str, socket: &str, url: &str| {
            let address = Address::parse(text, &["http", "https"]).expect(text);
            assert_eq!(address.socket(), Some(Path::new(socket)), "{text}");
            assert_eq!(address.url().as_str(), url, "{text}");
        };
        check("unix:///run/x.sock", "/run/x.sock", "http://localhost/");
        check("unix:///run/x.sock:/", "/run/x.sock", "http://localhost/");
        check(
            "unix:///run/x.sock:/mcp",
            "/run/x.sock",
            "http://localhost/mcp",
        );
        check(
            "UNIX:///a%20b:c.sock:/m?x=1",
            "/a b:c.sock",
            "http://localhost/m?x=1",
        );
        check("unix:///a%3A/b.sock:/m", "/a:/b.sock", "http://localhost/m");
    }

    #[test]
    fn an_address_that_cannot_be_used_says_why() {
        let check = |text: &str, message: &str| {
            let error = Address::parse(text, &["http", "https"]).expect_err(text);
            assert_eq!(error.kind, TransportErrorKind::Invalid);
            assert_eq!(
                error.message,
                format!("`{}` is not a valid address: {message}", mask::url(text))
            );
        };
        check("example.com/mcp", "it has no scheme such as https://");
        check("ftp://example.com/", "its scheme is not http or https");
        check("https://", "empty host");
        check("https://user:secret@[::1", "invalid IPv6 address");
        check(
            "unix://run/x.sock",
            "the path of the socket is not absolute",
        );
        check("unix:///run/x%zz", "the path of the socket cannot be read");
        check("unix:///run/x%00", "the path of the socket cannot be read");
    }

    #[test]
    fn links_are_resolved_and_keep_the_credentials_of_the_origin() {
        let check = |address: &str, link: &str, expected: &str| {
            let address = Address::parse(address, &["http", "https"]).expect(address);
            let resolved = address.resolve(address.url(), link).expect(link);
            assert_eq!(resolved.as_str(), expected, "{link}");
        };
        check("http://h/a/sse", "messages?s=1", "http://h/a/messages?s=1");
        check("http://u:p@h/sse", "/m", "http://u:p@h/m");
        check("http://u:p@h/sse", "http://h:80/m#x", "http://u:p@h/m");
        check("http://u:p@h/sse", "http://other/m", "http://other/m");
        check(
            "unix:///s:/sse",
            "http://127.0.0.1:80/m?s=1",
            "http://localhost/m?s=1",
        );
    }
}
