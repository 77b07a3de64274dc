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
    check(&[], "", json!(["r"]), json!(["a"]), Some("r")).await;
    check(&[], "", none(), offline(), None).await;
}

#[tokio::test]
async fn the_issuer_of_an_entry_comes_before_those_of_the_resource() {
    let world = World::start().await;
    let others = json!({"authorization_servers": ["https://other.example"]});
    world.script().resource_metadata = others;
    let settings = AuthSettings {
        issuer: Some(world.issuer.clone()),
        ..AuthSettings::default()
    };
    let start = world.begin(&world.server(settings)).await.unwrap();
    let url = start.authorization_url.as_str();
    assert!(url.starts_with(&world.issuer), "{url}");
}

#[tokio::test]
async fn metadata_that_a_challenge_names_has_to_exist() {
    let world = World::start().await;
    let path = "/.well-known/oauth-protected-resource/mcp".to_owned();
    let missing = (404, None, String::new());
    world.script().instead.insert(path.clone(), missing);
    let error = world.begin(&world.server(AuthSettings::default())).await;
    let error = error.expect_err("no login").kind.to_string();
    let place = world.resource.join(&path).unwrap();
    let expected = format!("{place} is not resource metadata, although the server refers to it");
    assert_eq!(error, expected);
}

/// A server without resource metadata, whose origin publishes these as its own authorization server's.
async fn legacy(path: &str, issuer: impl Fn(&str) -> String) -> (World, String) {
    let world = World::start().await;
    let origin = world.resource.origin().ascii_serialization();
    let document = json!({
        "issuer": issuer(&origin),
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "code_challenge_methods_supported": ["S256"],
    });
    let answers = [
        (
            "/.well-known/oauth-protected-resource/mcp",
            404,
            String::new(),
        ),
        ("/mcp", 404, String::new()),
        (path, 200, document.to_string()),
    ];
    for (path, status, body) in answers {
        let answer = (status, None, body);
        world.script().instead.insert(path.to_owned(), answer);
    }
    (world, origin)
}

#[tokio::test]
async fn an_origin_may_name_itself_with_a_slash_and_nothing_else() {
    let known = || AuthSettings {
        client_id: Some("c".to_owned()),
        ..AuthSettings::default()
    };
    let path = "/.well-known/oauth-authorization-server";
    for end in ["", "/"] {
        let (world, origin) = legacy(path, |origin| format!("{origin}{end}")).await;
        let start = world.begin(&world.server(known())).await.unwrap();
        let url = start.authorization_url.as_str();
        assert!(url.starts_with(&format!("{origin}/authorize?")), "{url}");
    }
    let (world, _) = legacy(path, |_| "https://evil.example".to_owned()).await;
    let error = world.begin(&world.server(known())).await;
    let error = error.expect_err("no login").kind;
    assert!(
        matches!(error, LoginErrorKind::IssuerMismatch { .. }),
        "{error}"
    );
    // A document that the entry names may be of any issuer, if nothing else names one.
    let (world, origin) = legacy("/own-metadata", |_| "https://issuer.example".to_owned()).await;
    let place = world.resource.join("/own-metadata").unwrap();
    let named = || AuthSettings {
        metadata_url: Some(place.clone()),
        ..known()
    };
    let start = world.begin(&world.server(named())).await.unwrap();
    let url = start.authorization_url.as_str();
    assert!(url.starts_with(&format!("{origin}/authorize?")), "{url}");
    let settings = AuthSettings {
        issuer: Some(world.issuer.clone()),
        ..named()
    };
    let error = world.begin(&world.server(settings)).await;
    let error = error.expect_err("no login").kind;
    assert!(
        matches!(error, LoginErrorKind::IssuerMismatch { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_resource_that_lists_no_issuer_is_its_own() {
    let path = "/.well-known/oauth-authorization-server";
    let (world, origin) = legacy(path, str::to_owned).await;
    world.script().instead.remove("/mcp");
    world
        .script()
        .instead
        .remove("/.well-known/oauth-protected-resource/mcp");
    world.script().resource_metadata = json!({"authorization_servers": []});
    let settings = AuthSettings {
        client_id: Some("c".to_owned()),
        ..AuthSettings::default()
    };
    let start = world.begin(&world.server(settings)).await.unwrap();
    let url = start.authorization_url.as_str();
    assert!(url.starts_with(&format!("{origin}/authorize?")), "{url}");
}

#[tokio::test]
async fn only_a_refusal_is_a_challenge() {
    for (status, expected) in [(401, Some("more")), (200, None), (403, None)] {
        let world = World::start().await;
        let challenge = ("www-authenticate", "Bearer scope=\"more\"".to_owned());
        let answer = (status, Some(challenge), String::new());
        world.script().instead.insert("/mcp".to_owned(), answer);
        let server = world.server(AuthSettings::default());
        let start = world.begin(&server).await.unwrap();
        let mut pairs = start.authorization_url.query_pairs();
        let scope = pairs.find(|(name, _)| name == "scope");
        let scope = scope.map(|(_, value)| value.into_owned());
        assert_eq!(scope.as_deref(), expected, "{status}");
    }
}
