//! Access tokens as JSON Web Tokens (RFC 9068): their form, signature and claims.
//!
//! Three algorithms are accepted, each only with a key of its own type, so that a token cannot choose how it is checked.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::AccessTokenProblem;
use super::keys::PublicKey;

/// Longest accepted token.
const MAX_LENGTH: usize = 16 * 1024;
/// Longest accepted subject, in bytes.
const MAX_SUBJECT: usize = 256;
/// Seconds by which the clocks of the servers may differ.
const LEEWAY: u64 = 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Rs256,
    Es256,
    EdDsa,
}

impl Algorithm {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        match name {
            "RS256" => Some(Self::Rs256),
            "ES256" => Some(Self::Es256),
            "EdDSA" | "Ed25519" => Some(Self::EdDsa),
            _ => None,
        }
    }
}

/// A token whose signature has not been checked.
#[derive(Debug)]
pub(super) struct JsonWebToken<'t> {
    pub(super) header: Header,
    /// The bytes that are signed.
    signed: &'t [u8],
    payload: Vec<u8>,
    signature: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) algorithm: Algorithm,
    pub(super) key_id: Option<String>,
}

#[derive(Deserialize)]
struct WireHeader {
    alg: String,
    kid: Option<String>,
    typ: Option<String>,
    crit: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct WireClaims {
    iss: Option<String>,
    sub: Option<String>,
    aud: Option<Audiences>,
    exp: Option<f64>,
    nbf: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audiences {
    One(String),
    Several(Vec<String>),
}

/// What the claims of a token must be.
pub(super) struct Expected<'e> {
    pub(super) issuer: &'e str,
    pub(super) audience: &'e str,
    /// Seconds since the Unix epoch.
    pub(super) now: u64,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Claims {
    pub(super) subject: Arc<str>,
    /// Seconds since the Unix epoch, with the leeway for clocks.
    pub(super) expires: u64,
}

impl<'t> JsonWebToken<'t> {
    pub(super) fn parse(text: &'t [u8]) -> Result<Self, &'static str> {
        const FORM: &str = "not an access token in the form of a JWT";
        if text.len() > MAX_LENGTH {
            return Err("the access token is too long");
        }
        let mut parts = text.split(|byte| *byte == b'.');
        let (Some(header), Some(payload), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(FORM);
        };
        let signed = text.get(..=header.len() + payload.len()).ok_or(FORM)?;
        let decoded = |part: &[u8]| BASE64_URL_SAFE_NO_PAD.decode(part).map_err(|_| FORM);
        let header: WireHeader = serde_json::from_slice(&decoded(header)?).map_err(|_| FORM)?;
        if header.crit.is_some() {
            return Err("the access token requires an extension that is not supported");
        }
        let is_type = |kind: &str| {
            let kind = kind.to_ascii_lowercase();
            ["jwt", "at+jwt", "application/at+jwt"].contains(&kind.as_str())
        };
        if !header.typ.as_deref().is_none_or(is_type) {
            return Err("the token is not an access token");
        }
        let algorithm = Algorithm::from_name(&header.alg);
        Ok(Self {
            header: Header {
                algorithm: algorithm.ok_or("the algorithm must be RS256, ES256 or EdDSA")?,
                key_id: header.kid,
            },
            signed,
            payload: decoded(payload)?,
            signature: decoded(signature)?,
        })
    }

    pub(super) fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.algorithm() == self.header.algorithm && key.verifies(self.signed, &self.signature)
    }

    /// The claims, if they are as expected. Not to be trusted before the signature is checked.
    pub(super) fn claims(&self, expected: &Expected<'_>) -> Result<Claims, AccessTokenProblem> {
        use AccessTokenProblem::Invalid;
        let claims: WireClaims = serde_json::from_slice(&self.payload)
            .map_err(|_| Invalid("the claims of the access token are malformed"))?;
        if claims.iss.as_deref() != Some(expected.issuer) {
            return Err(Invalid("the access token is of another issuer"));
        }
        let is_audience = match &claims.aud {
            Some(Audiences::One(one)) => one == expected.audience,
            Some(Audiences::Several(all)) => all.iter().any(|one| one == expected.audience),
            None => false,
        };
        if !is_audience {
            return Err(Invalid("the access token is for another audience"));
        }
        let expires = claims.exp.and_then(seconds);
        let expires = expires.ok_or(Invalid("the access token has no expiry"))?;
        let expires = expires.saturating_add(LEEWAY);
        if expires <= expected.now {
            return Err(AccessTokenProblem::Expired);
        }
        if let Some(start) = claims.nbf {
            let start = seconds(start).ok_or(Invalid("the access token is not valid yet"))?;
            if start > expected.now.saturating_add(LEEWAY) {
                return Err(Invalid("the access token is not valid yet"));
            }
        }
        let is_valid = |subject: &String| {
            (1..=MAX_SUBJECT).contains(&subject.len()) && !subject.contains(char::is_control)
        };
        let subject = claims.sub.filter(is_valid);
        let subject = subject.ok_or(Invalid("the access token has no valid subject"))?;
        Ok(Claims {
            subject: subject.into(),
            expires,
        })
    }
}

/// Whole seconds of a numeric date, which may have a fraction.
fn seconds(date: f64) -> Option<u64> {
    let date = Duration::try_from_secs_f64(date).ok()?;
    Some(date.as_secs())
}
