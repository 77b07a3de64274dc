//! Vault records: logins, clients, and the mapping from servers to logins.
//!
//! Logins are keyed by issuer and resource, clients by issuer, so that credentials of one authorization server are
//! never sent to another. A server's record names its login.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchboard_config::secret::Secret;
use url::Url;

use super::server::ProtectedServer;
use super::vault::{Vault, VaultError, VaultKey, VaultLock};

/// Timeout for vault operations. A lock holder is bounded by the fetcher's deadlines.
const DEADLINE: Duration = Duration::from_secs(60);

/// Tokens and everything needed to refresh them without user interaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Login {
    pub(super) issuer: String,
    pub(super) resource: String,
    pub(super) token_endpoint: Url,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) revocation_endpoint: Option<Url>,
    pub(super) client: Client,
    #[serde(with = "hidden")]
    pub(super) access_token: Secret,
    /// Whether the access token is bound to `proof_key`.
    #[serde(default)]
    pub(super) is_bound: bool,
    /// Expiry of the access token, in milliseconds since 1970; `None` if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<i64>,
    /// Issue time of the access token, in milliseconds since 1970.
    pub(super) obtained_at: i64,
    #[serde(
        default,
        with = "hidden_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) refresh_token: Option<Secret>,
    /// Requested scopes, plus those granted.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    #[serde(
        default,
        with = "hidden_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) proof_key: Option<Secret>,
}

/// A client as registered with one authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub(super) id: String,
    #[serde(
        default,
        with = "hidden_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) secret: Option<Secret>,
    pub(super) method: ClientAuth,
    /// Redirect URI of the registration; `None` if we did not register the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redirect_uri: Option<String>,
    /// Expiry of the secret, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuth {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

/// Record of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// Issuer and resource of its login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) login: Option<(String, String)>,
    /// Additional scopes that the server asked for, to request in the next login.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted: Vec<String>,
}

/// Maps a lost record to `None`, so that it does not block a new login or a logout.
pub(super) fn unless_lost<T>(kept: Result<Option<T>, VaultError>) -> Result<Option<T>, VaultError> {
    match kept {
        Err(error) if error.is_lost => {
            tracing::warn!(%error, "ignoring a lost login record");
            Ok(None)
        }
        kept => kept,
    }
}

/// Vault records of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records<'v> {
    vault: &'v dyn Vault,
    server: &'v ProtectedServer,
}

impl<'v> Records<'v> {
    pub(super) fn of(vault: &'v dyn Vault, server: &'v ProtectedServer) -> Self {
        Self { vault, server }
    }

    /// Key of the server's record; also names the lock for all its records.
    fn server_key(&self) -> VaultKey {
        let client = self.server.settings().client_id.as_deref();
        let parts = [
            "server",
            self.server.url().as_str(),
            client.unwrap_or_default(),
        ];
        VaultKey::of(&parts)
    }

    fn login_key(&self, issuer: &str, resource: &str) -> VaultKey {
        let client = self.server.settings().client_id.as_deref();
        VaultKey::of(&["login", issuer, resource, client.unwrap_or_default()])
    }

    /// Returns the server's record. A lost record reads as empty: the next login replaces it.
    pub(super) async fn known(&self) -> Result<Known, VaultError> {
        let known = self.get(&self.server_key()).await;
        Ok(unless_lost(known)?.unwrap_or_default())
    }

    pub(super) async fn note(&self, known: &Known) -> Result<(), VaultError> {
        self.put(&self.server_key(), known).await
    }

    /// Returns the server's login, if any.
    pub(super) async fn login(&self) -> Result<Option<Login>, VaultError> {
        let known: Option<Known> = self.get(&self.server_key()).await?;
        let Some((issuer, resource)) = known.and_then(|known| known.login) else {
            return Ok(None);
        };
        // The record must match the key that it is stored under.
        let login: Option<Login> = self.get(&self.login_key(&issuer, &resource)).await?;
        Ok(login.filter(|login| login.issuer == issuer && login.resource == resource))
    }

