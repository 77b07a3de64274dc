//! A scripted protected server and its authorization server, both on loopback.
//!
//! The authorization server is strict where a client could be careless: it verifies PKCE, resources, clients and proofs
//! of possession, issues each refresh token once, and revokes the whole family on reuse.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use switchboard::internal::auth::vault::{MemoryVault, Vault};
use switchboard::internal::auth::{
    AuthSettings, Callback, Fetcher, Login, LoginError, LoginErrorKind, LoginStart, OAuth,
    ProtectedServer,
};
use switchboard::internal::transport::http::{HttpClient, HttpSettings};
use switchboard_config::secret::Secret;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::{Url, form_urlencoded};

use crate::proof;

/// Where the callback goes.
pub(crate) const REDIRECT_URI: &str = "http://127.0.0.1:4000/callback";

/// Both servers; dropping it stops them.
pub(crate) struct World {
    pub(crate) vault: Arc<MemoryVault>,
    pub(crate) issuer: String,
    pub(crate) resource: Url,
    /// Created once, since it reads the system's certificates.
    pub(crate) client: HttpClient,
    script: Arc<Mutex<Script>>,
    serving: [JoinHandle<()>; 2],
}

/// The behaviour of the servers, and the requests they have received.
#[derive(Debug)]
pub(crate) struct Script {
    /// Members that replace those of the authorization server's metadata; `null` removes one.
    pub(crate) metadata: Value,
    /// The same for the resource's metadata.
    pub(crate) resource_metadata: Value,
    /// Scripted responses, by path.
    pub(crate) instead: HashMap<String, Answer>,
    /// The resource server's `WWW-Authenticate`; `{metadata}` stands for the URL of its metadata.
    pub(crate) challenge: String,
    /// Scopes that a call needs.
    pub(crate) call_scopes: Vec<String>,
    /// The scope of every token, regardless of the request.
    pub(crate) grants: Option<&'static str>,
    /// The lifetime of an access token in seconds; `None` omits it.
    pub(crate) expires_in: Option<u64>,
    pub(crate) gives_refresh_tokens: bool,
    /// Whether tokens are bound, and the nonces that both servers require.
    pub(crate) binds: bool,
    pub(crate) nonces: Option<(&'static str, &'static str)>,
    /// Every request: server, method, path and content.
    pub(crate) seen: Vec<Seen>,
    issuer: String,
    resource: String,
    codes: HashMap<String, Code>,
    access: HashMap<String, Access>,
    refresh: Option<String>,
    spent: HashSet<String>,
    proofs: HashSet<String>,
    count: u64,
}

