//! Tests of metadata discovery, and of metadata that is rejected.

use serde_json::{Value, json};
use switchboard::internal::auth::{AuthSettings, LoginErrorKind};

use crate::world::World;

/// The error of a login with these changes to the metadata. No client may have been registered.
async fn refused(metadata: Value, resource_metadata: Value) -> LoginErrorKind {
    let world = World::start().await;
    world.script().metadata = metadata;
    world.script().resource_metadata = resource_metadata;
    let error = world.begin(&world.server(AuthSettings::default())).await;
    assert_eq!(world.seen("auth POST").len(), 0);
    error.expect_err("no login").kind
}

#[tokio::test]
async fn metadata_of_another_issuer_is_not_used() {
    for issuer in ["https://evil.example", "", "http://127.0.0.1"] {
        let error = refused(json!({"issuer": issuer}), json!({})).await;
        assert!(
            matches!(error, LoginErrorKind::IssuerMismatch { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn metadata_of_another_resource_is_not_used() {
    let error = refused(json!({}), json!({"resource": "https://evil.example/mcp"})).await;
    assert_eq!(
        error.to_string(),
        "the server's metadata describes another resource, https://evil.example/mcp"
    );
}

#[tokio::test]
async fn without_s256_there_is_no_login() {
    for methods in [json!(null), json!([]), json!(["plain"]), json!(["s256"])] {
        let changes = json!({"code_challenge_methods_supported": methods});
        let error = refused(changes, json!({})).await;
        assert!(matches!(error, LoginErrorKind::NoPkce), "{error}");
    }
}

#[tokio::test]
async fn a_person_is_sent_to_pages_of_the_web_only() {
    for page in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "vscode://open?x=$(touch%20x)",
        "calc.exe:",
        "ms-msdt:/id PCWDiagnostic",
        "-oProxyCommand=touch x",
        "`touch x`",
        "https://login.example/`touch$IFS;x`",
        "https://login.example/\"; touch x; \"",
        "https://login.example/\n&& touch x",
        "https://login.example/ --utility-cmd-prefix=touch",
        "http://login.example/authorize",
        "http://10.0.0.1/authorize",
        "https://169.254.169.254/authorize",
        "https://user:password@login.example/",
    ] {
        let error = refused(json!({"authorization_endpoint": page}), json!({})).await;
        assert!(
            matches!(
                error,
                LoginErrorKind::Fetch(_) | LoginErrorKind::Document { .. }
            ),
            "{page}: {error}"
        );
    }
}

#[tokio::test]
async fn the_address_of_a_page_is_one_word_and_keeps_its_query() {
    let world = World::start().await;
    let page = format!("{}/authorize?tenant=1&x=;$(id)&'y'", world.issuer);
    world.script().metadata = json!({"authorization_endpoint": page});
    let start = world
        .begin(&world.server(AuthSettings::default()))
        .await
        .unwrap();
    let url = start.authorization_url.as_str();
    let is_allowed = |letter: char| letter.is_ascii_graphic() && !"\"'`<>\\^{}|".contains(letter);
    assert!(url.chars().all(is_allowed), "{url}");
    assert!(url.contains("?tenant=1&"), "{url}");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_its_own_authorization_server() {
    let world = World::start().await;
    let missing = || (404, None, String::new());
    for path in ["/.well-known/oauth-protected-resource/mcp", "/mcp"] {
        world.script().instead.insert(path.to_owned(), missing());
    }
    let client = json!({"client_id": "c"}).to_string();
    let registered = (201, None, client);
    world
        .script()
        .instead
        .insert("/register".to_owned(), registered);
    let server = world.server(AuthSettings::default());
    let start = world.begin(&server).await.unwrap();
    let origin = world.resource.origin().ascii_serialization();
    let expected = format!("{origin}/authorize?response_type=code&client_id=c&");
    let url = start.authorization_url.as_str();
    assert!(url.starts_with(&expected), "{url}");
    // An error response differs from missing metadata.
    let failing = (503, None, String::new());
    let path = "/.well-known/oauth-protected-resource/mcp".to_owned();
    world.script().instead.insert(path, failing);
    let error = world.begin(&server).await.unwrap_err().kind;
    assert!(matches!(error, LoginErrorKind::Unavailable(503)), "{error}");
}

#[tokio::test]
async fn scopes_come_from_the_entry_the_challenge_or_the_resource() {
    let check = |configured: &'static [&str],
                 challenge: &'static str,
                 resource: Value,
                 server: Value,
                 expected: Option<&'static str>| async move {
        let world = World::start().await;
        world.script().challenge = format!("Bearer {challenge} resource_metadata=\"{{metadata}}\"");
        world.script().resource_metadata = json!({"scopes_supported": resource});
        world.script().metadata = json!({"scopes_supported": server});
        let settings = AuthSettings {
            scopes: configured.iter().map(|&scope| scope.to_owned()).collect(),
            ..AuthSettings::default()
        };
        let start = world.begin(&world.server(settings)).await.unwrap();
        let mut pairs = start.authorization_url.query_pairs();
        let found = pairs.find(|(name, _)| name == "scope");
        let found = found.map(|(_, value)| value.into_owned());
        assert_eq!(found.as_deref(), expected);
    };
    let (none, offline) = (|| json!(null), || json!(["a", "offline_access"]));
    check(&["e"], "scope=\"c\",", json!(["r"]), offline(), Some("e")).await;
    check(&[], "scope=\"c d c\",", json!(["r"]), none(), Some("c d")).await;
    check(&[], "", json!(["r", "s"]), none(), Some("r s")).await;
    check(&[], "", json!(["r"]), offline(), Some("r offline_access")).await;
    check(&[], "", none(), offline(), None).await;
}
