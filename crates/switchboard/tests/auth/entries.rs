//! Tests of converting configuration entries to authorization settings.

use std::path::PathBuf;
use std::sync::Arc;

use switchboard::internal::audit::{Audit, AuditSettings, LOG};
use switchboard::internal::auth::interactive::logins::LoginTarget;
use switchboard::internal::auth::{Grant, ProtectedServer, SecretSource};
use switchboard::internal::connectors::{ConnectorError, Connectors};
use switchboard::{Host, HostOptions};
use switchboard_config::files::InMemory;
use switchboard_config::resolve::{Config, Inputs};
use switchboard_config::secret::Secret;
use switchboard_store::{LogQuery, MemoryStore, Store as _};

use crate::world::World;
use crate::{call, restart, state};

/// A configuration with one server with these keys.
fn config(url: &str, keys: &str) -> Config {
    let text = format!("[mcp_servers.world]\nurl = \"{url}\"\n{keys}");
    let files = InMemory::default().file("/extra/mcp.toml", text);
    let inputs = Inputs {
        extra_files: vec![PathBuf::from("/extra/mcp.toml")],
        environment: VARIABLES
            .into_iter()
            .chain([("NOT_SET", "later")])
            .collect(),
        ..Inputs::default()
    };
    let config = Config::load(&inputs, &files);
    assert!(!config.has_errors(), "{:?}", config.diagnostics);
    config
}

const VARIABLES: [(&str, &str); 3] = [("TOKEN", "own"), ("SECRET", "hunter2"), ("ID_TOKEN", "id")];

fn connectors() -> Connectors {
    let environment: Vec<_> = VARIABLES
        .into_iter()
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    Connectors::new(environment.into(), PathBuf::from("/project"))
}

fn protected(url: &str, keys: &str) -> Result<Option<ProtectedServer>, ConnectorError> {
    let config = config(url, keys);
    let login = connectors().login(config.servers[0].effective(), &config.settings)?;
    Ok(login.map(|(server, _)| server))
}

const URL: &str = "https://mcp.example/mcp";

#[test]
fn the_table_of_an_entry_becomes_settings() {
    let server = protected(
        URL,
        r#"
[mcp_servers.world.oauth]
client_id = "client"
client_secret_env_var = "SECRET"
scopes = ["a", "b"]
issuer = "https://issuer.example"
metadata_url = "https://issuer.example/metadata"
client_metadata_url = "https://client.example/client.json"
resource = "https://mcp.example"
private_key_file = "key.pem"
key_id = "k1"
grant_type = "enterprise_managed"
idp_token_endpoint = "https://idp.example/token"
idp_client_id = "idp-client"
idp_client_secret_env_var = "TOKEN"
assertion_env_var = "ID_TOKEN"
dpop = true
"#,
    );
    let server = server.unwrap().expect("it can be logged in to");
    let settings = server.settings();
    assert_eq!(settings.client_id.as_deref(), Some("client"));
    assert_eq!(settings.client_secret, Some(Secret::new("hunter2")));
    assert_eq!(settings.scopes, ["a", "b"]);
    assert_eq!(settings.issuer.as_deref(), Some("https://issuer.example"));
    let metadata = settings.metadata_url.as_ref().map(url::Url::as_str);
    assert_eq!(metadata, Some("https://issuer.example/metadata"));
    let document = settings.client_metadata_url.as_ref().map(url::Url::as_str);
    assert_eq!(document, Some("https://client.example/client.json"));
    assert_eq!(settings.resource.as_deref(), Some("https://mcp.example"));
    let key = settings.private_key.as_ref();
    assert!(
        matches!(key, Some(SecretSource::File(path)) if path == &PathBuf::from("/project/key.pem"))
    );
    assert_eq!(settings.key_id.as_deref(), Some("k1"));
    assert_eq!(settings.dpop, Some(true));
    let Grant::EnterpriseManaged {
        token_endpoint,
        client_id,
        client_secret,
        id_token: SecretSource::Value(id_token),
    } = &settings.grant
    else {
        panic!("{:?}", settings.grant);
    };
    assert_eq!(token_endpoint.as_str(), "https://idp.example/token");
    assert_eq!(client_id.as_deref(), Some("idp-client"));
    assert_eq!(client_secret, &Some(Secret::new("own")));
    assert_eq!(id_token, &Secret::new("id"));
}

