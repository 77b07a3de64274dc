//! Who makes a request: named tokens, their profiles, and sessions that belong to them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use switchboard::internal::service::Sink;
use switchboard_server::http::{
    Access, HttpOptions, NamedTokens, NewToken, TokenName, TokenSources,
};
use switchboard_server::{Client, Exchange, Handler, ServiceHandler};
use switchboard_store::{ErrorKind, MemoryStore, StoreError, UnavailableStore};

use crate::bench::soon;
use crate::client::{Answered, MODERN, Server};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
const GREETING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const FILE_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Serves two profiles and records the clients.
struct Profiles(ServiceHandler, Arc<Mutex<Vec<Client>>>);

impl Handler for Profiles {
    fn open(&self, client: &Client, sink: Arc<dyn Sink>) -> Box<dyn Exchange> {
        self.1.lock().unwrap().push(client.clone());
        self.0.open(client, sink)
    }

    fn has_profile(&self, profile: &str) -> bool {
        ["work", "home"].contains(&profile)
    }
}

/// A server with a token file and named tokens.
struct Guarded {
    server: Server,
    tokens: NamedTokens,
    clients: Arc<Mutex<Vec<Client>>>,
    folder: tempfile::TempDir,
}

impl Guarded {
    async fn start() -> Self {
        Self::with(NamedTokens::new(Arc::new(MemoryStore::new()))).await
    }

    async fn with(tokens: NamedTokens) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        write_token(&file, FILE_TOKEN);
        let mut sources = TokenSources::default();
        sources.files.push((TokenName::default_token(), file));
        sources.named = Some(tokens.clone());
        let clients = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&clients);
        let options = HttpOptions::new(Access::Tokens(sources));
        let server = Server::serving(options, |bench| Arc::new(Profiles(bench, seen))).await;
        Self {
            server,
            tokens,
            clients,
            folder,
        }
    }

    /// Creates a token and returns its header.
    async fn token(&self, name: &str, profile: Option<&str>) -> String {
        let mut new = NewToken::new(TokenName::new(name).unwrap());
        new.profile = profile.map(str::to_owned);
        let token = self.tokens.create(&new).await.unwrap();
        format!("Bearer {}", token.expose())
    }

    async fn greet(&self, path: &str, token: &str) -> Answered {
        let headers = [("authorization", token)];
        self.server.post_to(path, &headers, GREETING).await
    }

    async fn session(&self, path: &str, token: &str) -> String {
        let answer = self.greet(path, token).await;
        assert_eq!(answer.status, 200);
        answer.header("mcp-session-id").unwrap().to_owned()
    }

    async fn list(&self, path: &str, token: &str, session: &str) -> u16 {
        let headers = [("authorization", token), ("mcp-session-id", session)];
        self.server.post_to(path, &headers, LIST).await.status
    }

    async fn listen(&self, token: &str, session: &str, last: Option<&str>) -> Answered {
        let mut headers = vec![
            ("authorization", token),
            ("mcp-session-id", session),
            ("accept", "text/event-stream"),
        ];
        headers.extend(last.map(|last| ("last-event-id", last)));
        self.server.bare("GET", &headers).await
    }

    /// The principals and profiles of all clients so far.
    fn seen(&self) -> Vec<String> {
        let clients = self.clients.lock().unwrap();
        let shown = clients.iter().map(|client| {
            let profile = client.profile.as_deref().unwrap_or("-");
            format!("{} {profile}", client.principal)
        });
        shown.collect()
    }
}

fn write_token(file: &std::path::Path, token: &str) {
    std::fs::write(file, token).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o600)).unwrap();
    }
}

