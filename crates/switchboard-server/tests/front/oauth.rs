//! Access tokens of an authorization server.

use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256,
    RsaKeyPair, RsaPublicKeyComponents,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use switchboard::internal::auth::Fetcher;
use switchboard::internal::service::Sink;
use switchboard::internal::transport::http::{HttpClient, HttpSettings};
use switchboard_server::http::{Access, HttpOptions, OAuthOptions, Token};
use switchboard_server::{Client, Exchange, Handler, ServiceHandler};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::client::Server;

const GREETING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const AUDIENCE: &str = "https://gateway.example/mcp";
const OPAQUE: &str = "0123456789abcdef0123456789abcdef";

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl Key {
    fn rsa() -> Self {
        let pem = include_bytes!("tls/rsa.key");
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem).unwrap();
        Self::Rsa(Box::new(
            RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap(),
        ))
    }

    fn ec() -> Self {
        let (kind, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let document = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Ec(EcdsaKeyPair::from_pkcs8(kind, document.as_ref(), &random).unwrap())
    }

    fn ed() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Ec(_) => "ES256",
            Self::Ed(_) => "EdDSA",
        }
    }

    fn jwk(&self, id: &str) -> Value {
        match self {
            Self::Rsa(key) => {
                let public: RsaPublicKeyComponents<Vec<u8>> = key.public().into();
                let (n, e) = (base64url(&public.n), base64url(&public.e));
                json!({"kty": "RSA", "kid": id, "use": "sig", "n": n, "e": e})
            }
            Self::Ec(key) => {
                let point = key.public_key().as_ref();
                let (x, y) = (base64url(&point[1..33]), base64url(&point[33..]));
                json!({"kty": "EC", "crv": "P-256", "kid": id, "alg": "ES256", "x": x, "y": y})
            }
            Self::Ed(key) => {
                let x = base64url(key.public_key().as_ref());
                json!({"kty": "OKP", "crv": "Ed25519", "kid": id, "x": x})
            }
        }
    }

    fn signed(&self, header: &Value, claims: &Value) -> String {
        let text = format!(
            "{}.{}",
            base64url(header.to_string().as_bytes()),
            base64url(claims.to_string().as_bytes())
        );
        let random = SystemRandom::new();
        let signature = match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, text.as_bytes(), &mut signature)
                    .unwrap();
                signature
            }
            Self::Ec(key) => key
                .sign(&random, text.as_bytes())
                .unwrap()
                .as_ref()
                .to_vec(),
            Self::Ed(key) => key.sign(text.as_bytes()).as_ref().to_vec(),
        };
        format!("{text}.{}", base64url(&signature))
    }
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// An authorization server on loopback that publishes these keys.
#[derive(Clone)]
struct Issuer {
    url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    fetches: Arc<Mutex<usize>>,
}

impl Issuer {
    async fn start(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self {
            url: format!("http://{}", listener.local_addr().unwrap()),
            keys: Arc::new(Mutex::new(keys)),
            fetches: Arc::default(),
        };
        let serving = issuer.clone();
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let read = socket.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let body = if request.starts_with("GET /keys ") {
                    *serving.fetches.lock().unwrap() += 1;
                    json!({"keys": *serving.keys.lock().unwrap()})
                } else {
                    let keys = format!("{}/keys", serving.url);
                    json!({"issuer": serving.url, "jwks_uri": keys})
                };
                let body = body.to_string();
                let answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                let _ = socket.write_all(answer.as_bytes()).await;
            }
        });
        issuer
    }

    fn claims(&self) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        json!({
            "iss": self.url,
            "sub": "alice",
            "aud": [AUDIENCE, "another"],
            "exp": now.as_secs() + 600,
            "nbf": now.as_secs(),
        })
    }

    fn options(&self) -> HttpOptions {
        let client = HttpClient::new(HttpSettings::default()).unwrap();
        let audience = AUDIENCE.parse().unwrap();
        let mut options = HttpOptions::new(Access::Token(Token::new(OPAQUE).unwrap()));
        options.oauth = Some(OAuthOptions::new(
            self.url.clone(),
            audience,
            Fetcher::new(&client),
        ));
        options
    }
}

/// Records the principals.
struct Recording(ServiceHandler, Arc<Mutex<Vec<String>>>);

impl Handler for Recording {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        self.1.lock().unwrap().push(client.principal.to_string());
        self.0.open(client, sink)
    }
}

async fn presented(server: &Server, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    let answer = server.post(&[("authorization", &bearer)], GREETING).await;
    answer.status
}

#[tokio::test]
async fn access_tokens_of_the_issuer_are_accepted() {
    let keys = [("rsa", Key::rsa()), ("ec", Key::ec()), ("ed", Key::ed())];
    let published = keys.iter().map(|(id, key)| key.jwk(id)).collect();
    let issuer = Issuer::start(published).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let server = Server::serving(issuer.options(), |bench| {
        Arc::new(Recording(bench, Arc::clone(&seen)))
    })
    .await;
    for (id, key) in &keys {
        let header = json!({"alg": key.algorithm(), "kid": id, "typ": "at+jwt"});
        let token = key.signed(&header, &issuer.claims());
        assert_eq!(presented(&server, &token).await, 200, "{id}");
        // From the cache.
        assert_eq!(presented(&server, &token).await, 200, "{id}");
        let (rest, signature) = token.rsplit_once('.').unwrap();
        let mut forged = signature.as_bytes().to_vec();
        forged[10] = if forged[10] == b'A' { b'B' } else { b'A' };
        let forged = format!("{rest}.{}", String::from_utf8(forged).unwrap());
        assert_eq!(presented(&server, &forged).await, 401, "{id}");
    }
    // The token of the server is still accepted.
    assert_eq!(presented(&server, OPAQUE).await, 200);
    assert_eq!(*issuer.fetches.lock().unwrap(), 1);
    let mut expected = vec!["subject:alice"; 6];
    expected.push("token:default");
    assert_eq!(*seen.lock().unwrap(), expected);
    server.stop().await;
}

