//! What a request is shown with, and what is done when the server refuses it: configured headers first, and where they
//! hold no credentials, those of the [`Authorizer`].

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::RemoteServer;
use super::headers::ConfiguredHeaders;
use crate::auth::{Authorizer, Credentials, DPOP_NONCE, Refusal, Target, Verdict};
use crate::transport::{TransportError, TransportErrorKind};

/// The permits of one server.
#[derive(Debug)]
pub(in crate::transport) struct Permits {
    configured: ConfiguredHeaders,
    authorizer: Option<Arc<dyn Authorizer>>,
}

/// What one request is shown with.
#[derive(Debug)]
pub(in crate::transport) struct Permit {
    pub(in crate::transport) headers: HeaderMap,
    /// Which headers of the helper these are.
    generation: u64,
    /// What the authorizer gave, unless the configuration leaves it nothing to do.
    credentials: Option<Credentials>,
    /// How often the request has been sent again for a better permit.
    attempts: u32,
    has_helped: bool,
}

impl Permits {
    pub(in crate::transport) fn new(server: RemoteServer) -> Result<Self, TransportError> {
        Ok(Self {
            configured: ConfiguredHeaders::new(&server.headers, server.headers_helper)?,
            authorizer: server.authorizer,
        })
    }

    /// Makes the configured headers anew.
    pub(in crate::transport) async fn prepare(&self) -> Result<(), TransportError> {
        let generation = self.configured.current().generation;
        self.configured.renew(generation).await.map(drop)
    }

    /// Whether the server is shown credentials.
    pub(in crate::transport) fn has_credentials(&self) -> bool {
        self.configured.has_credentials()
    }

    /// Whether a login could give the server other credentials than the configured ones.
    pub(in crate::transport) fn can_log_in(&self) -> bool {
        let headers = self.configured.current().headers;
        self.authorizer.is_some() && !headers.contains_key(AUTHORIZATION)
    }

    /// A permit for a request, in place of the one it was sent with before.
    pub(in crate::transport) async fn issue(
        &self,
        method: &str,
        url: &Url,
        before: Option<&Permit>,
    ) -> Permit {
        let current = self.configured.current();
        let mut headers = HeaderMap::clone(&current.headers);
        // Whoever writes credentials into the configuration wants those and no others.
        let authorizer = self.authorizer.as_ref();
        let authorizer = authorizer.filter(|_| !headers.contains_key(AUTHORIZATION));
        let credentials = match authorizer {
            Some(authorizer) => Some(authorizer.credentials(Target { method, url }).await),
            None => None,
        };
        for (name, value) in credentials.iter().flat_map(|shown| &shown.headers) {
            let name = HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value.expose())) {
                value.set_sensitive(true);
                headers.insert(name, value);
            }
        }
        Permit {
            headers,
            generation: current.generation,
            credentials,
            attempts: before.map_or(0, |before| before.attempts),
            has_helped: before.is_some_and(|before| before.has_helped),
        }
    }

    /// Takes notice of what the server's answer says about the next proof of possession.
    pub(in crate::transport) fn answered(&self, url: &Url, headers: &HeaderMap) {
        if let Some(nonce) = headers.get(DPOP_NONCE)
            && let Ok(nonce) = nonce.to_str()
        {
            self.noted(url, nonce);
        }
    }

    /// Takes notice of a nonce.
    pub(in crate::transport) fn noted(&self, url: &Url, nonce: &str) {
        if let Some(authorizer) = &self.authorizer {
            authorizer.nonce(url, nonce);
        }
    }

    /// Whether there is a better permit for a request that was refused with this status.
    pub(in crate::transport) async fn is_worth_another_try(
        &self,
        method: &str,
        url: &Url,
        permit: &mut Permit,
        status: u16,
        challenges: &[String],
    ) -> Result<bool, TransportError> {
        if !matches!(status, 401 | 403) {
            return Ok(false);
        }
        if status == 401 && !permit.has_helped {
            permit.has_helped = true;
            // A helper that fails now has no better answer than the server's refusal.
            if let Ok(true) = self.configured.renew(permit.generation).await {
                return Ok(true);
            }
        }
        let (Some(authorizer), Some(shown)) = (&self.authorizer, &permit.credentials) else {
            return Ok(false);
        };
        let refusal = Refusal {
            status,
            challenges,
            attempts: permit.attempts,
        };
        let target = Target { method, url };
        match authorizer.refused(target, shown, refusal).await {
            Verdict::Again => {
                permit.attempts += 1;
                Ok(true)
            }
            Verdict::NeedsPerson | Verdict::Final => Ok(false),
            Verdict::Unavailable(reason) => Err(TransportError::new(
                TransportErrorKind::Unreachable,
                format!("the login could not be renewed: {reason}"),
            )),
        }
    }
}
