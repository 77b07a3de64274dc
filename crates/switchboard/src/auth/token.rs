//! Requests to an OAuth token endpoint.
//!
//! Handles client authentication, the `DPoP` proof with its nonce, and response decoding. The caller fills the form.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use switchboard_config::secret::Secret;
use switchboard_store::Clock;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::challenge::words;
use super::client::refusal;
use super::error::LoginErrorKind;
use super::fetch::{Body, Fetched, Fetcher, shown};
use super::jose::{ProofKey, ProofOf, client_assertion};
use super::record::{Client, ClientAuth};
use super::server::AuthSettings;
use super::ssrf::SsrfPolicy;

/// Upper bound for the lifetime of an access token, in seconds.
const MAX_LIFETIME: i64 = 400 * 24 * 60 * 60;

/// A token endpoint and the client that uses it.
pub(super) struct TokenEndpoint<'t> {
    pub(super) fetcher: &'t Fetcher,
    pub(super) reach: &'t SsrfPolicy,
    pub(super) url: &'t Url,
    pub(super) issuer: &'t str,
    pub(super) client: &'t Client,
    pub(super) settings: &'t AuthSettings,
    pub(super) proof_key: Option<&'t ProofKey>,
    /// Rejects tokens that are not bound to the key.
    pub(super) must_bind: bool,
    pub(super) clock: &'t dyn Clock,
}

#[derive(Debug)]
pub(super) struct Tokens {
    pub(super) access_token: Secret,
    pub(super) is_bound: bool,
    /// Milliseconds since 1970.
    pub(super) expires_at: Option<i64>,
    pub(super) obtained_at: i64,
    pub(super) refresh_token: Option<Secret>,
    /// Granted scopes, if the response names them.
    pub(super) scopes: Option<Vec<String>>,
    pub(super) issued_type: Option<String>,
}

