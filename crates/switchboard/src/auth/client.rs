//! Selects the OAuth client: preregistered, client metadata document, or dynamic registration, in that order.

use serde::Deserialize;
use serde_json::json;
use switchboard_config::secret::Secret;
use switchboard_config::text::visible;
use switchboard_store::Timestamp;
use url::{Host, Url};

use super::discovery::Discovered;
use super::error::LoginErrorKind;
use super::fetch::{Body, Fetcher, shown};
use super::record::{Client, ClientAuth, Records};
use super::server::AuthSettings;

/// Client name on the consent screen.
const CLIENT_NAME: &str = "Switchboard";

/// Returns the client from the configuration, if it names one.
pub(super) fn configured(settings: &AuthSettings, found: &Discovered) -> Option<Client> {
    let id = settings.client_id.clone()?;
    let method = if settings.private_key.is_some() {
        ClientAuth::PrivateKeyJwt
    } else {
        method(settings.client_secret.is_some(), found)
    };
    Some(Client {
        id,
        secret: settings.client_secret.clone(),
        method,
        redirect_uri: None,
        expires_at: None,
    })
}

/// Returns the client to log in with and registers one if necessary.
pub(super) async fn identify(
    fetcher: &Fetcher,
    records: Records<'_>,
    settings: &AuthSettings,
    found: &Discovered,
    redirect_uri: &Url,
    now: Timestamp,
) -> Result<Client, LoginErrorKind> {
    if let Some(client) = configured(settings, found) {
        return Ok(client);
    }
    if let Some(document) = &settings.client_metadata_url
        && found.endpoints.reads_client_metadata
    {
        return Ok(Client {
            id: document.as_str().to_owned(),
            secret: None,
            method: if settings.private_key.is_some() {
                ClientAuth::PrivateKeyJwt
            } else {
                ClientAuth::None
            },
            redirect_uri: None,
            expires_at: None,
        });
    }
    let is_usable = |client: &Client| {
        client.redirect_uri.as_deref() == Some(redirect_uri.as_str())
            && client
                .expires_at
                .is_none_or(|end| end > now.after(LEFT).as_millis())
    };
    let stored = records.client(&found.issuer).await?;
    if let Some(client) = stored.filter(is_usable) {
        return Ok(client);
    }
    let client = register(fetcher, found, redirect_uri).await?;
    records.keep_client(&found.issuer, &client).await?;
    Ok(client)
}

/// Minimum remaining lifetime of a client secret to start a login with it.
const LEFT: std::time::Duration = std::time::Duration::from_secs(600);

/// Registers a client dynamically (RFC 7591).
async fn register(
    fetcher: &Fetcher,
    found: &Discovered,
    redirect_uri: &Url,
) -> Result<Client, LoginErrorKind> {
    let endpoint = found.endpoints.registration.as_ref();
    let endpoint = endpoint.ok_or(LoginErrorKind::NoClient)?;
    let wanted = match &found.endpoints.auth_methods {
        Some(methods) => {
            let known = [
                ClientAuth::None,
                ClientAuth::ClientSecretBasic,
                ClientAuth::ClientSecretPost,
            ];
            let mut known = known.into_iter();
            let is_offered = |method: &ClientAuth| methods.iter().any(|one| one == name(*method));
            known.find(is_offered).unwrap_or(ClientAuth::None)
        }
        None => ClientAuth::None,
    };
    let mut request = json!({
        "client_name": CLIENT_NAME,
        "redirect_uris": [redirect_uri.as_str()],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": name(wanted),
        "application_type": if is_native(redirect_uri) { "native" } else { "web" },
    });
    if uses_dpop(found, None) {
        request["dpop_bound_access_tokens"] = true.into();
    }
    let body = Body::Json(Secret::new(request.to_string()));
    let answer = fetcher.post(endpoint, &found.reach, &[], &body).await?;
    if !(200..300).contains(&answer.status) {
        return Err(refusal(answer.status, &answer.body));
    }
    let wire: ClientWire =
        serde_json::from_slice(&answer.body).map_err(|_| LoginErrorKind::Document {
            url: shown(endpoint),
            problem: "returned an invalid registration response".to_owned(),
        })?;
    let secret = wire.client_secret.filter(|secret| !secret.is_empty());
    let stated = wire.token_endpoint_auth_method.as_deref();
    let method = match stated.and_then(by_name) {
        Some(method) if secret.is_some() || method == ClientAuth::None => method,
        _ => method(secret.is_some(), found),
    };
    let end = wire
        .client_secret_expires_at
        .filter(|end| *end > 0 && secret.is_some());
    Ok(Client {
        id: wire.client_id,
        secret: secret.map(Secret::new),
        method,
        redirect_uri: Some(redirect_uri.as_str().to_owned()),
        expires_at: end.map(|end| end.saturating_mul(1000)),
    })
}