#[tokio::test]
async fn a_session_belongs_to_the_token_that_opened_it() {
    let guarded = Guarded::start().await;
    let (ci, other) = (
        guarded.token("ci", None).await,
        guarded.token("other", None).await,
    );
    let file = format!("Bearer {FILE_TOKEN}");
    let session = guarded.session("/mcp", &ci).await;
    assert_eq!(guarded.list("/mcp", &ci, &session).await, 200);
    let mut stream = guarded.listen(&ci, &session, None).await;
    let first = stream.event().await.unwrap().id.unwrap();
    for stolen in [&other, &file] {
        let headers = [
            ("authorization", stolen.as_str()),
            ("mcp-session-id", session.as_str()),
        ];
        assert_eq!(guarded.list("/mcp", stolen, &session).await, 404);
        let notified = guarded.server.post(&headers, NOTIFICATION).await;
        assert_eq!(notified.status, 404);
        assert_eq!(guarded.listen(stolen, &session, None).await.status, 404);
        let resumed = guarded.listen(stolen, &session, Some(&first)).await;
        assert_eq!(resumed.status, 404);
        let ended = guarded.server.bare("DELETE", &headers).await;
        // Word for word as for a session that does not exist.
        let text = ended.text().await;
        let unknown = [headers[0], ("mcp-session-id", "unknown")];
        let unknown = guarded.server.bare("DELETE", &unknown).await;
        assert_eq!((unknown.status, unknown.text().await), (404, text));
    }
    // The thieves did not disturb its owner.
    assert_eq!(guarded.list("/mcp", &ci, &session).await, 200);
    drop(stream);
    assert_eq!(guarded.seen(), ["token:ci -"]);
    guarded.server.stop().await;
}

#[tokio::test]
async fn each_profile_is_an_endpoint() {
    let guarded = Guarded::start().await;
    let any = guarded.token("any", None).await;
    let work = guarded.token("work-only", Some("work")).await;
    let lost = guarded.token("lost", Some("no-longer-configured")).await;
    for (token, path, expected) in [
        (&any, "/mcp", 200),
        (&any, "/mcp/work", 200),
        (&any, "/mcp/home", 200),
        (&any, "/mcp/unknown", 404),
        (&any, "/mcp/", 404),
        (&any, "/mcpwork", 404),
        (&any, "/mcp/work/more", 404),
        (&work, "/mcp", 200),
        (&work, "/mcp/work", 200),
        (&work, "/mcp/home", 403),
        (&work, "/mcp/unknown", 403),
        (&lost, "/mcp", 404),
    ] {
        assert_eq!(guarded.greet(path, token).await.status, expected, "{path}");
    }
    assert_eq!(
        guarded.seen(),
        [
            "token:any -",
            "token:any work",
            "token:any home",
            "token:work-only work",
            "token:work-only work"
        ]
    );
    // A session keeps its profile.
    let session = guarded.session("/mcp/work", &any).await;
    assert_eq!(guarded.list("/mcp/work", &any, &session).await, 200);
    for path in ["/mcp", "/mcp/home"] {
        assert_eq!(guarded.list(path, &any, &session).await, 404, "{path}");
    }
    // So does a single request.
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{MODERN}}}}}"#);
    let headers = [
        ("authorization", any.as_str()),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/list"),
    ];
    let answer = guarded.server.post_to("/mcp/home", &headers, &body).await;
    assert_eq!(answer.status, 200);
    assert_eq!(guarded.seen().last().unwrap(), "token:any home");
    guarded.server.stop().await;
}

#[tokio::test]
async fn a_revoked_token_stops_at_once() {
    let guarded = Guarded::start().await;
    let name = TokenName::new("ci").unwrap();
    let ci = guarded.token("ci", None).await;
    let other = guarded.token("other", None).await;
    let session = guarded.session("/mcp", &ci).await;
    let others = guarded.session("/mcp", &other).await;
    let mut stream = guarded.listen(&ci, &session, None).await;
    stream.event().await.unwrap();
    let mut untouched = guarded.listen(&other, &others, None).await;
    untouched.event().await.unwrap();
    // A call that never ends by itself, of each era.
    let call = r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"report","arguments":{},"_meta":{"progressToken":7}}}"#;
    let headers = [
        ("authorization", ci.as_str()),
        ("mcp-session-id", session.as_str()),
    ];
    let mut stateful = guarded.server.post(&headers, call).await;
    stateful.data().await.unwrap();
    let call = call.replace(r#""progressToken":7"#, r#""progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#);
    let headers = [
        ("authorization", ci.as_str()),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "report"),
    ];
    let mut stateless = guarded.server.post(&headers, &call).await;
    stateless.data().await.unwrap();
    assert!(guarded.tokens.revoke(&name).await.unwrap());
    for answer in [&mut stream, &mut stateful, &mut stateless] {
        while answer.event().await.is_some() {}
    }
    // Both calls were cancelled.
    guarded.server.bench.ended.reaches(2).await;
    assert_eq!(guarded.greet("/mcp", &ci).await.status, 401);
    // A new token of the same name does not inherit the session.
    let again = guarded.token("ci", None).await;
    assert_eq!(guarded.list("/mcp", &again, &session).await, 404);
    assert_eq!(guarded.list("/mcp", &other, &others).await, 200);
    drop(untouched);
    guarded.server.stop().await;
}

