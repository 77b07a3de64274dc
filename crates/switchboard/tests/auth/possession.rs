//! Tests of key-bound tokens (DPoP): every request proves possession, and the scripted servers verify each proof.

use serde_json::json;
use switchboard::internal::auth::{AuthSettings, Verdict};

use crate::world::World;
use crate::{authorization, call, credentials, host, restart, unauthorized};

async fn bound(nonces: Option<(&'static str, &'static str)>, settings: AuthSettings) -> World {
    let world = World::start().await;
    {
        let mut script = world.script();
        script.challenge = String::from("DPoP resource_metadata=\"{metadata}\"");
        script.binds = true;
        script.nonces = nonces;
    }
    let server = world.server(settings);
    let host = host(&world, world.oauth(&server)).await;
    world.log_in(&server).await.unwrap();
    assert_eq!(restart(&host).await, "connected");
    call(&host).await.expect("the call is answered");
    world.expire();
    call(&host)
        .await
        .expect("the call is answered after a renewal");
    host.shutdown().await;
    world
}

/// The schemes of the successful requests.
fn schemes(world: &World) -> Vec<String> {
    let seen = world.seen("mcp POST /mcp").into_iter();
    let admitted = seen.filter(|seen| seen.status == 200);
    let mut schemes: Vec<String> = admitted
        .map(|seen| {
            let value = seen.headers["authorization"].to_str().unwrap();
            value.split(' ').next().unwrap().to_owned()
        })
        .collect();
    schemes.dedup();
    schemes
}

#[tokio::test]
async fn a_server_that_asks_for_it_gets_bound_tokens() {
    let world = bound(None, AuthSettings::default()).await;
    assert_eq!(schemes(&world), ["DPoP"]);
    let kinds: Vec<_> = world
        .seen("auth POST /token")
        .iter()
        .map(|seen| seen.form["grant_type"].clone())
        .collect();
    assert_eq!(kinds, ["authorization_code", "refresh_token"]);
}

#[tokio::test]
async fn both_servers_may_want_a_nonce() {
    let world = bound(Some(("as-nonce", "rs-nonce")), AuthSettings::default()).await;
    assert_eq!(schemes(&world), ["DPoP"]);
    let statuses: Vec<_> = world
        .seen("auth POST /token")
        .iter()
        .map(|seen| seen.status)
        .collect();
    assert_eq!(statuses, [400, 200, 400, 200]);
}

#[tokio::test]
async fn whoever_wants_none_gets_none() {
    let settings = AuthSettings {
        dpop: Some(false),
        ..AuthSettings::default()
    };
    let world = bound(None, settings).await;
    assert_eq!(schemes(&world), ["Bearer"]);
    assert!(
        world
            .seen("auth POST /token")
            .iter()
            .all(|seen| !seen.headers.contains_key("dpop"))
    );
}

#[tokio::test]
async fn whoever_insists_takes_nothing_else() {
    let world = World::start().await;
    let settings = AuthSettings {
        dpop: Some(true),
        ..AuthSettings::default()
    };
    let error = world.log_in(&world.server(settings)).await.unwrap_err();
    let expected = format!(
        "{}/token returned a token that is not bound to the key",
        world.issuer
    );
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_refreshed_token_may_be_bound_though_the_first_was_not() {
    let world = World::start().await;
    // The login gets a key, and its authorization server does not use it yet.
    world.script().resource_metadata = json!({"dpop_bound_access_tokens_required": true});
    let server = world.server(AuthSettings::default());
    let oauth = world.oauth(&server);
    world.log_in(&server).await.unwrap();
    let shown = credentials(&world, &oauth).await;
    assert_eq!(authorization(&shown), Some("Bearer access-3"));
    world.expire();
    world.script().binds = true;
    assert_eq!(unauthorized(&world, &oauth, &shown).await, Verdict::Again);
    let shown = credentials(&world, &oauth).await;
    assert_eq!(authorization(&shown), Some("DPoP access-5"));
    assert!(shown.headers.iter().any(|(name, _)| *name == "dpop"));
}

#[tokio::test]
async fn a_token_request_is_repeated_once_and_only_for_a_nonce() {
    for (error, expected) in [("invalid_request", 1), ("use_dpop_nonce", 2)] {
        let world = World::start().await;
        let refusal = (
            400,
            Some(("dpop-nonce", "a-nonce".to_owned())),
            format!(r#"{{"error":"{error}"}}"#),
        );
        world.script().instead.insert("/token".to_owned(), refusal);
        let settings = AuthSettings {
            dpop: Some(true),
            ..AuthSettings::default()
        };
        let refused = world.log_in(&world.server(settings)).await.unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("the login was refused: {error}")
        );
        assert_eq!(world.seen("auth POST /token").len(), expected, "{error}");
    }
}
