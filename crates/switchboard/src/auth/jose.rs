//! Signs JWTs (JWS): client assertions and `DPoP` proofs.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use switchboard_config::secret::Secret;
use switchboard_store::Timestamp;
use url::Url;

use super::error::LoginErrorKind;

/// Lifetime of a client assertion, with room for clock skew.
const ASSERTION_SECONDS: i64 = 300;
/// Minimum RSA modulus size.
const MIN_RSA_BYTES: usize = 256;

/// Generates 256 random bits, base64url-encoded.
pub(super) fn random_text() -> Result<Secret, LoginErrorKind> {
    let mut bytes = [0_u8; 32];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| LoginErrorKind::BadKey("the system's random number generator failed"))?;
    Ok(Secret::new(base64url(&bytes)))
}

/// SHA-256 digest, base64url-encoded, for PKCE and `DPoP`.
pub(super) fn digest(text: &str) -> String {
    base64url(&Sha256::digest(text.as_bytes()))
}

/// Creates a client assertion (RFC 7523).
pub(super) fn client_assertion(
    key: &Secret,
    key_id: Option<&str>,
    client: &str,
    audience: &str,
    now: Timestamp,
) -> Result<Secret, LoginErrorKind> {
    let key = SigningKey::from_pem(key.expose())?;
    let seconds = now.as_millis() / 1000;
    let mut header = json!({"alg": key.algorithm(), "typ": "JWT"});
    if let Some(key_id) = key_id {
        header["kid"] = Value::from(key_id);
    }
    let claims = json!({
        "iss": client,
        "sub": client,
        "aud": audience,
        "jti": random_text()?.expose(),
        "iat": seconds,
        "exp": seconds + ASSERTION_SECONDS,
    });
    key.sign(&header, &claims)
}

/// `DPoP` key that tokens are bound to.
#[derive(Clone)]
pub(super) struct ProofKey(Secret);

/// The request that a `DPoP` proof covers.
pub(super) struct ProofOf<'p> {
    pub(super) method: &'p str,
    pub(super) url: &'p Url,
    pub(super) nonce: Option<&'p str>,
    pub(super) access_token: Option<&'p Secret>,
    pub(super) now: Timestamp,
}

impl ProofKey {
    pub(super) fn generate() -> Result<Self, LoginErrorKind> {
        let document =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
                .map_err(|_| LoginErrorKind::BadKey("it cannot be generated"))?;
        Ok(Self(Secret::new(base64url(document.as_ref()))))
    }

    /// Serialized key for the vault.
    pub(super) fn stored(&self) -> &Secret {
        &self.0
    }

    pub(super) fn from_stored(text: Secret) -> Self {
        Self(text)
    }

    /// Creates the `DPoP` proof for one request.
    pub(super) fn proof(&self, of: &ProofOf<'_>) -> Result<Secret, LoginErrorKind> {
        let broken = LoginErrorKind::BadKey("the stored copy is damaged");
        let bytes = BASE64_URL_SAFE_NO_PAD
            .decode(self.0.expose())
            .map_err(|_| broken.clone())?;
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, &bytes, &SystemRandom::new())
            .map_err(|_| broken.clone())?;
        let point = pair.public_key().as_ref();
        let (Some(x), Some(y)) = (point.get(1..33), point.get(33..65)) else {
            return Err(broken);
        };
        let header = json!({
            "typ": "dpop+jwt",
            "alg": "ES256",
            "jwk": {"kty": "EC", "crv": "P-256", "x": base64url(x), "y": base64url(y)},
        });
        let mut place = of.url.clone();
        place.set_query(None);
        place.set_fragment(None);
        let mut claims = json!({
            "jti": random_text()?.expose(),
            "htm": of.method,
            "htu": place.as_str(),
            "iat": of.now.as_millis() / 1000,
        });
        if let Some(token) = of.access_token {
            claims["ath"] = Value::from(digest(token.expose()));
        }
        if let Some(nonce) = of.nonce {
            claims["nonce"] = Value::from(nonce);
        }
        SigningKey::P256(pair).sign(&header, &claims)
    }
}

impl std::fmt::Debug for ProofKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ProofKey")
    }
}

enum SigningKey {
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

impl SigningKey {
    /// Parses a PEM key and detects its type.
    fn from_pem(text: &str) -> Result<Self, LoginErrorKind> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes())
            .map_err(|_| LoginErrorKind::BadKey("it is not PKCS #8 in PEM"))?;
        let bytes = der.secret_pkcs8_der();
        let random = SystemRandom::new();
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, bytes, &random)
        {
            return Ok(Self::P256(pair));
        }
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, bytes, &random)
        {
            return Ok(Self::P384(pair));
        }
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes) {
            return Ok(Self::Ed25519(pair));
        }
        match RsaKeyPair::from_pkcs8(bytes) {
            Ok(pair) if pair.public().modulus_len() >= MIN_RSA_BYTES => {
                Ok(Self::Rsa(Box::new(pair)))
            }
            Ok(_) => Err(LoginErrorKind::BadKey("it is too short")),
            Err(_) => Err(LoginErrorKind::BadKey("its type is not supported")),
        }
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::P256(_) => "ES256",
            Self::P384(_) => "ES384",
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> Result<Secret, LoginErrorKind> {
        let part = |value: &Value| base64url(value.to_string().as_bytes());
        let mut text = format!("{}.{}", part(header), part(claims));
        let failed = |_| LoginErrorKind::BadKey("signing failed");
        let random = SystemRandom::new();
        let signature = match self {
            Self::P256(pair) | Self::P384(pair) => {
                let signature = pair.sign(&random, text.as_bytes()).map_err(failed)?;
                base64url(signature.as_ref())
            }
            Self::Ed25519(pair) => base64url(pair.sign(text.as_bytes()).as_ref()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public().modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
                    .map_err(failed)?;
                base64url(&signature)
            }
        };
        text.push('.');
        text.push_str(&signature);
        Ok(Secret::new(text))
    }
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}