/// A status, a header, a body.
pub(crate) type Answer = (u16, Option<(&'static str, String)>, String);

/// One request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Such as `auth POST /token`.
    pub(crate) what: String,
    pub(crate) form: HashMap<String, String>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
    /// The status of the response.
    pub(crate) status: u16,
}

#[derive(Debug)]
struct Code {
    challenge: String,
    client: String,
    scope: String,
    redirect_uri: String,
}

#[derive(Debug)]
struct Access {
    scope: String,
    key: Option<String>,
}

impl World {
    pub(crate) async fn start() -> Self {
        let auth = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let mcp = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = |listener: &TcpListener| listener.local_addr().expect("an address");
        let issuer = format!("http://{}", address(&auth));
        let resource = format!("http://{}/mcp", address(&mcp));
        let script = Arc::new(Mutex::new(Script {
            metadata: json!({}),
            resource_metadata: json!({}),
            instead: HashMap::new(),
            challenge: "Bearer resource_metadata=\"{metadata}\"".to_owned(),
            call_scopes: Vec::new(),
            grants: None,
            expires_in: Some(3600),
            gives_refresh_tokens: true,
            binds: false,
            nonces: None,
            seen: Vec::new(),
            issuer: issuer.clone(),
            resource: resource.clone(),
            codes: HashMap::new(),
            access: HashMap::new(),
            refresh: None,
            spent: HashSet::new(),
            proofs: HashSet::new(),
            count: 0,
        }));
        Self {
            vault: Arc::default(),
            client: client(),
            serving: [
                serve(auth, "auth", Arc::clone(&script)),
                serve(mcp, "mcp", Arc::clone(&script)),
            ],
            resource: Url::parse(&resource).expect("an address"),
            issuer,
            script,
        }
    }

    pub(crate) fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().expect("the script")
    }

    pub(crate) fn fetcher(&self) -> Fetcher {
        Fetcher::new(&self.client)
    }

    pub(crate) fn server(&self, settings: AuthSettings) -> ProtectedServer {
        ProtectedServer::new(&self.resource, settings).expect("a server")
    }

    pub(crate) fn vault(&self) -> Arc<dyn Vault> {
        Arc::clone(&self.vault) as Arc<dyn Vault>
    }

    /// The authorization of requests to the server.
    pub(crate) fn oauth(&self, server: &ProtectedServer) -> OAuth {
        OAuth::new(server.clone(), self.fetcher(), self.vault())
    }

    /// Starts a login.
    pub(crate) async fn begin(&self, server: &ProtectedServer) -> Result<LoginStart, LoginError> {
        let redirect_uri = Url::parse(REDIRECT_URI).expect("an address");
        Login::begin(server.clone(), self.fetcher(), self.vault(), redirect_uri).await
    }

    /// Logs in, with a user who agrees to everything.
    pub(crate) async fn log_in(&self, server: &ProtectedServer) -> Result<(), LoginErrorKind> {
        let start = self.begin(server).await.map_err(|error| error.kind)?;
        let mut parameters = start.authorization_url.query_pairs();
        let redirects = parameters.any(|pair| pair == ("redirect_uri".into(), REDIRECT_URI.into()));
        assert!(redirects, "{}", start.authorization_url);
        let callback = self.agree(&start.authorization_url);
        let finished = start.login.finish(callback).await;
        finished.map_err(|error| error.kind)
    }

    /// The callback that the authorization server would send to the redirect URI.
    pub(crate) fn agree(&self, url: &Url) -> Callback {
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let given = |name: &str| query.get(name).cloned().unwrap_or_default();
        assert_eq!(given("response_type"), "code");
        assert_eq!(given("code_challenge_method"), "S256");
        assert_eq!(given("resource"), self.resource.as_str());
        let mut script = self.script();
        let code = script.next("code");
        let agreed = Code {
            challenge: given("code_challenge"),
            client: given("client_id"),
            scope: given("scope"),
            redirect_uri: given("redirect_uri"),
        };
        script.codes.insert(code.clone(), agreed);
        Callback {
            code: Some(Secret::new(code)),
            state: Some(Secret::new(given("state"))),
            iss: Some(self.issuer.clone()),
            ..Callback::default()
        }
    }

    /// The requests so far whose description starts with `what`.
    pub(crate) fn seen(&self, what: &str) -> Vec<Seen> {
        let script = self.script();
        let seen = script
            .seen
            .iter()
            .filter(|seen| seen.what.starts_with(what));
        seen.cloned().collect()
    }

    /// Invalidates every access token.
    pub(crate) fn expire(&self) {
        self.script().access.clear();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for task in &self.serving {
            task.abort();
        }
    }
}

pub(crate) fn client() -> HttpClient {
    HttpClient::new(HttpSettings::default()).expect("a client")
}

fn serve(listener: TcpListener, role: &'static str, script: Arc<Mutex<Script>>) -> JoinHandle<()> {
    let address = listener.local_addr().expect("an address");
    let router = Router::new().fallback(move |request: axum::extract::Request| {
        let script = Arc::clone(&script);
        async move { answer(role, address, request, &script).await }
    });
    tokio::spawn(async move {
        let _ = axum::serve(listener, router).await;
    })
}

async fn answer(
    role: &'static str,
    address: SocketAddr,
    request: axum::extract::Request,
    script: &Mutex<Script>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    let form = form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let mut seen = Seen {
        what: format!("{role} {} {}", parts.method, parts.uri.path()),
        form,
        headers: parts.headers,
        body,
        status: 0,
    };
    let mut script = script.lock().expect("the script");
    let path = parts.uri.path();
    let url = format!("http://{address}{path}");
    let instead = script.instead.get(path).cloned();
    let response = match instead {
        Some((status, header, body)) => {
            let mut response = Response::builder().status(status);
            if let Some((name, value)) = header {
                response = response.header(name, value);
            }
            response.body(Body::from(body)).expect("an answer")
        }
        None if role == "auth" => script.authorize(&parts.method, path, &url, &seen),
        None => script.protect(&parts.method, path, &url, &seen),
    };
    seen.status = response.status().as_u16();
    script.seen.push(seen);
    response
}

