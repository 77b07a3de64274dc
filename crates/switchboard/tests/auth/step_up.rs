//! Tests of servers that require more scopes for some requests.

use switchboard::internal::auth::{AuthSettings, Verdict};
use switchboard::{CallError, RequestError};

use crate::world::World;
use crate::{call, credentials, host, refused, restart, state};

fn wants_more(error: &CallError) -> bool {
    matches!(error, CallError::Request { error: RequestError::Refused(refusal), .. } if refusal.wants_more_scope())
}

/// The scopes in an authorization URL.
async fn asked(world: &World, settings: AuthSettings) -> String {
    let start = world.begin(&world.server(settings)).await.unwrap();
    let mut pairs = start.authorization_url.query_pairs();
    let found = pairs.find(|(name, _)| name == "scope");
    found.expect("scopes").1.into_owned()
}

#[tokio::test]
async fn a_login_asks_for_what_was_agreed_to_and_for_what_is_wanted_now() {
    let world = World::start().await;
    world.script().challenge = "Bearer scope=\"read\", resource_metadata=\"{metadata}\"".to_owned();
    world.script().call_scopes = vec!["write".to_owned()];
    let server = world.server(AuthSettings::default());
    let host = host(&world, world.oauth(&server)).await;
    assert_eq!(state(&host), "needs-auth");
    world.log_in(&server).await.unwrap();
    assert_eq!(restart(&host).await, "connected");
    let error = call(&host).await.expect_err("it wants more");
    assert!(wants_more(&error), "{error}");
    assert_eq!(
        error.hint().as_deref(),
        Some("log in to the server again to grant more scopes")
    );
    // The rest of the server stays usable.
    assert_eq!(state(&host), "connected");
    // Another process finds the required scopes in the vault.
    assert_eq!(asked(&world, AuthSettings::default()).await, "read write");
    world.log_in(&server).await.unwrap();
    call(&host)
        .await
        .expect("the live connection has the new token");
    host.shutdown().await;
    // The next login requests the same scopes, unless the entry configures them.
    assert_eq!(asked(&world, AuthSettings::default()).await, "read write");
    let own = AuthSettings {
        scopes: vec!["own".to_owned()],
        ..AuthSettings::default()
    };
    assert_eq!(asked(&world, own).await, "own");
}

#[tokio::test]
async fn a_server_that_is_never_content_is_not_asked_for_ever() {
    let world = World::start().await;
    world.script().grants = Some("nothing");
    world.script().call_scopes = vec!["write".to_owned()];
    let server = world.server(AuthSettings::default());
    let host = host(&world, world.oauth(&server)).await;
    world.log_in(&server).await.unwrap();
    restart(&host).await;
    let before = world.seen("mcp POST /mcp").len();
    for _ in 0..3 {
        let error = call(&host).await.expect_err("it wants more");
        assert!(wants_more(&error), "{error}");
        world.log_in(&server).await.unwrap();
    }
    // One call, and one retry with the tokens of the previous login: no further repetitions.
    assert!(world.seen("mcp POST /mcp").len() - before <= 2 * 3);
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    for (scope, expected) in [("write", Verdict::Final), ("more", Verdict::NeedsPerson)] {
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        let verdict = refused(&world, &oauth, &shown, 403, &challenge, 0).await;
        assert_eq!(verdict, expected);
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_plain_refusal_is_none_for_want_of_scopes() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    for challenge in ["", "Bearer", "Bearer error=\"invalid_token\""] {
        let verdict = refused(&world, &oauth, &shown, 403, challenge, 0).await;
        assert_eq!(verdict, Verdict::Final, "{challenge}");
    }
}

#[tokio::test]
async fn scopes_of_a_login_for_another_resource_are_not_asked_for_again() {
    let world = World::start().await;
    let challenge =
        |scope: &str| format!("Bearer scope=\"{scope}\", resource_metadata=\"{{metadata}}\"");
    world.script().challenge = challenge("first");
    world
        .log_in(&world.server(AuthSettings::default()))
        .await
        .unwrap();
    world.script().challenge = challenge("second");
    let both = asked(&world, AuthSettings::default()).await;
    assert_eq!(both, "first second");
    let other = AuthSettings {
        resource: Some("https://other.example".to_owned()),
        ..AuthSettings::default()
    };
    assert_eq!(asked(&world, other).await, "second");
}
