//! What is kept in the vault: logins, clients, and which login belongs to which server.
//!
//! A login is kept under its issuer and its resource, a client under its issuer, so that nothing that one
//! authorization server gave is ever shown to another. A server's own record says which of them is its own.

use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use switchboard_config::secret::Secret;
use url::Url;

use super::server::ProtectedServer;
use super::vault::{Vault, VaultError, VaultKey, VaultLock};

/// How long the vault may take. Whoever holds its lock is bounded by the deadlines of the fetcher.
const DEADLINE: Duration = Duration::from_secs(60);

/// A login: tokens, and all that is needed to renew them without asking anybody anything.
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
    /// When the access token expires, in milliseconds since 1970; `None` where nobody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<i64>,
    /// When it was given.
    pub(super) obtained_at: i64,
    #[serde(
        default,
        with = "hidden_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) refresh_token: Option<Secret>,
    /// The scopes that were asked for.
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    #[serde(
        default,
        with = "hidden_option",
        skip_serializing_if = "Option::is_none"
    )]
    pub(super) proof_key: Option<Secret>,
}

/// A client as one authorization server knows it.
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
    /// Where it was registered to be called back; `None` if it was not registered by us.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) redirect_uri: Option<String>,
    /// When its secret ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<i64>,
}

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ClientAuth {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

/// What is known of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Known {
    /// The issuer and resource of its login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) login: Option<(String, String)>,
    /// The scopes that the next login should ask for, because the server has asked for more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) wanted: Vec<String>,
}

/// What was kept, or nothing where it is lost. Whoever logs in anew, or out, must not be kept from it by that.
pub(super) fn unless_lost<T>(kept: Result<Option<T>, VaultError>) -> Result<Option<T>, VaultError> {
    match kept {
        Err(error) if error.is_lost => {
            tracing::warn!(%error, "what was kept is lost and left aside");
            Ok(None)
        }
        kept => kept,
    }
}

/// The records of one server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Records<'v> {
    vault: &'v dyn Vault,
    server: &'v ProtectedServer,
}

impl<'v> Records<'v> {
    pub(super) fn of(vault: &'v dyn Vault, server: &'v ProtectedServer) -> Self {
        Self { vault, server }
    }

    /// The key of what is known of the server; also the name of the lock for all that is its own.
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

    /// What is known of the server. Where that is lost, nothing is: the next login replaces it.
    pub(super) async fn known(&self) -> Result<Known, VaultError> {
        let known = self.get(&self.server_key()).await;
        Ok(unless_lost(known)?.unwrap_or_default())
    }

    pub(super) async fn note(&self, known: &Known) -> Result<(), VaultError> {
        self.put(&self.server_key(), known).await
    }

    /// The login of the server, if there is one.
    pub(super) async fn login(&self) -> Result<Option<Login>, VaultError> {
        let known: Option<Known> = self.get(&self.server_key()).await?;
        let Some((issuer, resource)) = known.and_then(|known| known.login) else {
            return Ok(None);
        };
        // What is kept under a name must say the same itself.
        let login: Option<Login> = self.get(&self.login_key(&issuer, &resource)).await?;
        Ok(login.filter(|login| login.issuer == issuer && login.resource == resource))
    }

    /// Keeps a login, and notes that it is the server's.
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

    /// Forgets the login of the server; whether there was one.
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

    /// The client that was registered with an authorization server.
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

    /// Waits until nobody else changes what is the server's own.
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
        // What cannot be read any longer is as good as gone: the way out is a new login. The reason could quote it.
        let read = serde_json::from_str(secret.expose()).ok();
        if read.is_none() {
            tracing::warn!("a login that was kept cannot be read and is left aside");
        }
        Ok(read)
    }

    async fn put<T: Serialize>(&self, key: &VaultKey, value: &T) -> Result<(), VaultError> {
        let text = serde_json::to_string(value).map_err(|_| {
            VaultError::new(
                "could not be written",
                "the login has no form to be kept in",
            )
        })?;
        let secret = Secret::new(text);
        in_time("could not be written", self.vault.put(key, &secret)).await
    }
}

/// A vault can wait for a person to unlock it, or for another process. Requests cannot wait that long.
async fn in_time<T>(
    doing: &'static str,
    future: impl Future<Output = Result<T, VaultError>>,
) -> Result<T, VaultError> {
    let outcome = tokio::time::timeout(DEADLINE, future).await;
    outcome.unwrap_or_else(|_| Err(VaultError::new(doing, "it did not answer in time")))
}

mod hidden {
    //! Secrets in what goes into the vault, and nowhere else.

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
    //! The same for those that may be missing.

    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use switchboard_config::secret::Secret;

    #[expect(clippy::ref_option, reason = "serde hands it over like that")]
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
