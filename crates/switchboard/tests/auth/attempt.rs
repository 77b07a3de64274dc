//! Tests of interactive logins: the callback, a pasted response, and logins in the background.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use switchboard::ServerName;
use switchboard::internal::auth::interactive::callback::CallbackAddress;
use switchboard::internal::auth::interactive::logins::{BackgroundLogins, LoginTarget, Logins};
use switchboard::internal::auth::interactive::paste::PasteError;
use switchboard::internal::auth::interactive::{Attempt, BeginError, hint};
use switchboard::internal::auth::vault::VaultError;
use switchboard::internal::auth::{AuthSettings, Callback, LoginError, LoginErrorKind};
use switchboard_config::secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use crate::world::World;
use crate::{authorization, credentials};

async fn begin(world: &World, address: CallbackAddress) -> Result<Attempt, BeginError> {
    let server = world.server(AuthSettings::default());
    Attempt::begin(server, world.fetcher(), world.vault(), address).await
}

fn redirecting(uri: &str) -> CallbackAddress {
    CallbackAddress {
        redirect_uri: Some(uri.to_owned()),
        port: None,
    }
}

/// The redirect that a browser follows after the user's decision.
fn redirect(authorization_url: &Url, callback: &Callback) -> Url {
    let mut parameters = authorization_url.query_pairs();
    let target = parameters.find(|(name, _)| name == "redirect_uri");
    let mut target = Url::parse(&target.expect("a redirect URI").1).expect("a URL");
    let secret = |secret: &Option<Secret>| secret.as_ref().map(|one| one.expose().to_owned());
    let pairs = [
        ("code", secret(&callback.code)),
        ("state", secret(&callback.state)),
        ("iss", callback.iss.clone()),
        ("error", callback.error.clone()),
    ];
    for (name, value) in pairs {
        if let Some(value) = value {
            target.query_pairs_mut().append_pair(name, &value);
        }
    }
    target
}