    /// Stores a login and links it to the server.
    pub(super) async fn keep(&self, login: &Login, wanted: Vec<String>) -> Result<(), VaultError> {
        let key = self.login_key(&login.issuer, &login.resource);
        self.put(&key, login).await?;
        let known = Known {
            login: Some((login.issuer.clone(), login.resource.clone())),
            wanted,
        };
        if self.known().await? != known {
            self.note(&known).await?;
        }
        Ok(())
    }

    /// Deletes the server's login; returns whether one existed.
    pub(super) async fn forget(&self) -> Result<bool, VaultError> {
        let Known { login, .. } = self.known().await?;
        let mut existed = false;
        if let Some((issuer, resource)) = login {
            existed = self
                .vault
                .remove(&self.login_key(&issuer, &resource))
                .await?;
        }
        self.vault.remove(&self.server_key()).await?;
        Ok(existed)
    }

    /// Returns the client registered with an authorization server.
    pub(super) async fn client(&self, issuer: &str) -> Result<Option<Client>, VaultError> {
        unless_lost(self.get(&VaultKey::of(&["client", issuer])).await)
    }

    pub(super) async fn keep_client(
        &self,
        issuer: &str,
        client: &Client,
    ) -> Result<(), VaultError> {
        self.put(&VaultKey::of(&["client", issuer]), client).await
    }

    /// Acquires the cross-process lock for the server's records.
    pub(super) async fn lock(&self) -> Result<VaultLock, VaultError> {
        in_time(
            "is held by another process",
            self.vault.lock(&self.server_key()),
        )
        .await
    }

    async fn get<T: DeserializeOwned>(&self, key: &VaultKey) -> Result<Option<T>, VaultError> {
        let Some(secret) = in_time("could not be read", self.vault.get(key)).await? else {
            return Ok(None);
        };
        // An undecodable record counts as absent: the remedy is a new login. The serde error is not logged: it could
        // quote a secret.
        let read = serde_json::from_str(secret.expose()).ok();
        if read.is_none() {
            tracing::warn!("ignoring a login record that cannot be decoded");
        }
        Ok(read)
    }

    async fn put<T: Serialize>(&self, key: &VaultKey, value: &T) -> Result<(), VaultError> {
        let text = serde_json::to_string(value).map_err(|_| {
            VaultError::new("could not be written", "the login cannot be serialized")
        })?;
        let secret = Secret::new(text);
        in_time("could not be written", self.vault.put(key, &secret)).await
    }
}

/// Applies the deadline: a vault can block on an unlock prompt or on another process.
async fn in_time<T>(
    doing: &'static str,
    future: impl Future<Output = Result<T, VaultError>>,
) -> Result<T, VaultError> {
    let outcome = tokio::time::timeout(DEADLINE, future).await;
    outcome.unwrap_or_else(|_| Err(VaultError::new(doing, "it did not answer in time")))
}

mod hidden {
    //! Serializes secrets in clear text, for vault records only.

    use serde::{Deserialize as _, Deserializer, Serializer};
    use switchboard_config::secret::Secret;

    pub(super) fn serialize<S: Serializer>(
        secret: &Secret,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(secret.expose())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Secret, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

mod hidden_option {
    //! Same for `Option<Secret>`.

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use switchboard_config::secret::Secret;

    #[expect(clippy::ref_option, reason = "serde's `with` requires this signature")]
    pub(super) fn serialize<S: Serializer>(
        secret: &Option<Secret>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let text = secret.as_ref().map(Secret::expose);
        text.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Secret>, D::Error> {
        Ok(Option::<String>::deserialize(deserializer)?.map(Secret::new))
    }
}

#[cfg(test)]
impl Records<'_> {
    /// Stores a login under the key of another.
    pub(super) async fn put_instead_of(
        &self,
        login: &Login,
        other: &Login,
    ) -> Result<(), VaultError> {
        let key = self.login_key(&login.issuer, &login.resource);
        self.put(&key, other).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lost_record_counts_as_none() {
        let error = || VaultError::new("could not be read", "the keyring is locked");
        assert!(unless_lost::<()>(Err(error())).is_err());
        assert!(matches!(unless_lost::<()>(Err(error().lost())), Ok(None)));
        assert!(matches!(unless_lost(Ok(Some(1))), Ok(Some(1))));
    }
}
