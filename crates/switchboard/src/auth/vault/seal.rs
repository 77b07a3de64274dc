//! Authenticated encryption of vault secrets, bound to the secret's name.
//!
//! Uses the primitives of `ring`, which TLS depends on anyway. The `age` crate would add about ninety dependencies, one
//! of them a pre-release, for a single key and a single reader. Each secret has its own key, derived (HKDF-SHA256) from
//! the vault's key and a fresh random salt. A key that is used once needs no nonce counter, which several processes
//! could not share safely. The tag also covers the header and the secret's name.
//!
//! ```text
//! magic 4 | version 1 | key location 1 | reserved 2 | key id 8 | salt 32 | ciphertext and tag
//! ```

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use sha2::{Digest as _, Sha256};

use super::VaultKey;

const MAGIC: [u8; 4] = *b"SWBL";
const VERSION: u8 = 1;
const ID_BYTES: usize = 8;
const SALT_BYTES: usize = 32;
const SALT_AT: usize = HEADER_BYTES - SALT_BYTES;
const ID_AT: usize = SALT_AT - ID_BYTES;
const HEADER_BYTES: usize = 48;
const KEY_BYTES: usize = 32;
/// HKDF info. Another purpose must use another value.
const PURPOSE: &[u8] = b"switchboard logins 1";

/// Where the key of a sealed secret is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyPlace {
    /// A file next to the secrets.
    File,
    /// The system keyring.
    Keyring,
}

/// Master key of a vault.
#[derive(Clone)]
pub(super) struct SealKey([u8; KEY_BYTES]);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnsealError {
    #[error("it is truncated or not a sealed secret")]
    NotSealed,
    #[error("it was written by a newer version of this program")]
    Newer,
    #[error("it was sealed with another key")]
    OtherKey,
    #[error("it is damaged, or belongs to another login")]
    Damaged,
}

/// The system's random number generator failed.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the system's random number generator failed")]
pub(super) struct NoRandomness;

impl SealKey {
    pub(super) fn generate() -> Result<Self, NoRandomness> {
        random().map(Self)
    }

    /// Parses hexadecimal digits; `None` if malformed.
    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let digits = text.trim().as_bytes();
        let mut key = [0; KEY_BYTES];
        if digits.len() != 2 * KEY_BYTES || !digits.iter().all(u8::is_ascii_hexdigit) {
            return None;
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            let pair = std::str::from_utf8(pair).ok()?;
            *byte = u8::from_str_radix(pair, 16).ok()?;
        }
        Some(Self(key))
    }

    pub(super) fn to_hex(&self) -> String {
        use std::fmt::Write as _;
        self.0.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    /// Identifies the key without revealing it.
    fn id(&self) -> [u8; ID_BYTES] {
        let digest = Sha256::new_with_prefix(b"switchboard key id")
            .chain_update(self.0)
            .finalize();
        std::array::from_fn(|index| digest.get(index).copied().unwrap_or_default())
    }

    /// Derives the key of one secret.
    fn derive(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let derived = Salt::new(HKDF_SHA256, salt).extract(&self.0);
        let derived = derived.expand(&[PURPOSE], &CHACHA20_POLY1305).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(derived)))
    }
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("SealKey")
    }
}

/// Encrypts a secret under its name.
pub(super) fn seal(
    key: &SealKey,
    place: KeyPlace,
    name: &VaultKey,
    secret: &[u8],
) -> Result<Vec<u8>, NoRandomness> {
    let salt: [u8; SALT_BYTES] = random()?;
    let which = match place {
        KeyPlace::File => 0,
        KeyPlace::Keyring => 1,
    };
    let mut sealed = Vec::with_capacity(HEADER_BYTES + secret.len() + 16);
    sealed.extend(MAGIC);
    sealed.extend([VERSION, which, 0, 0]);
    sealed.extend(key.id());
    sealed.extend(salt);
    let covered = covered(&sealed, name);
    let mut text = secret.to_vec();
    let once = key.derive(&salt).ok_or(NoRandomness)?;
    once.seal_in_place_append_tag(only_nonce(), Aad::from(covered), &mut text)
        .map_err(|_| NoRandomness)?;
    sealed.append(&mut text);
    Ok(sealed)
}