/// Whether tokens are `DPoP`-bound.
pub(super) fn uses_dpop(found: &Discovered, setting: Option<bool>) -> bool {
    setting.unwrap_or(found.wants_dpop && found.endpoints.has_dpop)
}

/// Maps an error response to a [`LoginErrorKind`].
pub(super) fn refusal(status: u16, body: &[u8]) -> LoginErrorKind {
    #[derive(Deserialize)]
    struct Wire {
        error: String,
        error_description: Option<String>,
    }
    if status >= 500 || status == 429 {
        return LoginErrorKind::Unavailable(status);
    }
    match serde_json::from_slice::<Wire>(body) {
        Ok(wire) => LoginErrorKind::Refused {
            error: short(&wire.error),
            description: wire.error_description.as_deref().map(short),
        },
        Err(_) => LoginErrorKind::Refused {
            error: format!("HTTP status {status}"),
            description: None,
        },
    }
}

/// Sanitizes a server's text and truncates it to a few lines.
pub(super) fn short(text: &str) -> String {
    const MOST: usize = 300;
    let text: String = text.chars().take(MOST).collect();
    visible(&text).into_owned()
}

#[derive(Deserialize)]
struct ClientWire {
    client_id: String,
    client_secret: Option<String>,
    client_secret_expires_at: Option<i64>,
    token_endpoint_auth_method: Option<String>,
}

/// Default authentication method when neither side names one: the first that the server supports, `client_secret_basic`
/// first.
fn method(has_secret: bool, found: &Discovered) -> ClientAuth {
    if !has_secret {
        return ClientAuth::None;
    }
    let Some(offered) = &found.endpoints.auth_methods else {
        return ClientAuth::ClientSecretBasic;
    };
    let offers = |method: ClientAuth| offered.iter().any(|one| one == name(method));
    if offers(ClientAuth::ClientSecretBasic) {
        ClientAuth::ClientSecretBasic
    } else if offers(ClientAuth::ClientSecretPost) {
        ClientAuth::ClientSecretPost
    } else if offers(ClientAuth::None) {
        ClientAuth::None
    } else {
        ClientAuth::ClientSecretBasic
    }
}

fn name(method: ClientAuth) -> &'static str {
    match method {
        ClientAuth::None => "none",
        ClientAuth::ClientSecretBasic => "client_secret_basic",
        ClientAuth::ClientSecretPost => "client_secret_post",
        ClientAuth::PrivateKeyJwt => "private_key_jwt",
    }
}

fn by_name(text: &str) -> Option<ClientAuth> {
    let known = [
        ClientAuth::None,
        ClientAuth::ClientSecretBasic,
        ClientAuth::ClientSecretPost,
    ];
    known.into_iter().find(|method| name(*method) == text)
}

/// Whether the redirect URI is on the user's machine.
fn is_native(redirect_uri: &Url) -> bool {
    match redirect_uri.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_to_this_machine_makes_a_native_application() {
        for (url, expected) in [
            ("http://localhost:4000/callback", true),
            ("http://127.0.0.1:4000/callback", true),
            ("http://127.8.9.1/callback", true),
            ("http://[::1]:4000/callback", true),
            ("com.example.app:/callback", true),
            ("https://localhost.example/callback", false),
            ("https://a.example/callback", false),
            ("http://10.0.0.1/callback", false),
            ("http://[2001:db8::1]/callback", false),
        ] {
            let redirect_uri = Url::parse(url).unwrap();
            assert_eq!(is_native(&redirect_uri), expected, "{url}");
        }
    }
}
