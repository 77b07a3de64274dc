//! Tests that discovery cannot reach local addresses: by IP address, by name, by DNS rebinding, by a redirect.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Mutex};

use futures_util::future::BoxFuture;
use serde_json::json;
use switchboard::internal::auth::vault::MemoryVault;
use switchboard::internal::auth::{
    AuthSettings, Authorizer as _, Credentials, FetchErrorKind, Fetcher, Login, LoginErrorKind,
    Network, OAuth, ProtectedServer, Refusal, Target,
};
use switchboard::internal::transport::http::HttpClient;
use url::Url;

use crate::world::{REDIRECT_URI, World, client};

/// A network with scripted DNS. A name with several addresses resolves to one after the other, the last one repeatedly.
#[derive(Debug, Default)]
struct Names(Mutex<HashMap<&'static str, Vec<&'static str>>>);

impl Network for Names {
    fn lookup<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock().expect("the names");
        let found = match names.get_mut(host) {
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers[0]),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        };
        let found = found.map(|text| vec![text.parse().expect("an address")]);
        Box::pin(std::future::ready(found))
    }
}

/// The error when a server points the host to metadata at this address.
async fn led(
    client: &HttpClient,
    server: &str,
    settings: AuthSettings,
    names: &[(&'static str, &[&'static str])],
    metadata: Option<&str>,
) -> LoginErrorKind {
    let names = names
        .iter()
        .map(|(name, answers)| (*name, answers.to_vec()));
    let network = Arc::new(Names(Mutex::new(names.collect())));
    let fetcher = Fetcher::with_network(client, network);
    let url = Url::parse(server).expect(server);
    let server = ProtectedServer::new(&url, settings).expect("a server");
    let vault = Arc::new(MemoryVault::default());
    if let Some(metadata) = metadata {
        // The server announces its metadata when it refuses a request.
        let oauth = OAuth::new(server.clone(), fetcher.clone(), vault.clone());
        let challenges = [format!("Bearer resource_metadata=\"{metadata}\"")];
        let refusal = Refusal {
            status: 401,
            challenges: &challenges,
            attempts: 0,
        };
        let target = Target {
            method: "POST",
            url: &url,
        };
        oauth
            .refused(target, &Credentials::default(), refusal)
            .await;
    }
    let redirect_uri = Url::parse(REDIRECT_URI).expect("an address");
    let start = Login::begin(server, fetcher, vault, redirect_uri).await;
    start.expect_err("no login").kind
}

fn is_forbidden(error: &LoginErrorKind) -> bool {
    matches!(error, LoginErrorKind::Fetch(error) if matches!(error.kind, FetchErrorKind::Forbidden(_)))
}

/// A local listener that must not be connected to.
fn bystander() -> (u16, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    (listener.local_addr().expect("an address").port(), listener)
}

/// Whether a client has connected. Connections queue in the kernel, so checking once is enough.
fn was_spoken_to(listener: &TcpListener) -> bool {
    listener.accept().is_ok()
}

const PUBLIC: (&str, &[&str]) = ("mcp.example", &["93.184.215.14"]);

#[tokio::test]
async fn a_public_server_leads_to_nothing_near() {
    let (port, listener) = bystander();
    let client = client();
    for metadata in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://127.1:{port}/"),
        format!("https://2130706433:{port}/"),
        format!("https://0x7f.1:{port}/"),
        format!("https://[::1]:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://localhost:{port}/"),
        format!("https://a.localhost:{port}/"),
        format!("https://near.example:{port}/"),
        format!("https://user:password@far.example:{port}/"),
        "https://0.0.0.0/".to_owned(),
        "https://10.0.0.1/".to_owned(),
        "https://192.168.1.1/".to_owned(),
        "https://169.254.169.254/latest/meta-data/".to_owned(),
        "https://[fd00::1]/".to_owned(),
        "https://cloud.example/".to_owned(),
        "http://far.example/".to_owned(),
        "file:///etc/passwd".to_owned(),
        "gopher://127.0.0.1:6379/x".to_owned(),
    ] {
        let names: [(&str, &[&str]); 4] = [
            PUBLIC,
            ("far.example", &["93.184.215.14"]),
            ("near.example", &["127.0.0.1"]),
            ("cloud.example", &["169.254.169.254"]),
        ];
        let settings = AuthSettings::default();
        let error = led(
            &client,
            "https://mcp.example/mcp",
            settings,
            &names,
            Some(&metadata),
        )
        .await;
        assert!(is_forbidden(&error), "{metadata}: {error}");
    }
    assert!(!was_spoken_to(&listener));
}