/// Reads from the header where the key of a sealed secret is stored.
pub(super) fn place(sealed: &[u8]) -> Result<KeyPlace, UnsealError> {
    let header = sealed.get(..HEADER_BYTES).ok_or(UnsealError::NotSealed)?;
    if !header.starts_with(&MAGIC) {
        return Err(UnsealError::NotSealed);
    }
    match header.get(MAGIC.len()..MAGIC.len() + 4) {
        Some([VERSION, 0, 0, 0]) => Ok(KeyPlace::File),
        Some([VERSION, 1, 0, 0]) => Ok(KeyPlace::Keyring),
        Some([VERSION, ..]) | None => Err(UnsealError::Damaged),
        Some(_) => Err(UnsealError::Newer),
    }
}

/// Decrypts the secret of that name.
pub(super) fn unseal(
    key: &SealKey,
    name: &VaultKey,
    mut sealed: Vec<u8>,
) -> Result<String, UnsealError> {
    place(&sealed)?;
    let header = sealed.get(..HEADER_BYTES).ok_or(UnsealError::NotSealed)?;
    if header.get(ID_AT..SALT_AT) != Some(&key.id()[..]) {
        return Err(UnsealError::OtherKey);
    }
    let salt = header.get(SALT_AT..).ok_or(UnsealError::NotSealed)?;
    let once = key.derive(salt).ok_or(UnsealError::Damaged)?;
    let covered = covered(header, name);
    let mut text = sealed.split_off(HEADER_BYTES);
    let length = once
        .open_in_place(only_nonce(), Aad::from(covered), &mut text)
        .map_err(|_| UnsealError::Damaged)?
        .len();
    text.truncate(length);
    String::from_utf8(text).map_err(|_| UnsealError::Damaged)
}

fn covered(header: &[u8], name: &VaultKey) -> Vec<u8> {
    [header, name.as_str().as_bytes()].concat()
}

/// Each derived key is used once, so a constant nonce is safe.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; 12])
}

fn random<const BYTES: usize>() -> Result<[u8; BYTES], NoRandomness> {
    let mut bytes = [0; BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map(|()| bytes).map_err(|_| NoRandomness)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> (SealKey, VaultKey, Vec<u8>) {
        let (key, name) = (SealKey::generate().unwrap(), VaultKey::of(&["a", "b"]));
        let sealed = seal(&key, KeyPlace::File, &name, b"canary").unwrap();
        (key, name, sealed)
    }

    #[test]
    fn a_secret_comes_back_and_cannot_be_seen() {
        let (key, name, first) = sealed();
        assert!(!first.windows(6).any(|window| window == b"canary"));
        assert_eq!(place(&first), Ok(KeyPlace::File));
        assert_eq!(unseal(&key, &name, first.clone()), Ok("canary".to_owned()));
        // A random salt makes each ciphertext different.
        let second = seal(&key, KeyPlace::File, &name, b"canary").unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn no_byte_can_be_changed_and_none_left_out() {
        let (key, name, sealed) = sealed();
        for index in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[index] ^= 1;
            assert!(unseal(&key, &name, changed).is_err(), "byte {index}");
            let cut = sealed[..index].to_vec();
            assert!(unseal(&key, &name, cut).is_err(), "cut at {index}");
        }
    }

    #[test]
    fn each_error_says_what_it_is() {
        let (key, name, sealed) = sealed();
        let check = |key: &SealKey, name: &VaultKey, sealed: Vec<u8>, expected| {
            assert_eq!(unseal(key, name, sealed), Err(expected));
        };
        let other = SealKey::generate().unwrap();
        check(&other, &name, sealed.clone(), UnsealError::OtherKey);
        let other = VaultKey::of(&["a", "c"]);
        check(&key, &other, sealed.clone(), UnsealError::Damaged);
        let mut newer = sealed.clone();
        newer[4] = 2;
        check(&key, &name, newer, UnsealError::Newer);
        check(&key, &name, Vec::new(), UnsealError::NotSealed);
        check(&key, &name, vec![b'{'; 200], UnsealError::NotSealed);
    }

    #[test]
    fn a_key_survives_as_text() {
        let key = SealKey::generate().unwrap();
        let text = key.to_hex();
        assert_eq!(SealKey::from_hex(&format!("{text}\n")).unwrap().0, key.0);
        for bad in [
            "",
            "zz",
            &"+1".repeat(32),
            &text[1..],
            &format!("{text}0"),
            &"é".repeat(32),
        ] {
            assert!(SealKey::from_hex(bad).is_none(), "{bad}");
        }
        assert_eq!(format!("{key:?}"), "SealKey");
    }
}