type Refused = (u16, &'static str);

impl Script {
    /// A unique word.
    fn next(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}", self.count)
    }

    fn authorize(&mut self, method: &Method, path: &str, url: &str, seen: &Seen) -> Response<Body> {
        match (method.as_str(), path) {
            ("GET", "/.well-known/oauth-authorization-server") => {
                let issuer = &self.issuer;
                let metadata = json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{issuer}/authorize"),
                    "token_endpoint": format!("{issuer}/token"),
                    "registration_endpoint": format!("{issuer}/register"),
                    "revocation_endpoint": format!("{issuer}/revoke"),
                    "code_challenge_methods_supported": ["plain", "S256"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "authorization_response_iss_parameter_supported": true,
                    "dpop_signing_alg_values_supported": ["ES256"],
                });
                json_answer(200, &patched(metadata, &self.metadata))
            }
            ("POST", "/register") => {
                let id = self.next("client");
                json_answer(201, &json!({"client_id": id}))
            }
            ("POST", "/token") => self.token(url, seen),
            ("POST", "/revoke") => json_answer(200, &json!({})),
            _ => json_answer(404, &json!({})),
        }
    }

    fn token(&mut self, url: &str, seen: &Seen) -> Response<Body> {
        let nonce = self.nonces.map(|(auth, _)| auth);
        let key = match self.proof(seen, "POST", url, None, nonce) {
            Ok(key) => key,
            Err((status, error)) => {
                let mut response = json_answer(status, &json!({"error": error}));
                if let Some(nonce) = nonce {
                    let nonce = nonce.parse().expect("a nonce");
                    response.headers_mut().insert("dpop-nonce", nonce);
                }
                return response;
            }
        };
        match self.grant(seen) {
            Ok(Granted::Scope(scope)) => self.tokens(scope, key),
            Ok(Granted::Assertion(answer)) => json_answer(200, &answer),
            Err((status, error)) => json_answer(status, &json!({"error": error})),
        }
    }

    fn grant(&mut self, seen: &Seen) -> Result<Granted, Refused> {
        let given = |name: &str| seen.form.get(name).cloned().unwrap_or_default();
        let client = match seen.headers.get("authorization") {
            Some(value) => basic(value.to_str().unwrap_or_default()),
            None => given("client_id"),
        };
        let kind = given("grant_type");
        if kind != TOKEN_EXCHANGE && given("resource") != self.resource {
            return Err((400, "invalid_target"));
        }
        match kind.as_str() {
            "authorization_code" => {
                let code = self.codes.remove(&given("code"));
                let code = code.ok_or((400, "invalid_grant"))?;
                let challenge = Sha256::digest(given("code_verifier").as_bytes());
                if BASE64_URL_SAFE_NO_PAD.encode(challenge) != code.challenge
                    || given("redirect_uri") != code.redirect_uri
                    || client.split(':').next() != Some(&code.client)
                {
                    return Err((400, "invalid_grant"));
                }
                Ok(Granted::Scope(code.scope))
            }
            "refresh_token" => {
                let token = given("refresh_token");
                if self.spent.contains(&token) {
                    // A reused refresh token may be stolen: revoke the whole family.
                    self.refresh = None;
                    self.access.clear();
                }
                if self.refresh.as_ref() != Some(&token) {
                    return Err((400, "invalid_grant"));
                }
                self.spent.insert(token);
                Ok(Granted::Scope(String::new()))
            }
            "client_credentials" => match client.as_str() {
                "machine:hunter2" | "signer" => Ok(Granted::Scope(given("scope"))),
                _ => Err((401, "invalid_client")),
            },
            JWT_BEARER => match (given("assertion").as_str(), client.as_str()) {
                ("platform-token", "workload" | "") | ("id-jag", "machine:hunter2") => {
                    Ok(Granted::Scope(given("scope")))
                }
                _ => Err((400, "invalid_grant")),
            },
            TOKEN_EXCHANGE => {
                let asked = [
                    given("audience"),
                    given("resource"),
                    given("subject_token"),
                    given("requested_token_type"),
                ];
                let expected = [self.issuer.as_str(), &self.resource, "id-token", ID_JAG];
                if asked != expected.map(str::to_owned) {
                    return Err((400, "invalid_request"));
                }
                Ok(Granted::Assertion(json!({
                    "access_token": "id-jag", "token_type": "N_A", "issued_token_type": ID_JAG,
                })))
            }
            _ => Err((400, "unsupported_grant_type")),
        }
    }

    fn tokens(&mut self, scope: String, key: Option<String>) -> Response<Body> {
        let access = self.next("access");
        let bound = self.binds && key.is_some();
        let mut answer = json!({
            "access_token": access,
            "token_type": if bound { "DPoP" } else { "Bearer" },
        });
        if let Some(seconds) = self.expires_in {
            answer["expires_in"] = seconds.into();
        }
        if self.gives_refresh_tokens {
            let refresh = self.next("refresh");
            answer["refresh_token"] = refresh.clone().into();
            self.refresh = Some(refresh);
        }
        let key = key.filter(|_| bound);
        let scope = self.grants.map_or(scope, str::to_owned);
        self.access.insert(access, Access { scope, key });
        json_answer(200, &answer)
    }

    fn protect(&mut self, method: &Method, path: &str, url: &str, seen: &Seen) -> Response<Body> {
        let metadata = "/.well-known/oauth-protected-resource/mcp";
        match (method.as_str(), path) {
            ("GET", found) if found == metadata => {
                let own = json!({
                    "resource": self.resource,
                    "authorization_servers": [self.issuer],
                });
                json_answer(200, &patched(own, &self.resource_metadata))
            }
            ("POST", "/mcp") => {
                let place = url.replace("/mcp", metadata);
                match self.admitted(url, seen) {
                    Ok(()) => json_answer(200, &speak(&seen.body)),
                    Err((403, scopes)) => {
                        let challenge = format!(
                            r#"Bearer error="insufficient_scope", scope="{scopes}", resource_metadata="{place}""#
                        );
                        challenged(403, &challenge)
                    }
                    Err((_, "use_dpop_nonce")) => {
                        let mut response = challenged(401, r#"DPoP error="use_dpop_nonce""#);
                        let (_, nonce) = self.nonces.expect("a nonce");
                        let nonce = nonce.parse().expect("a nonce");
                        response.headers_mut().insert("dpop-nonce", nonce);
                        response
                    }
                    Err(_) => challenged(401, &self.challenge.replace("{metadata}", &place)),
                }
            }
            _ => json_answer(405, &json!({})),
        }
    }

    fn admitted(&mut self, url: &str, seen: &Seen) -> Result<(), (u16, &'static str)> {
        let shown = seen.headers.get("authorization");
        let shown = shown
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let (scheme, token) = shown.split_once(' ').unwrap_or_default();
        let access = self.access.get(token).ok_or((401, ""))?;
        let scheme_fits = match access.key {
            Some(_) => scheme == "DPoP",
            None => scheme == "Bearer",
        };
        if !scheme_fits {
            return Err((401, ""));
        }
        let (key, scope) = (access.key.clone(), access.scope.clone());
        if key.is_some() {
            let nonce = self.nonces.map(|(_, resource)| resource);
            let found = self.proof(seen, "POST", url, Some(token), nonce)?;
            if found != key {
                return Err((401, ""));
            }
        }
        let has = |wanted: &String| scope.split(' ').any(|one| one == wanted);
        if seen.body.contains("tools/call") && !self.call_scopes.iter().all(has) {
            // Leaked for a `'static` string; harmless in a test.
            return Err((403, self.call_scopes.join(" ").leak()));
        }
        Ok(())
    }

    /// The thumbprint of the key whose possession a request proves.
    fn proof(
        &mut self,
        seen: &Seen,
        method: &str,
        url: &str,
        token: Option<&str>,
        nonce: Option<&str>,
    ) -> Result<Option<String>, Refused> {
        let Some(proof) = seen.headers.get("dpop") else {
            return Ok(None);
        };
        let proof = proof.to_str().expect("a proof is text");
        let verified =
            proof::verify(proof, method, url, token).map_err(|problem| (400, problem))?;
        if !self.proofs.insert(verified.id) {
            return Err((400, "a proof was used twice"));
        }
        if nonce.is_some() && verified.nonce.as_deref() != nonce {
            return Err((400, "use_dpop_nonce"));
        }
        Ok(Some(verified.thumbprint))
    }
}