/// Requests a page as a browser does.
async fn visit(url: &Url) -> String {
    let port = url.port().expect("a port");
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let (path, query) = (url.path(), url.query().unwrap_or_default());
    let request = format!("GET {path}?{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// The header that the next request to the server gets.
async fn sent(world: &World) -> Option<String> {
    let oauth = world.oauth(&world.server(AuthSettings::default()));
    let shown = credentials(world, &oauth).await;
    authorization(&shown).map(str::to_owned)
}

#[tokio::test]
async fn a_login_ends_with_its_callback() {
    let world = World::start().await;
    let attempt = begin(&world, CallbackAddress::default()).await.unwrap();
    assert!(attempt.listens());
    assert!(attempt.url().as_str().starts_with(&world.issuer));
    let target = redirect(attempt.url(), &world.agree(attempt.url()));
    let (answer, page) = tokio::join!(attempt.answer(), visit(&target));
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert_eq!(sent(&world).await, None);
    attempt.finish(answer).await.unwrap();
    assert_eq!(sent(&world).await.as_deref(), Some("Bearer access-3"));
}

#[tokio::test]
async fn a_response_is_pasted_if_the_redirect_goes_to_another_machine() {
    let world = World::start().await;
    let address = redirecting("https://app.example/done");
    let attempt = begin(&world, address).await.unwrap();
    assert!(!attempt.listens());
    let callback = world.agree(attempt.url());
    let forged = Callback {
        state: Some(Secret::new("guess")),
        ..callback.clone()
    };
    let pasted = redirect(attempt.url(), &forged);
    let error = attempt.read_pasted(pasted.as_str()).unwrap_err();
    assert_eq!(error, PasteError::OtherLogin);
    let pasted = redirect(attempt.url(), &callback);
    let answer = attempt.read_pasted(pasted.as_str()).unwrap();
    attempt.finish(answer).await.unwrap();
    assert_eq!(sent(&world).await.as_deref(), Some("Bearer access-3"));
}

#[tokio::test]
async fn a_login_that_cannot_start_names_the_remedy() {
    let world = World::start().await;
    let held = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = held.local_addr().unwrap().port();
    let taken = redirecting(&format!("http://127.0.0.1:{port}/callback"));
    let error = begin(&world, taken).await.unwrap_err();
    assert!(matches!(error, BeginError::Listen { .. }), "{error}");
    assert_eq!(
        error.hint().as_deref(),
        Some("stop the program that uses the port, or set another `oauth.callback_port`")
    );
    let error = begin(&world, redirecting("nonsense")).await.unwrap_err();
    assert!(matches!(error, BeginError::RedirectUri(_)), "{error}");
    assert_eq!(
        error.hint().as_deref(),
        Some("set `oauth.redirect_uri` to an address such as http://127.0.0.1:8765/callback")
    );
    world.script().metadata = serde_json::json!({"registration_endpoint": null});
    let error = begin(&world, CallbackAddress::default()).await.unwrap_err();
    assert_eq!(
        error.hint().as_deref(),
        Some("register a client with the authorization server and set `oauth.client_id`")
    );
}

#[test]
fn the_remedy_for_a_failing_vault_is_that_of_the_vault() {
    let error = VaultError::new("could not be read", "the keyring is locked");
    let error = LoginErrorKind::Vault(error.with_hint("unlock the keyring"));
    let found = hint(&LoginError::from(error));
    assert_eq!(found.as_deref(), Some("unlock the keyring"));
    let found = hint(&LoginError::from(LoginErrorKind::NoPkce));
    assert_eq!(found, None);
}

fn target(world: &World) -> LoginTarget {
    LoginTarget {
        server: world.server(AuthSettings::default()),
        fetcher: world.fetcher(),
        address: CallbackAddress::default(),
    }
}

fn background(world: &World) -> (ServerName, BackgroundLogins) {
    let name = ServerName::from("world");
    let targets = HashMap::from([(name.clone(), target(world))]);
    (name, BackgroundLogins::new(targets, world.vault()))
}

#[tokio::test]
async fn a_server_has_one_pending_login() {
    let world = World::start().await;
    let (name, logins) = background(&world);
    let first = logins.begin(&name).await.unwrap().expect("a login");
    assert_eq!((first.is_new, first.failed_before), (true, None));
    let second = logins.begin(&name).await.unwrap().expect("a login");
    assert_eq!((second.is_new, &second.url), (false, &first.url));
    visit(&redirect(&first.url, &world.agree(&first.url))).await;
    assert_eq!(first.outcome.wait().await, Ok(()));
    assert_eq!(second.outcome.wait().await, Ok(()));
    assert_eq!(sent(&world).await.as_deref(), Some("Bearer access-3"));
    // The server may ask for another login later.
    let third = logins.begin(&name).await.unwrap().expect("a login");
    assert_eq!((third.is_new, third.failed_before), (true, None));
    assert_ne!(third.url, first.url);
}

#[tokio::test]
async fn a_failed_login_is_reported_to_the_next() {
    let world = World::start().await;
    let (name, logins) = background(&world);
    let first = logins.begin(&name).await.unwrap().expect("a login");
    let denied = Callback {
        code: None,
        error: Some("access_denied".to_owned()),
        ..world.agree(&first.url)
    };
    visit(&redirect(&first.url, &denied)).await;
    let reason = "the login was refused: access_denied".to_owned();
    assert_eq!(first.outcome.wait().await, Err(reason.clone()));
    let second = logins.begin(&name).await.unwrap().expect("a login");
    assert_eq!((second.is_new, second.failed_before), (true, Some(reason)));
    // The pending login ends with its owner.
    drop(logins);
    let abandoned = Err("the login was abandoned".to_owned());
    assert_eq!(second.outcome.wait().await, abandoned);
}

#[tokio::test]
async fn a_login_that_no_user_completes_times_out() {
    let world = World::start().await;
    let (name, logins) = background(&world);
    let logins = logins.waiting(Duration::ZERO);
    let started = logins.begin(&name).await.unwrap().expect("a login");
    assert_eq!(started.patience, Duration::ZERO);
    let timed_out = Err("the login timed out".to_owned());
    assert_eq!(started.outcome.wait().await, timed_out);
}

#[tokio::test]
async fn a_server_that_joins_later_can_be_logged_in_to() {
    let world = World::start().await;
    let logins = BackgroundLogins::new(HashMap::new(), Arc::clone(&world.vault) as _);
    let name = ServerName::from("later");
    assert!(logins.begin(&name).await.unwrap().is_none());
    logins.add(name.clone(), target(&world));
    assert!(logins.begin(&name).await.unwrap().is_some());
}
