//! The `auth/…` scenarios: an embedder of the host whose user always consents.
//!
//! The client lists the tools of the scenario's server and calls one. If a login is required, it starts one, follows
//! the authorization URL like a browser, and passes the callback back. The scenarios' contexts:
//!
//! | scenario | context |
//! |---|---|
//! | `pre-registration` | `client_id`, `client_secret`, `issuer` |
//! | `client-credentials-basic` | `client_id`, `client_secret` |
//! | `client-credentials-jwt` | `client_id`, `private_key_pem`, `signing_algorithm` |
//! | `enterprise-managed-authorization` | `client_id`, `client_secret`, `idp_client_id`, `idp_id_token`, `idp_token_endpoint` |
//! | `wif-jwt-bearer` | `client_id`, `valid_jwt` (and two that must not be sent) |
//!
//! The others have none. `basic-cimd` expects the client metadata document below.

use std::sync::Arc;

use serde_json::Value;
use switchboard::internal::auth::vault::{MemoryVault, Vault};
use switchboard::internal::auth::{
    AuthSettings, Authorizer, Callback, Fetcher, Grant, Login, OAuth, ProtectedServer, SecretSource,
};
use switchboard::internal::transport::http::HttpClient;
use switchboard::{CallError, RequestError, ServerError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use url::{Position, Url};

use crate::{ConnectedHost, Job, text};

/// The client metadata document that the suite expects.
const CLIENT_METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// Redirect URI of the suite's authorization servers. Nothing listens there.
const REDIRECT_URI: &str = "http://localhost:53682/callback";
/// Maximum number of logins per scenario.
const MOST_LOGINS: usize = 3;
/// Maximum size read from an authorization page.
const MAX_HEAD: u64 = 64 * 1024;

/// A user with a browser.
pub(crate) struct Person {
    server: ProtectedServer,
    fetcher: Fetcher,
    vault: Arc<dyn Vault>,
}

impl Person {
    pub(crate) fn new(job: &Job, client: &HttpClient) -> Result<Self, String> {
        let url = Url::parse(&job.url).map_err(text)?;
        let settings = settings(&job.context)?;
        let server = ProtectedServer::new(&url, settings).ok_or("the URL is not an HTTP URL")?;
        Ok(Self {
            server,
            fetcher: Fetcher::new(client),
            vault: Arc::new(MemoryVault::default()),
        })
    }

    /// The authorizer for the host's requests.
    pub(crate) fn authorizer(&self) -> Arc<dyn Authorizer> {
        let (server, fetcher) = (self.server.clone(), self.fetcher.clone());
        Arc::new(OAuth::new(server, fetcher, Arc::clone(&self.vault)))
    }

    /// Calls the tool of the suite's server, logging in if required.
    pub(crate) async fn use_server(&self, session: &ConnectedHost) -> Result<(), String> {
        let mut logins = 0;
        loop {
            let error = match session.try_call("test-tool").await {
                Ok(_) => return Ok(()),
                Err(error) if logins < MOST_LOGINS && wants_login(&error) => error,
                Err(error) => return Err(text(error)),
            };
            logins += 1;
            self.log_in().await?;
            if matches!(error, CallError::Server(_)) {
                session.host.restart(&session.server).await;
            }
        }
    }

    async fn log_in(&self) -> Result<(), String> {
        let redirect_uri = Url::parse(REDIRECT_URI).map_err(text)?;
        let (server, fetcher) = (self.server.clone(), self.fetcher.clone());
        let vault = Arc::clone(&self.vault);
        let start = Login::begin(server, fetcher, vault, redirect_uri);
        let start = start.await.map_err(text)?;
        let callback = browse(&start.authorization_url).await?;
        let callback = Url::parse(&callback).map_err(text)?;
        let parameters = Callback::from_query(callback.query().unwrap_or_default());
        start.login.finish(parameters).await.map_err(text)
    }
}

fn wants_login(error: &CallError) -> bool {
    match error {
        CallError::Server(ServerError::NeedsAuth(_)) => true,
        CallError::Request {
            error: RequestError::Refused(refusal),
            ..
        } => refusal.wants_more_scope() || refusal.status == 401,
        _ => false,
    }
}

fn settings(context: &Value) -> Result<AuthSettings, String> {
    let given = |name: &str| context[name].as_str().map(str::to_owned);
    let address = |name: &str| match given(name) {
        Some(text) => Url::parse(&text)
            .map_err(|error| error.to_string())
            .map(Some),
        None => Ok(None),
    };
    let value = |name: &str| given(name).map(|text| SecretSource::Value(text.into()));
    let name = given("name").unwrap_or_default();
    let grant = match (address("idp_token_endpoint")?, value("valid_jwt")) {
        (Some(token_endpoint), _) => Grant::EnterpriseManaged {
            token_endpoint,
            client_id: given("idp_client_id"),
            client_secret: None,
            id_token: value("idp_id_token").ok_or("the context has no idp_id_token")?,
        },
        (None, Some(assertion)) => Grant::WorkloadIdentity { assertion },
        (None, None) if name.contains("client-credentials") => Grant::ClientCredentials,
        (None, None) => Grant::AuthorizationCode,
    };
    Ok(AuthSettings {
        client_id: given("client_id"),
        client_secret: given("client_secret").map(Into::into),
        private_key: value("private_key_pem"),
        issuer: given("issuer"),
        client_metadata_url: Url::parse(CLIENT_METADATA).ok(),
        grant,
        ..AuthSettings::default()
    })
}

/// Follows a page that redirects at once, as the suite's authorization pages do, and returns the target.
async fn browse(url: &Url) -> Result<String, String> {
    let host = url.host_str().ok_or("the authorization URL has no host")?;
    let port = url.port_or_known_default().unwrap_or(80);
    let mut stream = TcpStream::connect((host, port)).await.map_err(text)?;
    let target = &url[Position::BeforePath..Position::AfterQuery];
    let request =
        format!("GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.map_err(text)?;
    let mut answer = String::new();
    let mut limited = stream.take(MAX_HEAD);
    limited.read_to_string(&mut answer).await.map_err(text)?;
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("location")
            .then(|| value.trim().to_owned())
    });
    location.ok_or_else(|| "the authorization page does not redirect".to_owned())
}
