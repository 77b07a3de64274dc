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

#[cfg(test)]
mod tests {
    use base64::prelude::BASE64_STANDARD;

    use super::*;

    /// RSA keys made for this test, of 2048 and of 1024 bits.
    const RSA: &str = concat!(
        "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCjVoNSsZqjVVcGtEAjpkavOtufG2esWVY0ocVPqlcs1eztQGYW",
        "xPbkLoydV+Qvhe9t0g5m/qO1x6CSZZZvTo/Tj2vbmHN8v16YUdsPoalQrPickO3odx6/d4mGv6Oiz4vHjpRNnBBPhsaNfR3J2Fz5",
        "vFSqZ06G1GZ9q0wb4ZO8SqSFNlgYIMELO9mmUGBlaWsnMMX1yTeZpHraxx5Ii2gzwN0Ff0B/yBJZkBHMLfptyouTqnXlbGhvokB4",
        "vqNNisxDKXiBqK8QrGuAUkyiPsv33yv4xJn6kWQM2DHYsKhnPyo4yVoYFctsVe46bXnZebYBeSK+jLHbPvVYY9nQ+eaBAgMBAAEC",
        "ggEAAd7XQSashStQhFCjHWVlkNMlObS4IrahMJgbqNZkCizm+i6PHLqjsyg/Tvv3Ln4jqEfMB2zqFgZTtel46AxnxD3zt7+OrwKI",
        "BEmHry2kQTrB3BUizFM05G9rgUIHjzE+QgpFc4AShb6e3nbs1Odn5So9c/gb45piFBVWmUkjhnf1qfL0AMhklkOpl4rwQNncGi9m",
        "NK1t6H862uVlYW252pL6fXRNDXea5CR9yUUHpPun1CGhEeld38NxGuRaxyqdaTsTaxJVkYNQkE18hgquiuYO3BUakl3LIHOIivaE",
        "eSuqrhcmPovcYOFTq9uuPw3AcyP2QbYufvxj//2cgqY5gwKBgQDZ+ZNk93oMgWBLakknr+JJuFkfCF6807Bd447v9dV84LLgJIiX",
        "5ScYTuek0Q95gwMu63QgHMgGRuGYzhHj5aq4Eb43vaPB2bzMJ1GXRbOKqguS0PxUdWyGNGagl64g6h5JTibrJmOzVwiAE94tLlFM",
        "3BHtuC2QgEwy4TzlwXnIkwKBgQC/1O80BxqOHEcNkUtXev1W+KYO8ETtwEc5EGAqoXhA1vMEv0Pqr+TntUA9/WYqRZTFnqz4pd70",
        "ylQ6ZiBTGPIhjH+rI/RV0NCOQJi6+uroE83hw1bNHrAKRryc2lEBXrjkaRKLBMMBJZsDqZhNnKlY+vcwXFnxX2vbaBsDqZmlGwKB",
        "gDiqLcwInbzUgUD5r2zWx1/cwaZUmbRC3814k7cD1GzzSO0F8lBybNhf4s4w3vH6wgAXi4exk7o2AP2lTHdPRDM3wZhh/0ksnm0A",
        "J7DImOUKUZnoJECcigrVYnyLEeRSmG78Fxf4UeDUVkxdXdum99GgQDTpNUckYyqy7Q7ZXhxrAoGBAIp9HkeQTVKFBaK83wiDyPuN",
        "vMySFyERLBn9QX/lXFxrEby+nDiEzZud1YgrNSOVYicdO8CydviATThv3CxBmSQxO0YBSfbeLoJUDi8G0KnFCmBPVo309qAkmywd",
        "zFdR2+dCF9n3ERT14ihNup9lVzjeza/DLEe+XK5kRQRq33o7AoGAa9e4WaqOAfXwrGpVJvX5l3gSeE1ePnjs+YX/qVt08BZVp22a",
        "ujcfv30A8grlaYcMP4jnmzmO6JI2LRcbz/wjzJn3LQaUj2rnNW+FF50u2VSeDNl77vKcfWm8D4h0Uk9DAmbpPtSteM6vVDlmrtAA",
        "Q42/wK/pkJ55gJFXJUJKuYI=",
    );
    const SHORT_RSA: &str = concat!(
        "MIICdgIBADANBgkqhkiG9w0BAQEFAASCAmAwggJcAgEAAoGBAMpkbo0BVAqA6BWu4xUL3RPPRwkURu7zRizgdMKWXyTfTyuh/oQa",
        "hAN/LWed1pDNDbAIbQgUt+JwEFyy/OKmH69cQkdWc1GDv5cmKjkAofepHvjz97Fbn89hc+86qJWOSlRRmLgQfV2aT4wulNU0KcCp",
        "oKTY4gV1yjB704Bg9sr7AgMBAAECgYA8cH9/Bj2FoXctOnu/xjov9z88W9zO8MEtF55mmacyCKnI2uh5pL11md4CSmVP+pwyzGFa",
        "/2zmZxbLx/uy528gVAdolmUCujvgVIbr9KpYx3sND/ICDDfhof1qIYb6Iz5AlWikpzr2Xiy2fPc3F37nBNJraBmBt0GbwGN5G7fF",
        "EQJBAOpufk35QPbB3qOn3q+uHRGUHVV77qqBlgkFrSlqIA+jricp/BS7eFJmkZyxw4oB35SBTQB/VM85mXbuiiYNsxkCQQDdA1M7",
        "ZEVT4u/6sLQ8zfQgpGWr6pDxhxsk4SgC+L5t3Q2wnDObYn27thziajd/WzAHBA3XdTpGRkC9WpAU1aUzAkAL5bunPWUcoM4pxBU7",
        "GT0EbV3nvrhoEteIca9OEMK7yHTILAtNCg6bL/Vn3GWuFVZBdSZxRgUJ10SAkq6UK9HRAkEAvuQpVonzq1G+jttiwYXtjugPfN57",
        "1HEqS79BTNfFuqSMN3eix1nZWXEhH5o4VwLOx7CDuA3jiGETd7kp6yTgqwJAUDdIatawDAlUhoK5Qb/kB2NRye+0PMWdfvzXXNzv",
        "wVDkAodC0h6+OcRbb64bvDDP+k22lco/p4zSP+dfYNATfQ==",
    );

