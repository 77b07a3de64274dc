//! Verifies proofs of possession (RFC 9449), independently of the code under test.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// A valid proof.
pub(crate) struct Verified {
    pub(crate) id: String,
    pub(crate) nonce: Option<String>,
    pub(crate) thumbprint: String,
}

pub(crate) fn verify(
    proof: &str,
    method: &str,
    url: &str,
    token: Option<&str>,
) -> Result<Verified, &'static str> {
    let (signed, signature) = proof.rsplit_once('.').ok_or("no token")?;
    let (header, claims) = signed.split_once('.').ok_or("no token")?;
    let (header, claims) = (part(header)?, part(claims)?);
    if header["typ"] != "dpop+jwt" || header["alg"] != "ES256" {
        return Err("another kind of token");
    }
    let jwk = &header["jwk"];
    let members: Vec<&String> = jwk.as_object().ok_or("no key")?.keys().collect();
    if members != ["crv", "kty", "x", "y"] {
        return Err("a key with other members");
    }
    let coordinate = |name: &str| bytes(jwk[name].as_str().unwrap_or_default());
    let point = [&[4], &*coordinate("x")?, &*coordinate("y")?].concat();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &bytes(signature)?)
        .map_err(|_| "the signature is wrong")?;
    if claims["htm"] != method || claims["htu"] != url {
        return Err("for another request");
    }
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.map_or(0, |since| since.as_secs());
    if claims["iat"]
        .as_u64()
        .is_none_or(|made| made.abs_diff(now) > 60)
    {
        return Err("of another time");
    }
    let expected = token.map(digest);
    if claims["ath"].as_str() != expected.as_deref() {
        return Err("for another token");
    }
    let canonical = format!(
        r#"{{"crv":"P-256","kty":"EC","x":{},"y":{}}}"#,
        jwk["x"], jwk["y"]
    );
    Ok(Verified {
        id: claims["jti"].as_str().ok_or("no id")?.to_owned(),
        nonce: claims["nonce"].as_str().map(str::to_owned),
        thumbprint: digest(&canonical),
    })
}

fn part(text: &str) -> Result<Value, &'static str> {
    serde_json::from_slice(&bytes(text)?).map_err(|_| "no JSON")
}

fn bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    let decoded = BASE64_URL_SAFE_NO_PAD.decode(text);
    decoded.map_err(|_| "no base64")
}

fn digest(text: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(text.as_bytes()))
}
