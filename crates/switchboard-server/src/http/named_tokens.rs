//! Named tokens in a store: created, listed and revoked by one process, checked by another.
//!
//! Only the SHA-256 hash of a token is stored. The time of the last use is a record of its own, so that a server that
//! writes it never undoes a revocation.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use switchboard_store::{
    ErrorKind, Expected, Key, Record, Revision, Space, Store, StoreError, Timestamp, Write,
};

use super::token::{Token, TokenError};

/// The tokens, by name.
const TOKENS: Space = Space::new("gateway-tokens");
/// When each token was last used, by name.
const USES: Space = Space::new("gateway-token-uses");
/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// The name of the token in the server's own token file.
pub const DEFAULT_TOKEN: &str = "default";

/// The name of a token: 1 to 64 letters, digits, dots, hyphens and underscores, starting with a letter or a digit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TokenName(Arc<str>);

impl TokenName {
    /// Returns `None` if the text is not a valid name.
    pub fn new(text: &str) -> Option<Self> {
        let is_valid = (1..=MAX_NAME).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_alphanumeric())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        is_valid.then(|| Self(text.into()))
    }

    /// The name of the token in the server's own token file.
    pub fn default_token() -> Self {
        Self(DEFAULT_TOKEN.into())
    }

    /// The text as passed to [`TokenName::new`].
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for TokenName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewToken {
    /// Unique among the tokens of the store.
    pub name: TokenName,
    /// The only profile that the token may be used for; `None` for any.
    pub profile: Option<String>,
    /// `None` if the token does not expire.
    pub expires_in: Option<Duration>,
}

impl NewToken {
    /// A token for every profile, which does not expire.
    pub fn new(name: TokenName) -> Self {
        Self {
            name,
            profile: None,
            expires_in: None,
        }
    }
}

/// A token as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TokenInfo {
    /// Unique among the tokens of the store.
    pub name: TokenName,
    /// The only profile that the token may be used for; `None` for any.
    pub profile: Option<String>,
    /// When it was created.
    pub created: Timestamp,
    /// `None` if the token does not expire. A past time if it has expired.
    pub expires: Option<Timestamp>,
    /// Exact to the minute; `None` if never.
    pub last_used: Option<Timestamp>,
}

/// Why a token could not be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CreateTokenError {
    /// A token of this name exists.
    #[error("a token named `{0}` already exists")]
    Exists(TokenName),
    /// No token could be generated.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The tokens of a store. Cheap to clone.
#[derive(Debug, Clone)]
pub struct NamedTokens {
    store: Arc<dyn Store>,
}

/// A token as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct StoredToken {
    #[serde(with = "hex")]
    pub(super) sha256: [u8; 32],
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) profile: Option<String>,
    /// Milliseconds since the Unix epoch, as all times here.
    created: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
}

impl StoredToken {
    pub(super) fn expires(&self) -> Option<Timestamp> {
        self.expires.map(Timestamp::from_millis)
    }
}

/// A token as read from the store.
pub(super) struct ReadToken {
    pub(super) name: TokenName,
    /// Identifies the creation of the token: one that is revoked and created again has another.
    pub(super) revision: Revision,
    pub(super) token: StoredToken,
}

impl NamedTokens {
    /// The tokens of this store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Creates a token and returns it. It cannot be read again.
    pub async fn create(&self, new: &NewToken) -> Result<Token, CreateTokenError> {
        let token = Token::generate()?;
        let created = Timestamp::from(SystemTime::now());
        let expires = new.expires_in.map(|length| created.after(length));
        let stored = StoredToken {
            sha256: *token.digest(),
            profile: new.profile.clone(),
            created: created.as_millis(),
            expires: expires.map(Timestamp::as_millis),
        };
        let key = key(&new.name)?;
        let value = serde_json::to_vec(&stored).map_err(|error| damaged(&new.name, &error))?;
        // A token of the same name that was revoked may have been used.
        self.store.remove(USES, &key, Expected::Anything).await?;
        let write = Write::new(value).expecting(Expected::Absent);
        match self.store.put(TOKENS, &key, write).await {
            Ok(_) => Ok(token),
            Err(StoreError {
                kind: ErrorKind::Conflict { .. },
                ..
            }) => Err(CreateTokenError::Exists(new.name.clone())),
            Err(error) => Err(error.into()),
        }
    }

    /// All tokens by name, including expired ones.
    pub async fn list(&self) -> Result<Vec<TokenInfo>, StoreError> {
        let mut tokens = Vec::new();
        for ReadToken { name, token, .. } in self.read().await? {
            tokens.push(TokenInfo {
                last_used: self.last_used(&name).await?,
                created: Timestamp::from_millis(token.created),
                expires: token.expires(),
                profile: token.profile,
                name,
            });
        }
        Ok(tokens)
    }

    /// Revokes a token; returns whether it existed. Running servers refuse it within a second.
    pub async fn revoke(&self, name: &TokenName) -> Result<bool, StoreError> {
        let key = key(name)?;
        let existed = self.store.remove(TOKENS, &key, Expected::Anything).await?;
        self.store.remove(USES, &key, Expected::Anything).await?;
        Ok(existed)
    }

    /// Describes the token in the server's own token file, which was created at this time.
    pub async fn default_token(&self, created: Timestamp) -> Result<TokenInfo, StoreError> {
        let name = TokenName::default_token();
        Ok(TokenInfo {
            last_used: self.last_used(&name).await?,
            name,
            profile: None,
            created,
            expires: None,
        })
    }