impl TokenEndpoint<'_> {
    /// Sends a form with client authentication and decodes the tokens.
    pub(super) async fn ask(&self, form: &[(&str, &str)]) -> Result<Tokens, LoginErrorKind> {
        let mut nonce = None;
        loop {
            let answer = self.send(form, nonce.as_deref()).await?;
            if (200..300).contains(&answer.status) {
                return self.read(&answer);
            }
            let refusal = refusal(answer.status, &answer.body);
            let wants_nonce = matches!(&refusal, LoginErrorKind::Refused { error, .. } if error == "use_dpop_nonce");
            // One retry only: a server that demands a new nonce each time would loop.
            match answer.dpop_nonce.filter(|_| wants_nonce && nonce.is_none()) {
                Some(given) => nonce = Some(given),
                None => return Err(refusal),
            }
        }
    }

    /// Sends a form and ignores the body of a successful response.
    pub(super) async fn tell(&self, form: &[(&str, &str)]) -> Result<(), LoginErrorKind> {
        let answer = self.send(form, None).await?;
        if (200..300).contains(&answer.status) {
            return Ok(());
        }
        Err(refusal(answer.status, &answer.body))
    }

    async fn send(
        &self,
        form: &[(&str, &str)],
        nonce: Option<&str>,
    ) -> Result<Fetched, LoginErrorKind> {
        let mut headers: Vec<(&'static str, Secret)> = Vec::new();
        let mut own: Vec<(&'static str, &str)> = vec![("client_id", &self.client.id)];
        let assertion;
        match (self.client.method, &self.client.secret) {
            (ClientAuth::ClientSecretBasic, Some(secret)) => {
                own.clear();
                headers.push(("authorization", basic(&self.client.id, secret)));
            }
            (ClientAuth::ClientSecretPost, Some(secret)) => {
                own.push(("client_secret", secret.expose()));
            }
            (ClientAuth::PrivateKeyJwt, _) => {
                assertion = self.assertion().await?;
                own.push(("client_assertion_type", ASSERTION_TYPE));
                own.push(("client_assertion", assertion.expose()));
            }
            _ if self.client.id.is_empty() => own.clear(),
            _ => {}
        }
        if let Some(key) = self.proof_key {
            let proof = key.proof(&ProofOf {
                method: "POST",
                url: self.url,
                nonce,
                access_token: None,
                now: self.clock.now(),
            })?;
            headers.push(("dpop", proof));
        }
        let body = Body::Form(encoded(form.iter().chain(&own)));
        let answer = self.fetcher.post(self.url, self.reach, &headers, &body);
        Ok(answer.await?)
    }

    async fn assertion(&self) -> Result<Secret, LoginErrorKind> {
        let key = self.settings.private_key.as_ref().ok_or_else(|| {
            LoginErrorKind::Missing("the client's private key is not configured".to_owned())
        })?;
        client_assertion(
            &key.read().await?,
            self.settings.key_id.as_deref(),
            &self.client.id,
            self.issuer,
            self.clock.now(),
        )
    }

    fn read(&self, answer: &Fetched) -> Result<Tokens, LoginErrorKind> {
        let unusable = |problem: &str| LoginErrorKind::Document {
            url: shown(self.url),
            problem: problem.to_owned(),
        };
        let wire: TokenWire = serde_json::from_slice(&answer.body)
            .map_err(|_| unusable("returned an invalid token response"))?;
        let kind = wire.token_type.as_deref().unwrap_or("bearer");
        let is_bound = match kind.to_ascii_lowercase().as_str() {
            "dpop" if self.proof_key.is_some() => true,
            "dpop" => {
                return Err(unusable(
                    "returned a token bound to a key that was not sent",
                ));
            }
            _ if self.must_bind => {
                return Err(unusable("returned a token that is not bound to the key"));
            }
            "bearer" | "n_a" => false,
            _ => return Err(unusable("returned a token of an unknown type")),
        };
        // The token is sent in a header, so it must be printable ASCII.
        let fits = |token: &String| {
            !token.is_empty() && token.bytes().all(|byte| (0x21..0x7f).contains(&byte))
        };
        let access_token = Some(wire.access_token).filter(fits);
        let now = self.clock.now().as_millis();
        let lifetime = wire.expires_in.as_ref().and_then(Lifetime::seconds);
        Ok(Tokens {
            access_token: access_token.map(Secret::new).ok_or_else(|| {
                unusable("returned a token that is not allowed in an HTTP header")
            })?,
            is_bound,
            expires_at: lifetime.map(|seconds| {
                now.saturating_add(seconds.clamp(0, MAX_LIFETIME).saturating_mul(1000))
            }),
            obtained_at: now,
            refresh_token: wire
                .refresh_token
                .filter(|token| !token.is_empty())
                .map(Secret::new),
            scopes: wire.scope.as_deref().map(words),
            issued_type: wire.issued_token_type,
        })
    }
}

const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

#[derive(Deserialize)]
struct TokenWire {
    access_token: String,
    /// Required by the RFC, but some servers omit it.
    token_type: Option<String>,
    expires_in: Option<Lifetime>,
    refresh_token: Option<String>,
    scope: Option<String>,
    issued_token_type: Option<String>,
}

/// Seconds, as a number or, from some servers, as a string.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lifetime {
    Number(f64),
    Text(String),
}

impl Lifetime {
    fn seconds(&self) -> Option<i64> {
        let seconds = match self {
            Self::Number(seconds) => *seconds,
            Self::Text(text) => text.trim().parse().ok()?,
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "drops the fraction; out-of-range values saturate"
        )]
        let whole = seconds as i64;
        seconds.is_finite().then_some(whole)
    }
}

fn encoded<'f>(pairs: impl Iterator<Item = &'f (&'f str, &'f str)>) -> Secret {
    let mut text = Serializer::new(String::new());
    for (name, value) in pairs {
        text.append_pair(name, value);
    }
    Secret::new(text.finish())
}

/// HTTP Basic credentials of a client, each part form-encoded (RFC 6749, 2.3.1).
fn basic(id: &str, secret: &Secret) -> Secret {
    let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
    let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
    Secret::new(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}