    fn pem(base64: &str) -> Secret {
        let kind = "PRIVATE KEY";
        Secret::new(format!(
            "-----BEGIN {kind}-----\n{base64}\n-----END {kind}-----\n"
        ))
    }

    fn assertion(key: &Secret, millis: i64) -> Result<(Value, Value), LoginErrorKind> {
        let now = Timestamp::from_millis(millis);
        let signed = client_assertion(key, None, "client", "https://issuer.example", now)?;
        let parts: Vec<Value> = signed
            .expose()
            .split('.')
            .take(2)
            .map(|part| {
                let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).unwrap();
                serde_json::from_slice(&bytes).unwrap()
            })
            .collect();
        Ok((parts[0].clone(), parts[1].clone()))
    }

    #[test]
    fn an_assertion_is_signed_by_the_kind_of_its_key_and_short_lived() {
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let p384 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random);
        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random);
        for (key, algorithm) in [
            (BASE64_STANDARD.encode(p256.unwrap()), "ES256"),
            (BASE64_STANDARD.encode(p384.unwrap()), "ES384"),
            (BASE64_STANDARD.encode(ed25519.unwrap()), "EdDSA"),
            (RSA.to_owned(), "RS256"),
        ] {
            let (header, claims) = assertion(&pem(&key), 1_700_000_123_987).unwrap();
            assert_eq!(header, json!({"alg": algorithm, "typ": "JWT"}));
            assert_eq!(claims["iat"], 1_700_000_123);
            assert_eq!(claims["exp"], 1_700_000_423);
        }
    }

    #[test]
    fn a_key_that_is_short_or_of_another_kind_is_refused() {
        let other = BASE64_STANDARD.encode([0x30, 3, 2, 1, 0]);
        for key in [pem(SHORT_RSA), pem(&other), Secret::new("no key")] {
            let found = assertion(&key, 0);
            assert!(matches!(found, Err(LoginErrorKind::BadKey(_))));
        }
    }

    #[test]
    fn a_proof_is_for_one_request_and_one_token() {
        let key = ProofKey::generate().unwrap();
        let url = Url::parse("https://h/mcp?query#part").unwrap();
        let token = Secret::new("token");
        let proof = key.proof(&ProofOf {
            method: "POST",
            url: &url,
            nonce: Some("n"),
            access_token: Some(&token),
            now: Timestamp::from_millis(1_700_000_123_987),
        });
        let proof = proof.unwrap();
        let claims = proof.expose().split('.').nth(1).unwrap();
        let claims = BASE64_URL_SAFE_NO_PAD.decode(claims).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["htm"], "POST");
        assert_eq!(claims["htu"], "https://h/mcp");
        assert_eq!(claims["iat"], 1_700_000_123);
        assert_eq!(claims["nonce"], "n");
        assert_eq!(claims["ath"], digest("token"));
        assert_eq!(format!("{key:?}"), "ProofKey");
    }
}
