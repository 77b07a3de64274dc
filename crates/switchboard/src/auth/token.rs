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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use serde_json::{Value, json};
    use switchboard_store::Timestamp;

    use super::*;
    use crate::transport::http::{HttpClient, HttpSettings};

    const NOW: i64 = 1_000_000;

    #[derive(Debug)]
    struct Fixed;

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            Timestamp::from_millis(NOW)
        }
    }

    async fn read(answer: &Value) -> Result<Tokens, LoginErrorKind> {
        read_with(answer, None, false).await
    }

    async fn read_with(
        answer: &Value,
        proof_key: Option<&ProofKey>,
        must_bind: bool,
    ) -> Result<Tokens, LoginErrorKind> {
        let url = Url::parse("https://issuer.example/token").unwrap();
        let fetcher = Fetcher::new(&HttpClient::new(HttpSettings::default()).unwrap());
        let endpoint = TokenEndpoint {
            fetcher: &fetcher,
            reach: &fetcher.reach(&url, Vec::new()).await,
            url: &url,
            issuer: "https://issuer.example",
            client: &Client {
                id: "client".to_owned(),
                secret: None,
                method: ClientAuth::None,
                redirect_uri: None,
                expires_at: None,
            },
            settings: &AuthSettings::default(),
            proof_key,
            must_bind,
            clock: &Fixed,
        };
        endpoint.read(&Fetched {
            status: 200,
            body: Bytes::from(answer.to_string()),
            challenges: Vec::new(),
            dpop_nonce: None,
        })
    }

    #[tokio::test]
    async fn a_token_expires_when_the_server_says_and_within_400_days() {
        const LONGEST: i64 = 400 * 86_400;
        for (given, expected) in [
            (json!(3600), Some(3600)),
            (json!(59.9), Some(59)),
            (json!(" 3600 "), Some(3600)),
            (json!(0), Some(0)),
            (json!(-5), Some(0)),
            (json!(LONGEST), Some(LONGEST)),
            (json!(LONGEST + 1), Some(LONGEST)),
            (json!(1e300), Some(LONGEST)),
            (json!("soon"), None),
            (json!("inf"), None),
            (Value::Null, None),
        ] {
            let answer = json!({"access_token": "t", "token_type": "Bearer", "expires_in": given});
            let tokens = read(&answer).await.unwrap();
            let expected = expected.map(|seconds| NOW + seconds * 1000);
            assert_eq!(tokens.expires_at, expected, "{given}");
            assert_eq!(tokens.obtained_at, NOW);
        }
    }

    #[tokio::test]
    async fn only_a_token_that_fits_into_a_header_is_accepted() {
        for (token, is_accepted) in [
            ("a!~", true),
            ("", false),
            ("a b", false),
            ("a\nb", false),
            ("a\u{7f}", false),
            ("\u{e9}", false),
        ] {
            let answer = json!({"access_token": token, "refresh_token": ""});
            let tokens = read(&answer).await;
            assert_eq!(tokens.is_ok(), is_accepted, "{token:?}");
            // An empty refresh token is none.
            let refresh = tokens.ok().and_then(|tokens| tokens.refresh_token);
            assert_eq!(refresh, None);
        }
    }

    #[tokio::test]
    async fn a_token_of_an_unknown_type_is_refused() {
        for (kind, problem) in [
            (json!("bearer"), None),
            (json!("BEARER"), None),
            (json!("N_A"), None),
            (Value::Null, None),
            (json!("mac"), Some("a token of an unknown type")),
            (
                json!("DPoP"),
                Some("a token bound to a key that was not sent"),
            ),
        ] {
            let answer = json!({"access_token": "t", "token_type": kind});
            let error = read(&answer).await.err().map(|error| error.to_string());
            let expected =
                problem.map(|problem| format!("https://issuer.example/token returned {problem}"));
            assert_eq!(error, expected, "{kind}");
        }
    }

    #[tokio::test]
    async fn a_token_is_bound_to_the_key_that_was_sent() {
        let key = ProofKey::generate().unwrap();
        for (kind, must_bind, expected) in [
            ("DPoP", false, Some(true)),
            ("DPoP", true, Some(true)),
            ("Bearer", false, Some(false)),
            ("Bearer", true, None),
            ("mac", true, None),
        ] {
            let answer = json!({"access_token": "t", "token_type": kind});
            let tokens = read_with(&answer, Some(&key), must_bind).await;
            let is_bound = tokens.ok().map(|tokens| tokens.is_bound);
            assert_eq!(is_bound, expected, "{kind} {must_bind}");
        }
    }

    #[test]
    fn the_parts_of_basic_credentials_are_encoded() {
        let found = basic("a:b", &Secret::new("c d%"));
        let expected = BASE64_STANDARD.encode("a%3Ab:c+d%25");
        assert_eq!(found.expose(), format!("Basic {expected}"));
    }
}
