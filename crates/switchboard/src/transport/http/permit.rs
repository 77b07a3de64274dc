//! Credentials of a request: configured headers first, else those of the [`Authorizer`]; and their renewal when the
//! server refuses them.

use std::sync::Arc;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::RemoteServer;
use super::headers::ConfiguredHeaders;
use crate::auth::{Authorizer, Credentials, DPOP_NONCE, Refusal, Target, Verdict};
use crate::transport::{TransportError, TransportErrorKind};

/// Source of the headers and credentials of one server.
#[derive(Debug)]
pub(in crate::transport) struct Permits {
    configured: ConfiguredHeaders,
    authorizer: Option<Arc<dyn Authorizer>>,
}

/// Headers and credentials of one request.
#[derive(Debug)]
pub(in crate::transport) struct Permit {
    pub(in crate::transport) headers: HeaderMap,
    /// Generation of the configured headers.
    generation: u64,
    /// Credentials of the authorizer; `None` if the configuration has its own.
    credentials: Option<Credentials>,
    /// How often the request was retried with a better permit.
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

    /// Runs the headers helper again.
    pub(in crate::transport) async fn prepare(&self) -> Result<(), TransportError> {
        let generation = self.configured.current().generation;
        self.configured.renew(generation).await.map(drop)
    }

    /// Whether credentials are sent to the server.
    pub(in crate::transport) fn has_credentials(&self) -> bool {
        self.configured.has_credentials()
    }

    /// Whether a login could provide credentials other than the configured ones.
    pub(in crate::transport) fn can_log_in(&self) -> bool {
        let headers = self.configured.current().headers;
        self.authorizer.is_some() && !headers.contains_key(AUTHORIZATION)
    }

    /// Issues a permit for a request, replacing the one it was sent with before.
    pub(in crate::transport) async fn issue(
        &self,
        method: &str,
        url: &Url,
        before: Option<&Permit>,
    ) -> Permit {
        let current = self.configured.current();
        let mut headers = HeaderMap::clone(&current.headers);
        // Configured credentials take precedence over a login.
        let authorizer = self.authorizer.as_ref();
        let authorizer = authorizer.filter(|_| !headers.contains_key(AUTHORIZATION));
        let credentials = match authorizer {
            Some(authorizer) => Some(authorizer.credentials(Target { method, url }).await),
            None => None,
        };
        for (name, value) in credentials
            .iter()
            .flat_map(|credentials| &credentials.headers)
        {
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

    /// Records the `DPoP` nonce of a response.
    pub(in crate::transport) fn answered(&self, url: &Url, headers: &HeaderMap) {
        if let Some(nonce) = headers.get(DPOP_NONCE)
            && let Ok(nonce) = nonce.to_str()
        {
            self.noted(url, nonce);
        }
    }

    /// Records a `DPoP` nonce.
    pub(in crate::transport) fn noted(&self, url: &Url, nonce: &str) {
        if let Some(authorizer) = &self.authorizer {
            authorizer.nonce(url, nonce);
        }
    }

    /// Whether a better permit exists for a request refused with this status.
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
            // If the helper fails now, the server's refusal is the better error.
            if let Ok(true) = self.configured.renew(permit.generation).await {
                return Ok(true);
            }
        }
        let (Some(authorizer), Some(sent)) = (&self.authorizer, &permit.credentials) else {
            return Ok(false);
        };
        let refusal = Refusal {
            status,
            challenges,
            attempts: permit.attempts,
        };
        let target = Target { method, url };
        match authorizer.refused(target, sent, refusal).await {
            Verdict::Again => {
                permit.attempts += 1;
                Ok(true)
            }
            Verdict::NeedsPerson | Verdict::Final => Ok(false),
            Verdict::Unavailable(reason) => Err(TransportError::new(
                TransportErrorKind::Unreachable,
                format!("cannot renew the login: {reason}"),
            )),
        }
    }
}