#[tokio::test]
async fn other_access_tokens_are_refused() {
    let (key, stranger) = (Key::ec(), Key::ec());
    let rsa = Key::rsa();
    let issuer = Issuer::start(vec![key.jwk("ec"), rsa.jwk("rsa")]).await;
    let server = Server::with(issuer.options()).await;
    let header = json!({"alg": "ES256", "kid": "ec"});
    let with = |name: &str, value: Value| {
        let mut claims = issuer.claims();
        claims[name] = value;
        key.signed(&header, &claims)
    };
    assert_eq!(
        presented(&server, &key.signed(&header, &issuer.claims())).await,
        200
    );
    let unsigned = {
        let token = key.signed(&json!({"alg": "none"}), &issuer.claims());
        let (rest, _) = token.rsplit_once('.').unwrap();
        format!("{rest}.")
    };
    for (what, token) in [
        ("none", unsigned),
        (
            "signed by another key",
            stranger.signed(&header, &issuer.claims()),
        ),
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("no issuer", with("iss", Value::Null)),
        (
            "another audience",
            with("aud", json!("https://gateway.example/other")),
        ),
        ("no audience", with("aud", Value::Null)),
        ("expired", with("exp", json!(1_000_000))),
        ("no expiry", with("exp", Value::Null)),
        ("not valid yet", with("nbf", json!(4_000_000_000_u64))),
        ("no subject", with("sub", Value::Null)),
        ("empty subject", with("sub", json!(""))),
        (
            "another algorithm than the key's",
            key.signed(&json!({"alg": "RS256", "kid": "ec"}), &issuer.claims()),
        ),
        (
            "HMAC, keyed with what is public",
            key.signed(&json!({"alg": "HS256", "kid": "rsa"}), &issuer.claims()),
        ),
        (
            "an unknown extension",
            key.signed(
                &json!({"alg": "ES256", "kid": "ec", "crit": ["x"]}),
                &issuer.claims(),
            ),
        ),
        (
            "an id token",
            key.signed(
                &json!({"alg": "ES256", "kid": "ec", "typ": "id+jwt"}),
                &issuer.claims(),
            ),
        ),
        ("not a token", "ey.ey.ey".to_owned()),
    ] {
        assert_eq!(presented(&server, &token).await, 401, "{what}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_client_without_a_token_learns_where_to_get_one() {
    let issuer = Issuer::start(vec![Key::ed().jwk("ed")]).await;
    let server = Server::with(issuer.options()).await;
    let answer = server.post(&[], GREETING).await;
    assert_eq!(answer.status, 401);
    let challenge = answer.header("www-authenticate").unwrap();
    let place = "https://gateway.example/.well-known/oauth-protected-resource/mcp";
    let parameter = format!("resource_metadata=\"{place}\"");
    assert!(
        challenge.starts_with("Bearer ") && challenge.contains(&parameter),
        "{challenge}"
    );
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
    ] {
        let request = hyper::Request::get(path).header("host", "localhost");
        let answer = server.send(request.body(String::new()).unwrap()).await;
        assert_eq!(answer.status, 200);
        let document: Value = serde_json::from_str(&answer.text().await).unwrap();
        assert_eq!(document["resource"], AUDIENCE);
        assert_eq!(document["authorization_servers"], json!([issuer.url]));
    }
    let request = hyper::Request::get("/.well-known/oauth-protected-resource");
    let foreign = request.header("host", "evil.example");
    let answer = server.send(foreign.body(String::new()).unwrap()).await;
    assert_eq!(answer.status, 421);
    server.stop().await;
}

#[tokio::test]
async fn a_new_key_is_fetched_once() {
    let (old, new) = (Key::ed(), Key::ed());
    let issuer = Issuer::start(vec![old.jwk("old")]).await;
    let server = Server::with(issuer.options()).await;
    let signed = |key: &Key, id: &str| {
        let header = json!({"alg": "EdDSA", "kid": id});
        key.signed(&header, &issuer.claims())
    };
    assert_eq!(presented(&server, &signed(&old, "old")).await, 200);
    *issuer.keys.lock().unwrap() = vec![new.jwk("new")];
    assert_eq!(presented(&server, &signed(&new, "new")).await, 200);
    // The key that is no longer published has lost its force, also for tokens that were checked before.
    assert_eq!(presented(&server, &signed(&old, "old")).await, 401);
    for number in 0..20 {
        let token = signed(&old, &format!("unknown-{number}"));
        assert_eq!(presented(&server, &token).await, 401);
    }
    assert_eq!(*issuer.fetches.lock().unwrap(), 2);
    server.stop().await;
}
