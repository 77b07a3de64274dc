//! Tests that a token is sent only to the server it was issued for.

use std::sync::Arc;

use switchboard::internal::auth::{
    AuthSettings, Authorizer as _, FetchErrorKind, LoginErrorKind, Target,
};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{RemoteServer, StreamableConnector};
use switchboard::{Host, HostOptions, ServerName};
use switchboard_config::secret::Secret;
use url::Url;

use crate::world::World;
use crate::{authorization, call, credentials, host, restart, state};

#[tokio::test]
async fn another_origin_is_shown_nothing() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let oauth = world.oauth(&server);
    let shown = credentials(&world, &oauth).await;
    assert_eq!(authorization(&shown), Some("Bearer access-3"));
    for url in [
        "https://evil.example/mcp",
        "http://127.0.0.1:1/mcp",
        &world.issuer,
    ] {
        let url = Url::parse(url).unwrap();
        let target = Target {
            method: "POST",
            url: &url,
        };
        let shown = oauth.credentials(target).await;
        assert_eq!(authorization(&shown), None, "{url}");
    }
}

#[tokio::test]
async fn a_redirect_takes_no_token_along() {
    let world = World::start().await;
    let other = World::start().await;
    let server = world.server(AuthSettings::default());
    let host = host(&world, world.oauth(&server)).await;
    world.log_in(&server).await.unwrap();
    assert_eq!(restart(&host).await, "connected");
    let elsewhere = Some(("location", other.resource.to_string()));
    let redirect = (307, elsewhere, String::new());
    world.script().instead.insert("/mcp".to_owned(), redirect);
    call(&host).await.expect_err("it is not followed");
    assert_eq!(other.seen("mcp").len(), 0);
    host.shutdown().await;
}

#[tokio::test]
async fn a_token_endpoint_that_redirects_gets_nothing_sent_on() {
    let world = World::start().await;
    let other = World::start().await;
    let server = world.server(AuthSettings::default());
    let redirect = (
        307,
        Some(("location", format!("{}/token", other.issuer))),
        String::new(),
    );
    world.script().instead.insert("/token".to_owned(), redirect);
    let error = world.log_in(&server).await.unwrap_err();
    assert!(
        matches!(&error, LoginErrorKind::Fetch(error) if error.kind == FetchErrorKind::Redirected),
        "{error}"
    );
    assert_eq!(other.seen("auth").len(), 0);
}

#[tokio::test]
async fn credentials_in_the_entry_switch_the_rest_off() {
    let world = World::start().await;
    let server = world.server(AuthSettings::default());
    world.log_in(&server).await.unwrap();
    let before = world.seen("auth").len();
    let mut remote = RemoteServer::new(world.resource.as_str());
    remote.headers = vec![("AUTHORIZATION".to_owned(), Secret::new("Bearer own"))];
    remote.authorizer = Some(Arc::new(world.oauth(&server)));
    let connector = StreamableConnector::new(&world.client, remote).unwrap();
    let host = Host::with_options(HostOptions::default());
    let key = ConnectionKey::of(&[b"static"]);
    let name = ServerName::from("world");
    let spec = ServerSpec::new("world", Arc::new(connector), key);
    // A login cannot replace the token of the entry, so none is offered.
    let error = host.add_server(spec).await.expect_err("a wrong token");
    assert!(error.to_string().contains("rejects the token"), "{error}");
    assert_eq!(host.status(&name).unwrap().word(), "failed");
    assert_eq!(state(&host), "failed");
    let shown: Vec<_> = world
        .seen("mcp POST /mcp")
        .into_iter()
        .filter_map(|seen| seen.headers.get("authorization").cloned())
        .collect();
    assert!(!shown.is_empty());
    assert!(shown.iter().all(|value| value == "Bearer own"), "{shown:?}");
    assert_eq!(world.seen("auth").len(), before);
    host.shutdown().await;
}