    async fn last_used(&self, name: &TokenName) -> Result<Option<Timestamp>, StoreError> {
        let record = self.store.get(USES, &key(name)?).await?;
        Ok(record.map(|record| record.written_at))
    }

    pub(super) async fn record_use(&self, name: &TokenName) -> Result<(), StoreError> {
        let write = Write::new("");
        self.store.put(USES, &key(name)?, write).await.map(drop)
    }

    /// All tokens, from one snapshot of each page. A damaged record is an error: what protects must not look absent.
    pub(super) async fn read(&self) -> Result<Vec<ReadToken>, StoreError> {
        let mut tokens = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.list(TOKENS, after.as_ref()).await?;
            let keys: Vec<Key> = page.entries.into_iter().map(|entry| entry.key).collect();
            let records = self.store.get_many(TOKENS, &keys).await?;
            for (key, record) in keys.iter().zip(records) {
                // Revoked since it was listed.
                let Some(record) = record else { continue };
                tokens.push(decode(key, &record)?);
            }
            after = keys.into_iter().next_back();
            if !page.more || after.is_none() {
                return Ok(tokens);
            }
        }
    }
}

fn decode(key: &Key, record: &Record) -> Result<ReadToken, StoreError> {
    let name = TokenName::new(key.as_str()).ok_or_else(|| {
        StoreError::new(ErrorKind::Corrupt, "a token has an invalid name".to_owned())
    })?;
    let token = serde_json::from_slice(&record.value).map_err(|error| damaged(&name, &error))?;
    Ok(ReadToken {
        name,
        revision: record.revision,
        token,
    })
}

fn damaged(name: &TokenName, error: &serde_json::Error) -> StoreError {
    StoreError::new(ErrorKind::Corrupt, format!("the token `{name}`: {error}"))
}

fn key(name: &TokenName) -> Result<Key, StoreError> {
    Key::new(name.shared())
}

/// Hashes as 64 hexadecimal digits.
mod hex {
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    use crate::http::token::hexadecimal;

    pub(super) fn serialize<S: Serializer>(hash: &[u8; 32], to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&hexadecimal(hash))
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(from)?;
        let invalid = || D::Error::custom("not a SHA-256 hash");
        let mut hash = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != hash.len() || !rest.is_empty() {
            return Err(invalid());
        }
        for (byte, pair) in hash.iter_mut().zip(pairs) {
            let pair = str::from_utf8(pair).map_err(|_| invalid())?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| invalid())?;
        }
        Ok(hash)
    }
}

#[cfg(test)]
mod tests {
    use switchboard_store::MemoryStore;

    use super::*;

    fn name(text: &str) -> TokenName {
        TokenName::new(text).unwrap()
    }

    #[test]
    fn names_are_validated() {
        for valid in ["ci", "a", "7", "Build.server_2-x", &"n".repeat(64)] {
            assert!(TokenName::new(valid).is_some(), "{valid}");
        }
        for invalid in [
            "",
            "-ci",
            ".ci",
            "a b",
            "a/b",
            "ä",
            "a\n",
            "token:ci",
            &"n".repeat(65),
        ] {
            assert!(TokenName::new(invalid).is_none(), "{invalid}");
        }
    }

    #[tokio::test]
    async fn only_the_hash_of_a_token_is_stored() {
        let store = Arc::new(MemoryStore::new());
        let tokens = NamedTokens::new(store.clone());
        let mut new = NewToken::new(name("ci"));
        new.profile = Some("work".to_owned());
        new.expires_in = Some(Duration::from_secs(60));
        let token = tokens.create(&new).await.unwrap();
        let again = tokens.create(&new).await.unwrap_err();
        assert!(matches!(again, CreateTokenError::Exists(_)), "{again}");
        let key = Key::new("ci").unwrap();
        let record = store.get(TOKENS, &key).await.unwrap().unwrap();
        let text = String::from_utf8(record.value.to_vec()).unwrap();
        assert!(!text.contains(token.expose()), "{text}");
        let read = tokens.read().await.unwrap();
        assert_eq!(read[0].token.sha256, *token.digest());

        let listed = tokens.list().await.unwrap();
        assert_eq!((listed.len(), listed[0].last_used), (1, None));
        assert_eq!(listed[0].profile.as_deref(), Some("work"));
        let expires = listed[0].created.after(Duration::from_secs(60));
        assert_eq!(listed[0].expires, Some(expires));
        tokens.record_use(&name("ci")).await.unwrap();
        assert!(tokens.list().await.unwrap()[0].last_used.is_some());

        assert!(tokens.revoke(&name("ci")).await.unwrap());
        assert!(!tokens.revoke(&name("ci")).await.unwrap());
        assert_eq!(tokens.list().await.unwrap(), []);
        tokens.create(&new).await.unwrap();
        assert_eq!(tokens.list().await.unwrap()[0].last_used, None);
    }

    #[tokio::test]
    async fn a_damaged_record_is_an_error() {
        let store = Arc::new(MemoryStore::new());
        let tokens = NamedTokens::new(store.clone());
        for value in ["", "{}", r#"{"sha256":"00","created":1}"#] {
            let key = Key::new("ci").unwrap();
            store.put(TOKENS, &key, Write::new(value)).await.unwrap();
            let error = tokens.list().await.unwrap_err();
            assert_eq!(error.kind, ErrorKind::Corrupt, "{value}");
        }
    }
}