#[test]
fn a_login_target_has_the_server_and_the_callback_of_its_entry() {
    let config = config(URL, "[mcp_servers.world.oauth]\ncallback_port = 8765");
    let target = LoginTarget::of(&config.servers[0], &connectors(), &config.settings);
    let target = target.unwrap().expect("it can be logged in to");
    assert_eq!(target.server.url().as_str(), URL);
    assert_eq!(target.address.port, Some(8765));
}

#[test]
fn what_is_missing_is_named() {
    let check = |keys: &str, expected: &str| {
        let table = format!("[mcp_servers.world.oauth]\n{keys}");
        let error = protected(URL, &table).unwrap_err();
        assert_eq!(error.to_string(), expected);
    };
    check(
        "client_id = \"c\"\nclient_secret_env_var = \"NOT_SET\"",
        "the variable NOT_SET is not set",
    );
    check(
        "grant_type = \"enterprise_managed\"",
        "`oauth.idp_token_endpoint` is missing",
    );
    check(
        "grant_type = \"workload_identity\"",
        "`oauth.assertion_file` is missing",
    );
    check(
        "metadata_url = \"nowhere\"",
        "`oauth.metadata_url` is not a valid URL",
    );
}

#[test]
fn only_servers_on_a_network_can_be_logged_in_to() {
    for (url, expected) in [
        (URL, Some("https://mcp.example/mcp")),
        ("wss://mcp.example/ws", Some("https://mcp.example/ws")),
        ("unix:///run/x.sock:/mcp", None),
    ] {
        let found = protected(url, "").unwrap();
        let found = found.as_ref().map(|server| server.url().as_str());
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_login_with_the_same_vault_is_found_and_a_bearer_token_takes_its_place() {
    let world = World::start().await;
    let mut connectors = connectors();
    connectors.vault = world.vault();
    let entry = config(world.resource.as_str(), "");
    let spec = connectors.spec(&entry.servers[0], &entry.settings).unwrap();
    let host = Host::with_options(HostOptions::default());
    host.apply(vec![spec]).await;
    host.settled().await;
    assert_eq!(state(&host), "needs-auth");
    let login = connectors
        .login(entry.servers[0].effective(), &entry.settings)
        .unwrap();
    let (server, _) = login.expect("it can be logged in to");
    world.log_in(&server).await.unwrap();
    assert_eq!(restart(&host).await, "connected");
    call(&host).await.expect("the call is answered");

    let entry = config(world.resource.as_str(), "bearer_token_env_var = \"TOKEN\"");
    let spec = connectors.spec(&entry.servers[0], &entry.settings).unwrap();
    host.apply(vec![spec]).await;
    host.settled().await;
    assert_eq!(state(&host), "failed");
    let seen = world.seen("mcp POST /mcp");
    let last = seen.last().expect("a request");
    assert_eq!(last.headers["authorization"], "Bearer own");
    host.shutdown().await;
}

#[tokio::test]
async fn a_renewal_is_written_down_without_its_tokens() {
    let world = World::start().await;
    let store = Arc::new(MemoryStore::new());
    let audit = Audit::start(store.clone(), AuditSettings::default(), "test");
    let mut connectors = connectors();
    connectors.vault = world.vault();
    connectors.audit = Some(audit.clone());
    let entry = config(world.resource.as_str(), "");
    let login = connectors
        .login(entry.servers[0].effective(), &entry.settings)
        .unwrap();
    let (server, _) = login.expect("it can be logged in to");
    world.log_in(&server).await.unwrap();
    let host = Host::with_options(HostOptions::default());
    let spec = connectors.spec(&entry.servers[0], &entry.settings).unwrap();
    host.apply(vec![spec]).await;
    host.settled().await;
    world.expire();
    call(&host).await.expect("the call is answered");
    host.shutdown().await;
    audit.flush().await;
    let log = store.read_log(LOG, LogQuery::default()).await.unwrap();
    let [entry] = log.as_slice() else {
        panic!("one entry, not {log:?}");
    };
    let entry: serde_json::Value = serde_json::from_slice(&entry.value).unwrap();
    let expected = serde_json::json!({
        "by": "test", "process": std::process::id(), "kind": "login", "server": "world", "event": "refresh", "outcome": "done"
    });
    assert_eq!(entry, expected);
}
