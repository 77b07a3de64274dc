//! Tests of client identities: their precedence, registration, client authentication, and logout.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard::internal::auth::{AuthSettings, LoginErrorKind, logout};
use url::Url;

use crate::world::{REDIRECT_URI, World};

const DOCUMENT: &str = "https://client.example/metadata.json";

/// The client ID in an authorization URL.
async fn client(world: &World, settings: AuthSettings) -> Result<String, LoginErrorKind> {
    let server = world.server(settings);
    let start = world.begin(&server).await.map_err(|error| error.kind)?;
    let url = start.authorization_url;
    let mut pairs = url.query_pairs();
    let found = pairs.find(|(name, _)| name == "client_id");
    Ok(found.expect("a client").1.into_owned())
}

#[tokio::test]
async fn a_known_client_comes_before_a_document_and_that_before_a_new_one() {
    let mut world = World::start().await;
    world.script().metadata = json!({"client_id_metadata_document_supported": true});
    let mut settings = AuthSettings {
        client_id: Some("known".to_owned()),
        client_metadata_url: Url::parse(DOCUMENT).ok(),
        ..AuthSettings::default()
    };
    assert_eq!(client(&world, settings.clone()).await.unwrap(), "known");
    settings.client_id = None;
    assert_eq!(client(&world, settings.clone()).await.unwrap(), DOCUMENT);
    assert_eq!(world.seen("auth POST /register").len(), 0);
    world.script().metadata = json!({});
    let registered = client(&world, settings.clone()).await.unwrap();
    assert!(registered.starts_with("client-"), "{registered}");
    world.script().metadata = json!({"registration_endpoint": null});
    settings.client_metadata_url = None;
    world.vault = Arc::default();
    let error = client(&world, settings).await.unwrap_err();
    assert!(matches!(error, LoginErrorKind::NoClient), "{error}");
}

#[tokio::test]
async fn a_client_is_registered_once_for_each_issuer() {
    let world = World::start().await;
    let first = client(&world, AuthSettings::default()).await.unwrap();
    let second = client(&world, AuthSettings::default()).await.unwrap();
    assert_eq!(first, second);
    let seen = world.seen("auth POST /register");
    let asked: Value = serde_json::from_str(&seen[0].body).expect("JSON");
    assert_eq!(seen.len(), 1);
    assert_eq!(
        asked,
        json!({
            "client_name": "Switchboard",
            "redirect_uris": [REDIRECT_URI],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        })
    );
    // The resource moves to another authorization server, which must not learn the first one's client.
    let other = World::start().await;
    world.script().resource_metadata = json!({"authorization_servers": [other.issuer]});
    client(&world, AuthSettings::default()).await.unwrap();
    assert_eq!(other.seen("auth POST /register").len(), 1);
    assert_eq!(world.seen("auth POST /register").len(), 1);
}

#[tokio::test]
async fn a_login_ends_with_a_token_and_a_logout_revokes_it() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    assert!(
        logout(&server, &world.fetcher(), &*world.vault)
            .await
            .unwrap()
    );
    let revoked: Vec<_> = world
        .seen("auth POST /revoke")
        .into_iter()
        .map(|seen| {
            (
                seen.form["token"].clone(),
                seen.form["token_type_hint"].clone(),
            )
        })
        .collect();
    let pair = |token: &str, kind: &str| (token.to_owned(), kind.to_owned());
    assert_eq!(
        revoked,
        [
            pair("refresh-4", "refresh_token"),
            pair("access-3", "access_token")
        ]
    );
    assert!(
        !logout(&server, &world.fetcher(), &*world.vault)
            .await
            .unwrap()
    );
    let shown = crate::credentials(&world, &world.oauth(&server)).await;
    assert_eq!(crate::authorization(&shown), None);
}

#[tokio::test]
async fn a_logout_that_cannot_revoke_still_forgets() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let failure = (503, None, String::new());
    world.script().instead.insert("/revoke".to_owned(), failure);
    assert!(
        logout(&server, &world.fetcher(), &*world.vault)
            .await
            .unwrap()
    );
    let shown = crate::credentials(&world, &world.oauth(&server)).await;
    assert_eq!(crate::authorization(&shown), None);
}

/// Answers registrations with this document.
fn register_as(world: &World, client: &Value) {
    let registered = (201, None, client.to_string());
    let mut script = world.script();
    script.instead.insert("/register".to_owned(), registered);
}

#[tokio::test]
async fn a_registered_client_authenticates_as_both_sides_can() {
    // Supported methods, the registration's response, the method asked for, and the one used.
    let check = async |methods: Value, mut client: Value, asked: &str, used: &str| {
        let world = World::start().await;
        world.script().metadata = json!({"token_endpoint_auth_methods_supported": methods});
        client["client_id"] = "c".into();
        register_as(&world, &client);
        let server = world.server(AuthSettings::default());
        world.log_in(&server).await.unwrap();
        let seen = world.seen("auth POST /register");
        let request: Value = serde_json::from_str(&seen[0].body).expect("JSON");
        assert_eq!(request["token_endpoint_auth_method"], asked, "{client}");
        let seen = world.seen("auth POST /token");
        let has_secret = seen[0].form.contains_key("client_secret");
        let found = match (seen[0].headers.contains_key("authorization"), has_secret) {
            (true, false) => "client_secret_basic",
            (false, true) => "client_secret_post",
            (false, false) => "none",
            (true, true) => "both",
        };
        assert_eq!(found, used, "{methods} {client}");
    };
    let (basic, post) = ("client_secret_basic", "client_secret_post");
    let secret = || json!({"client_secret": "s"});
    let stating = |secret: Option<&str>, method: &str| json!({"client_secret": secret, "token_endpoint_auth_method": method});
    check(Value::Null, json!({}), "none", "none").await;
    check(Value::Null, secret(), "none", basic).await;
    check(json!(["none", basic]), json!({}), "none", "none").await;
    check(json!([basic, post]), secret(), basic, basic).await;
    check(json!([post]), secret(), post, post).await;
    check(json!(["other"]), secret(), "none", basic).await;
    // The response states the method, which decides if the client can use it.
    check(json!([basic, post]), stating(Some("s"), post), basic, post).await;
    check(json!([post]), stating(Some("s"), basic), post, basic).await;
    check(json!([basic]), stating(Some("s"), "none"), basic, "none").await;
    check(json!([post]), stating(Some("s"), "other"), post, post).await;
    for none in [None, Some("")] {
        check(json!([basic]), stating(none, basic), basic, "none").await;
        check(json!([post]), stating(none, post), post, "none").await;
    }
}

#[tokio::test]
async fn a_client_is_registered_again_before_its_secret_expires() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = i64::try_from(now.expect("a time").as_secs()).expect("seconds");
    for (secret, expires_at, registrations) in [
        (Some("s"), None, 1),
        // Zero stands for never.
        (Some("s"), Some(0), 1),
        (Some("s"), Some(-5), 1),
        (Some("s"), Some(now + 3600), 1),
        (Some("s"), Some(now + 60), 2),
        (Some("s"), Some(1000), 2),
        (Some("s"), Some(i64::MAX), 1),
        // Without a secret, nothing expires.
        (None, Some(1000), 1),
    ] {
        let world = World::start().await;
        let registered = json!({"client_id": "c", "client_secret": secret, "client_secret_expires_at": expires_at});
        register_as(&world, &registered);
        for _ in 0..2 {
            client(&world, AuthSettings::default()).await.unwrap();
        }
        let found = world.seen("auth POST /register").len();
        assert_eq!(found, registrations, "{registered}");
    }
}
