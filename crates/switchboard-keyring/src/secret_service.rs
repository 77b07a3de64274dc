//! Secret Service over D-Bus.
//!
//! Each call opens its own connection: a process makes about one call, so a persistent connection is not worth keeping
//! alive.

use std::collections::HashMap;

use secret_service::{Collection, EncryptionType, Error, Item, SecretService};
use switchboard_config::secret::Secret;

use super::{KeyringError, LABEL};

/// Lookup attributes of the entry.
const ATTRIBUTES: [(&str, &str); 2] = [("application", "switchboard"), ("purpose", "logins")];

pub(super) async fn get() -> Result<Option<Secret>, KeyringError> {
    let service = connect().await?;
    let collection = unlocked(&service).await?;
    let Some(item) = entry(&collection).await? else {
        return Ok(None);
    };
    let secret = item.get_secret().await.map_err(refused)?;
    let secret = String::from_utf8(secret);
    let secret = secret.map_err(|_| KeyringError::Refused("the entry is not text".to_owned()))?;
    Ok(Some(Secret::new(secret)))
}

pub(super) async fn set(secret: Secret) -> Result<(), KeyringError> {
    let service = connect().await?;
    let collection = unlocked(&service).await?;
    let attributes = HashMap::from(ATTRIBUTES);
    let (content, replace) = (secret.expose().as_bytes(), true);
    let created = collection.create_item(LABEL, attributes, content, replace, "text/plain");
    created.await.map(drop).map_err(refused)
}

pub(super) async fn probe() -> Result<(), KeyringError> {
    let service = connect().await?;
    let collection = service.get_default_collection().await.map_err(refused)?;
    if collection.is_locked().await.map_err(refused)? {
        return Err(KeyringError::Locked);
    }
    Ok(())
}

async fn connect() -> Result<SecretService<'static>, KeyringError> {
    // The secret is encrypted in transit, so that bus monitors cannot read it.
    let connected = SecretService::connect(EncryptionType::Dh).await;
    connected.map_err(refused)
}

/// Returns the default collection, unlocked. The desktop may prompt the user.
async fn unlocked<'a>(service: &'a SecretService<'_>) -> Result<Collection<'a>, KeyringError> {
    let collection = service.get_default_collection().await.map_err(refused)?;
    if collection.is_locked().await.map_err(refused)? {
        collection.unlock().await.map_err(refused)?;
    }
    Ok(collection)
}

async fn entry<'a>(collection: &'a Collection<'_>) -> Result<Option<Item<'a>>, KeyringError> {
    let found = collection.search_items(HashMap::from(ATTRIBUTES)).await;
    Ok(found.map_err(refused)?.into_iter().next())
}

fn refused(error: Error) -> KeyringError {
    match error {
        Error::Locked | Error::Prompt | Error::PromptDisconnected => KeyringError::Locked,
        Error::Unavailable => KeyringError::None("no Secret Service on the session bus".to_owned()),
        Error::NoResult => KeyringError::None("it has no default collection".to_owned()),
        error => KeyringError::Refused(error.to_string()),
    }
}
