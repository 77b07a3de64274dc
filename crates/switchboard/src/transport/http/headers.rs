//! Headers configured for a server: static ones, and those a helper prints.
//!
//! Validates them and decides when the helper runs. Values are secrets: they are marked sensitive, and errors name the
//! header, never its value.

use std::sync::{Arc, Mutex};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;

use super::helper::HeadersHelper;
use super::lifetime::lock;
use crate::transport::{TransportError, TransportErrorKind};

/// Headers that frame the message itself; setting them would break it or allow request smuggling.
const RESERVED: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[derive(Debug)]
pub(in crate::transport) struct ConfiguredHeaders {
    fixed: HeaderMap,
    helper: Option<HeadersHelper>,
    current: Mutex<Current>,
    /// Serializes helper runs; waiters use the outcome of the one before.
    turn: tokio::sync::Semaphore,
}

/// The current headers and their generation.
#[derive(Debug, Clone)]
pub(in crate::transport) struct Current {
    pub(in crate::transport) headers: Arc<HeaderMap>,
    pub(in crate::transport) generation: u64,
}

impl ConfiguredHeaders {
    pub(in crate::transport) fn new(
        headers: &[(String, Secret)],
        helper: Option<HeadersHelper>,
    ) -> Result<Self, TransportError> {
        let fixed = validated(headers, "")?;
        Ok(Self {
            current: Mutex::new(Current {
                headers: Arc::new(fixed.clone()),
                generation: 0,
            }),
            fixed,
            helper,
            turn: tokio::sync::Semaphore::new(1),
        })
    }

    pub(in crate::transport) fn current(&self) -> Current {
        lock(&self.current).clone()
    }

    /// Whether one of them looks like credentials.
    pub(in crate::transport) fn has_credentials(&self) -> bool {
        const WORDS: [&str; 4] = ["auth", "key", "token", "cookie"];
        let current = self.current();
        let mut names = current.headers.keys().map(HeaderName::as_str);
        names.any(|name| WORDS.iter().any(|word| name.contains(word)))
    }

    /// Runs the helper, if there is one, unless it has run since generation `seen`.
    ///
    /// Returns whether the headers have changed.
    pub(in crate::transport) async fn renew(&self, seen: u64) -> Result<bool, TransportError> {
        let Some(helper) = &self.helper else {
            return Ok(false);
        };
        let _turn = self.turn.acquire().await;
        let before = self.current();
        if before.generation != seen {
            return Ok(true);
        }
        let mut headers = self.fixed.clone();
        let printed = helper.run().await?;
        for (name, value) in &printed {
            helper.redactor.learn_header(name, value);
        }
        let printed = validated(&printed, " that the headers helper printed")?;
        for name in printed.keys() {
            headers.remove(name);
        }
        headers.extend(printed);
        let changed = headers != *before.headers;
        *lock(&self.current) = Current {
            headers: Arc::new(headers),
            generation: seen + 1,
        };
        Ok(changed)
    }
}

fn validated(headers: &[(String, Secret)], origin: &str) -> Result<HeaderMap, TransportError> {
    let invalid = |name: &str, reason: &str| {
        TransportError::new(
            TransportErrorKind::Invalid,
            format!("the header `{}`{origin} {reason}", visible(name)),
        )
    };
    let mut map = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| invalid(name, "has an invalid name"))?;
        if RESERVED.contains(&header.as_str()) || header.as_str().starts_with("sec-websocket-") {
            return Err(invalid(name, "belongs to the connection and cannot be set"));
        }
        let mut value = HeaderValue::from_bytes(value.expose().as_bytes()).map_err(|_| {
            invalid(
                name,
                "has a value with a line break or another control character",
            )
        })?;
        value.set_sensitive(true);
        map.append(header, value);
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_cannot_be_sent_is_named_without_its_value() {
        let check = |name: &str, value: &str, message: &str| {
            let error = ConfiguredHeaders::new(&[(name.to_owned(), Secret::new(value))], None)
                .expect_err(name);
            assert_eq!(error.kind, TransportErrorKind::Invalid);
            assert_eq!(error.message, message);
        };
        let control = "has a value with a line break or another control character";
        check(
            "X-Key",
            "a\r\nEvil: 1",
            &format!("the header `X-Key` {control}"),
        );
        check("X-Key", "token\n", &format!("the header `X-Key` {control}"));
        check("X-Key", "a\0", &format!("the header `X-Key` {control}"));
        check("X Key", "a", "the header `X Key` has an invalid name");
        check("", "a", "the header `` has an invalid name");
        check(
            "A\r\nB",
            "a",
            "the header `A\\u{d}\\u{a}B` has an invalid name",
        );
        let owned = "belongs to the connection and cannot be set";
        check(
            "Content-Length",
            "1",
            &format!("the header `Content-Length` {owned}"),
        );
        check(
            "Sec-WebSocket-Key",
            "1",
            &format!("the header `Sec-WebSocket-Key` {owned}"),
        );
    }

    #[test]
    fn values_are_hidden_in_debug_output() {
        let headers = [("Authorization".to_owned(), Secret::new("Bearer hunter2"))];
        let headers = ConfiguredHeaders::new(&headers, None).expect("headers");
        assert!(!format!("{headers:?}").contains("hunter2"));
    }
}
