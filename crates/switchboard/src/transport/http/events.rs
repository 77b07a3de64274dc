//! Reads response bodies within a size limit: whole ones and event streams.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use super::address::Address;
use super::failure;
use super::sse::{Decoded, Decoder};
use crate::transport::{RequestFailure, TransportError};

/// A stream of server-sent events.
#[derive(Debug)]
pub(super) struct EventStream {
    response: Response,
    decoder: Decoder,
}

impl EventStream {
    /// A stream resumed after `last_id`.
    pub(super) fn new(response: Response, limit: usize, last_id: Option<Bytes>) -> Self {
        Self {
            response,
            decoder: Decoder::new(limit, last_id),
        }
    }

    /// The next event; `None` at the end of the stream. Cancel-safe.
    pub(super) async fn next(
        &mut self,
        address: &Address,
    ) -> Result<Option<Decoded>, TransportError> {
        loop {
            if let Some(decoded) = self.decoder.take() {
                return Ok(Some(decoded));
            }
            match self.response.chunk().await {
                Ok(Some(chunk)) => self.decoder.push(chunk),
                Ok(None) => return Ok(None),
                Err(error) => return Err(failure::describe(&error, address)),
            }
        }
    }

    pub(super) fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// The URL it came from, after redirects.
    pub(super) fn url(&self) -> &url::Url {
        self.response.url()
    }
}

/// Reads a whole body within the limit.
pub(super) async fn read_body(
    mut response: Response,
    limit: usize,
    address: &Address,
) -> Result<Bytes, RequestFailure> {
    let too_large = |length: usize| length > limit;
    let announced = response.content_length().unwrap_or_default();
    if usize::try_from(announced).map_or(true, too_large) {
        return Err(RequestFailure::TooLarge { limit });
    }
    let mut first = Bytes::new();
    let mut joined = BytesMut::new();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => break,
            Err(error) => return Err(RequestFailure::Lost(failure::describe(&error, address))),
        };
        if too_large(first.len() + joined.len() + chunk.len()) {
            return Err(RequestFailure::TooLarge { limit });
        }
        if joined.is_empty() && first.is_empty() {
            // Most bodies arrive in one chunk and need no copy.
            first = chunk;
        } else {
            joined.reserve(first.len() + chunk.len());
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&chunk);
        }
    }
    Ok(if joined.is_empty() {
        first
    } else {
        joined.freeze()
    })
}

/// Whether a body may be a JSON-RPC message, whatever its content type.
pub(super) fn looks_like_json(body: &[u8]) -> bool {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    matches!(first, Some(b'{' | b'['))
}
