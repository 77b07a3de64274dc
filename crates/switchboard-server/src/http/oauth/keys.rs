//! Public keys of an authorization server, from its JWK set (RFC 7517).

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use serde::Deserialize;
use serde_json::Value;

use super::jwt::{Algorithm, Header};

/// Most keys of a set that are used.
const MAX_KEYS: usize = 64;

#[derive(Debug, Default)]
pub(super) struct KeySet(Vec<NamedKey>);

#[derive(Debug)]
struct NamedKey {
    id: Option<String>,
    key: PublicKey,
}

#[derive(Debug)]
pub(super) enum PublicKey {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    /// An uncompressed point on the curve P-256.
    P256(Vec<u8>),
    Ed25519(Vec<u8>),
}

#[derive(Deserialize)]
struct WireSet {
    keys: Vec<Value>,
}

#[derive(Deserialize)]
struct WireKey {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl KeySet {
    /// Reads a set. Keys of other types, for other purposes or with other algorithms are left out.
    pub(super) fn parse(document: &str) -> Result<Self, String> {
        let set: WireSet = serde_json::from_str(document)
            .map_err(|error| format!("not a valid key set: {error}"))?;
        let keys = set.keys.into_iter().take(MAX_KEYS);
        let keys: Vec<_> = keys
            .filter_map(|key| NamedKey::read(serde_json::from_value(key).ok()?))
            .collect();
        if keys.is_empty() {
            return Err("the key set has no key for RS256, ES256 or EdDSA".to_owned());
        }
        Ok(Self(keys))
    }

    /// Whether a key may have signed a token with this header.
    pub(super) fn has(&self, header: &Header) -> bool {
        self.candidates(header).next().is_some()
    }

    /// The keys that may have signed a token with this header: the one that it names, or all of the right type.
    pub(super) fn candidates<'k>(
        &'k self,
        header: &'k Header,
    ) -> impl Iterator<Item = &'k PublicKey> {
        let keys = self.0.iter().filter(|named| {
            let is_named = header.key_id.is_none() || named.id == header.key_id;
            is_named && named.key.algorithm() == header.algorithm
        });
        keys.map(|named| &named.key)
    }
}

impl NamedKey {
    fn read(key: WireKey) -> Option<Self> {
        if key.usage.is_some_and(|usage| usage != "sig") {
            return None;
        }
        let decoded = |part: Option<String>| BASE64_URL_SAFE_NO_PAD.decode(part?).ok();
        let public = match (key.kty.as_str(), key.crv.as_deref()) {
            ("RSA", _) => PublicKey::Rsa {
                modulus: decoded(key.n)?,
                exponent: decoded(key.e)?,
            },
            ("EC", Some("P-256")) => {
                let (x, y) = (decoded(key.x)?, decoded(key.y)?);
                let is_point = x.len() == 32 && y.len() == 32;
                is_point.then(|| PublicKey::P256([vec![4], x, y].concat()))?
            }
            ("OKP", Some("Ed25519")) => PublicKey::Ed25519(decoded(key.x)?),
            _ => return None,
        };
        let is_meant = |name: &String| Algorithm::from_name(name) == Some(public.algorithm());
        if !key.alg.as_ref().is_none_or(is_meant) {
            return None;
        }
        Some(Self {
            id: key.kid,
            key: public,
        })
    }
}

impl PublicKey {
    pub(super) fn algorithm(&self) -> Algorithm {
        match self {
            Self::Rsa { .. } => Algorithm::Rs256,
            Self::P256(_) => Algorithm::Es256,
            Self::Ed25519(_) => Algorithm::EdDsa,
        }
    }

    pub(super) fn verifies(&self, signed: &[u8], signature: &[u8]) -> bool {
        let verified = match self {
            Self::Rsa { modulus, exponent } => {
                // Leading zeros are not allowed in what `ring` reads.
                let trimmed = |number: &'_ [u8]| {
                    let zeros = number.iter().take_while(|byte| **byte == 0).count();
                    number.get(zeros..).unwrap_or_default().to_vec()
                };
                let key = RsaPublicKeyComponents {
                    n: trimmed(modulus),
                    e: trimmed(exponent),
                };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, signed, signature)
            }
            Self::P256(point) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(signed, signature)
            }
            Self::Ed25519(bytes) => {
                let key = UnparsedPublicKey::new(&ED25519, bytes);
                key.verify(signed, signature)
            }
        };
        verified.is_ok()
    }
}