#[tokio::test]
async fn an_expired_token_stops_at_once() {
    let guarded = Guarded::start().await;
    let mut new = NewToken::new(TokenName::new("brief").unwrap());
    new.expires_in = Some(Duration::from_secs(1));
    let token = guarded.tokens.create(&new).await.unwrap();
    let token = format!("Bearer {}", token.expose());
    let session = guarded.session("/mcp", &token).await;
    let mut stream = guarded.listen(&token, &session, None).await;
    while stream.event().await.is_some() {}
    let answer = guarded.greet("/mcp", &token).await;
    assert_eq!(answer.status, 401);
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(challenge.contains("the token has expired"), "{challenge}");
    // It is listed, so that its owner sees why it does not work.
    assert_eq!(guarded.tokens.list().await.unwrap().len(), 1);
    guarded.server.stop().await;
}

#[tokio::test]
async fn a_token_file_can_be_replaced_while_the_server_runs() {
    let guarded = Guarded::start().await;
    let file = guarded.folder.path().join("token");
    let old = format!("Bearer {FILE_TOKEN}");
    let session = guarded.session("/mcp", &old).await;
    let mut stream = guarded.listen(&old, &session, None).await;
    stream.event().await.unwrap();
    write_token(&file, "another-token-of-another-length");
    while stream.event().await.is_some() {}
    assert_eq!(guarded.greet("/mcp", &old).await.status, 401);
    let new = "Bearer another-token-of-another-length";
    assert_eq!(guarded.greet("/mcp", new).await.status, 200);
    assert_eq!(guarded.seen(), ["token:default -", "token:default -"]);
    guarded.server.stop().await;
}

#[tokio::test]
async fn the_last_use_of_a_token_is_recorded() {
    let guarded = Guarded::start().await;
    let ci = guarded.token("ci", None).await;
    assert_eq!(guarded.tokens.list().await.unwrap()[0].last_used, None);
    guarded.session("/mcp", &ci).await;
    let recorded = async {
        while guarded.tokens.list().await.unwrap()[0].last_used.is_none() {
            tokio::task::yield_now().await;
        }
    };
    soon(recorded).await;
    guarded.server.stop().await;
}

#[tokio::test]
async fn tokens_that_cannot_be_read_are_not_accepted() {
    let error = StoreError::new(ErrorKind::Unavailable, "the disk is gone");
    let tokens = NamedTokens::new(Arc::new(UnavailableStore::new(error)));
    let guarded = Guarded::with(tokens).await;
    let answer = guarded
        .greet("/mcp", "Bearer a-token-that-may-be-valid")
        .await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("5"))
    );
    let text = answer.text().await;
    assert!(!text.contains("disk"), "{text}");
    // The one in the file does not depend on the store.
    let file = format!("Bearer {FILE_TOKEN}");
    assert_eq!(guarded.greet("/mcp", &file).await.status, 200);
    guarded.server.stop().await;
}

#[tokio::test]
async fn a_token_is_accepted_in_its_header_only() {
    let guarded = Guarded::start().await;
    for path in [
        format!("/mcp?token={FILE_TOKEN}"),
        format!("/mcp?access_token={FILE_TOKEN}"),
        format!("/mcp/{FILE_TOKEN}"),
    ] {
        let answer = guarded.server.post_to(&path, &[], GREETING).await;
        assert_eq!(answer.status, 401, "{path}");
    }
    for (name, value) in [
        ("cookie", format!("token={FILE_TOKEN}")),
        ("proxy-authorization", format!("Bearer {FILE_TOKEN}")),
        ("x-api-key", FILE_TOKEN.to_owned()),
    ] {
        let answer = guarded.server.post(&[(name, &value)], GREETING).await;
        assert_eq!(answer.status, 401, "{name}");
    }
    guarded.server.stop().await;
}