enum Granted {
    Scope(String),
    Assertion(Value),
}

const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";

/// Minimal responses of a server of the stateless era.
fn speak(body: &str) -> Value {
    let message: Value = serde_json::from_str(body).expect("a message is JSON");
    let result = match message["method"].as_str() {
        Some("server/discover") => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "world", "version": "1"}, "ttlMs": 60_000, "cacheScope": "private",
        }),
        Some("tools/list") => json!({
            "resultType": "complete", "tools": [{"name": "tool", "inputSchema": {"type": "object"}}],
            "ttlMs": 60_000, "cacheScope": "private",
        }),
        _ => json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}]}),
    };
    json!({"jsonrpc": "2.0", "id": message["id"], "result": result})
}

fn challenged(status: u16, challenge: &str) -> Response<Body> {
    let mut response = json_answer(status, &json!({}));
    let challenge = challenge.parse().expect("a challenge");
    response.headers_mut().insert("www-authenticate", challenge);
    response
}

fn json_answer(status: u16, body: &Value) -> Response<Body> {
    Response::builder()
        .status(StatusCode::from_u16(status).expect("a status"))
        .header("content-type", "application/json")
        .body(Body::from(body.to_string()))
        .expect("an answer")
}

fn patched(mut document: Value, patch: &Value) -> Value {
    for (name, value) in patch.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    if let Some(members) = document.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    document
}

/// Decodes the name and secret of basic authentication.
fn basic(value: &str) -> String {
    let encoded = value.strip_prefix("Basic ").unwrap_or_default();
    let decoded = BASE64_STANDARD.decode(encoded).unwrap_or_default();
    String::from_utf8_lossy(&decoded).into_owned()
}
