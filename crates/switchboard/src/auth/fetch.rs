//! The HTTP client of everything about authorization that is no MCP: metadata, registration, tokens.

use crate::transport::TransportError;
use crate::transport::http::HttpClient;

/// Fetches documents and posts forms, and lets nobody lead it to a private address.
#[derive(Debug, Clone)]
pub struct Fetcher {}

impl Fetcher {
    /// A fetcher with the trust and the proxies of a client.
    pub fn new(client: &HttpClient) -> Result<Self, TransportError> {
        let _ = client;
        Ok(Self {})
    }
}

/// A fetch failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{url}: {kind}")]
#[non_exhaustive]
pub struct FetchError {
    /// Where to, without its query.
    pub url: String,
    /// Why.
    pub kind: FetchErrorKind,
}

/// Why a fetch failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum FetchErrorKind {
    /// The address may not be fetched.
    #[error("it may not be fetched, {0}")]
    Forbidden(&'static str),
}