#[tokio::test]
async fn a_name_that_changes_its_mind_gets_no_nearer() {
    let (port, listener) = bystander();
    let client = client();
    // A public address at the first lookup, a local one when connecting.
    let names: [(&str, &[&str]); 1] = [("mcp.example", &["93.184.215.14", "127.0.0.1"])];
    let server = format!("https://mcp.example:{port}/mcp");
    let error = led(&client, &server, AuthSettings::default(), &names, None).await;
    assert!(is_forbidden(&error), "{error}");
    assert!(!was_spoken_to(&listener));
    // Local from the start: a name does not prove that the server is on this machine.
    let names: [(&str, &[&str]); 1] = [("mcp.example", &["127.0.0.1"])];
    let error = led(&client, &server, AuthSettings::default(), &names, None).await;
    assert!(is_forbidden(&error), "{error}");
    assert!(!was_spoken_to(&listener));
}

#[tokio::test]
async fn a_redirect_leads_no_nearer() {
    let (port, listener) = bystander();
    let client = client();
    let world = World::start().await;
    let start = format!("{}/start", world.issuer);
    for target in [
        format!("http://127.0.0.1:{port}/"),
        format!("https://127.0.0.1:{port}/"),
        format!("https://near.example:{port}/"),
        "http://169.254.169.254/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ] {
        // The user has configured the first address, but not the target of its redirect.
        let settings = AuthSettings {
            metadata_url: Url::parse(&start).ok(),
            ..AuthSettings::default()
        };
        let redirect = (302, Some(("location", target.clone())), String::new());
        world.script().instead.insert("/start".to_owned(), redirect);
        let resource =
            json!({"resource": "https://mcp.example/mcp", "authorization_servers": [world.issuer]});
        let resource = (200, None, resource.to_string());
        world
            .script()
            .instead
            .insert("/resource".to_owned(), resource);
        let metadata = format!("{}/resource", world.issuer);
        let names: [(&str, &[&str]); 2] = [PUBLIC, ("near.example", &["127.0.0.1"])];
        let error = led(
            &client,
            "https://mcp.example/mcp",
            settings,
            &names,
            Some(&metadata),
        )
        .await;
        assert!(is_forbidden(&error), "{target}: {error}");
    }
    assert_eq!(world.seen("auth GET /start").len(), 5);
    assert!(!was_spoken_to(&listener));
}

#[tokio::test]
async fn a_server_on_this_machine_leads_around_it_but_not_to_the_cloud() {
    let world = World::start().await;
    let client = client();
    world
        .log_in(&world.server(AuthSettings::default()))
        .await
        .unwrap();
    for metadata in [
        "http://169.254.169.254/x",
        "https://[fe80::1]/",
        "file:///x",
    ] {
        let server = world.resource.as_str();
        let error = led(
            &client,
            server,
            AuthSettings::default(),
            &[],
            Some(metadata),
        )
        .await;
        assert!(is_forbidden(&error), "{metadata}: {error}");
    }
}

#[tokio::test]
async fn answers_are_small_plain_and_do_not_go_in_circles() {
    let world = World::start().await;
    let path = "/.well-known/oauth-authorization-server";
    let circle = format!("{}{path}", world.issuer);
    for (answer, expected) in [
        ((200, None, "{".repeat(300_000)), FetchErrorKind::TooLarge),
        (
            (
                200,
                Some(("content-encoding", "gzip".to_owned())),
                "x".to_owned(),
            ),
            FetchErrorKind::Compressed,
        ),
        (
            (302, Some(("location", circle)), String::new()),
            FetchErrorKind::Redirected,
        ),
    ] {
        world.script().instead.insert(path.to_owned(), answer);
        let server = world.server(AuthSettings::default());
        let error = world.begin(&server).await.expect_err("no login").kind;
        let LoginErrorKind::Fetch(error) = error else {
            panic!("{error}");
        };
        assert_eq!(error.kind, expected);
    }
}
