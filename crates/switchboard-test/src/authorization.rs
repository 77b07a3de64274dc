//! A fake MCP server that requires a login, with its authorization server, on one loopback port.
//!
//! It follows a script and counts requests. Refresh tokens rotate, and reuse of an old one revokes the login, as RFC
//! 9700 recommends. It uses plain threads and the standard library only, so that every crate's tests can use it.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What the authorization page does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Consent {
    /// The user consents.
    #[default]
    Given,
    /// The user denies access.
    Refused,
    /// Redirects with a wrong state first, then with the right one.
    AfterAStranger,
    /// The user never answers.
    Never,
}

/// The behaviour of the server, and the requests it has counted.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// Behaviour of the authorization page.
    pub consent: Consent,
    /// Lifetime of the tokens of a login, in seconds: 0 by default.
    pub login_lifetime: u32,
    /// Lifetime of refreshed tokens, in seconds.
    pub renewed_lifetime: u32,
    /// Duration of a refresh request.
    pub renewal_takes: Duration,
    /// Whether `/mcp` can be used without a token.
    pub is_open: bool,
    /// Number of logins.
    pub logins: usize,
    /// Number of refreshes.
    pub renewals: usize,
    /// Number of refresh tokens that were used twice.
    pub reuses: usize,
    /// Number of requests to `/mcp` with a token, valid or not.
    pub presented: usize,
    /// Number of tokens revoked by the client.
    pub revocations: usize,
    /// The scopes requested by the last login.
    pub scopes: String,
    /// The last redirect URI that the browser was sent to.
    pub redirected_to: String,
    /// Every token ever issued, to check that none leaks.
    pub given: Vec<String>,
    /// Internal state of the server.
    pub memory: Memory,
}

/// Internal state: the tokens of the one login.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    access: Option<String>,
    refresh: Option<String>,
    used: Vec<String>,
    codes: usize,
    has_ended: bool,
}

/// The running server, stopped on drop.
#[derive(Debug)]
pub struct AuthorizationServer {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    thread: Option<JoinHandle<()>>,
}

impl AuthorizationServer {
    /// Starts the server.
    ///
    /// # Panics
    /// If the loopback interface is not available.
    #[expect(clippy::expect_used, reason = "the test needs a loopback interface")]
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listener = listener.expect("a loopback interface");
        let address = listener.local_addr().expect("a loopback interface");
        let script = Arc::new(Mutex::new(script));
        let shared = Arc::clone(&script);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let script = Arc::clone(&shared);
                if held(&script).memory.has_ended {
                    return;
                }
                std::thread::spawn(move || serve(&stream, address, &script));
            }
        });
        Self {
            address,
            script,
            thread: Some(thread),
        }
    }

    /// The URL of the MCP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// The behaviour, which can be changed, and the counters.
    pub fn script(&self) -> MutexGuard<'_, Script> {
        held(&self.script)
    }
}

impl Drop for AuthorizationServer {
    fn drop(&mut self) {
        self.script().memory.has_ended = true;
        // Unblocks the `accept` of the thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Request {
    method: String,
    path: String,
    query: HashMap<String, String>,
    token: Option<String>,
    body: String,
}

struct Response {
    status: &'static str,
    headers: String,
    body: String,
}

fn serve(mut stream: &TcpStream, address: SocketAddr, script: &Mutex<Script>) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(30)));
    let Some(request) = read(stream) else { return };
    let response = answer(&request, address, script);
    let text = format!(
        "HTTP/1.1 {}\r\nContent-Length: {}\r\nConnection: close\r\n{}\r\n{}",
        response.status,
        response.body.len(),
        response.headers,
        response.body
    );
    let _ = stream.write_all(text.as_bytes());
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (mut length, mut token) = (0, None);
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => token = value.trim().strip_prefix("Bearer ").map(str::to_owned),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    Some(Request {
        method,
        path: path.to_owned(),
        query: form(query),
        token,
        body: String::from_utf8(body).ok()?,
    })
}

fn answer(request: &Request, address: SocketAddr, script: &Mutex<Script>) -> Response {
    let issuer = format!("http://{address}");
    match (request.method.as_str(), request.path.as_str()) {
        (_, "/mcp") => mcp(request, &issuer, script),
        ("GET", "/.well-known/oauth-protected-resource/mcp") => json(
            "200 OK",
            format!(r#"{{"resource":"{issuer}/mcp","authorization_servers":["{issuer}"]}}"#),
        ),
        ("GET", "/.well-known/oauth-authorization-server") => json(
            "200 OK",
            format!(
                r#"{{"issuer":"{issuer}","authorization_endpoint":"{issuer}/authorize","token_endpoint":"{issuer}/token",
                "registration_endpoint":"{issuer}/register","revocation_endpoint":"{issuer}/revoke",
                "response_types_supported":["code"],"grant_types_supported":["authorization_code","refresh_token"],
                "code_challenge_methods_supported":["S256"],"token_endpoint_auth_methods_supported":["none"],
                "authorization_response_iss_parameter_supported":true}}"#
            ),
        ),
        ("POST", "/register") => json(
            "201 Created",
            r#"{"client_id":"client-1","token_endpoint_auth_method":"none"}"#.to_owned(),
        ),
        ("GET", "/authorize") => authorize(request, &issuer, script),
        ("POST", "/token") => token(&form(&request.body), script),
        ("POST", "/revoke") => {
            let mut script = held(script);
            script.revocations += 1;
            script.memory.access = None;
            script.memory.refresh = None;
            json("200 OK", String::new())
        }
        _ => json("404 Not Found", "{}".to_owned()),
    }
}

/// A stateful MCP server with two tools, for clients with a token.
fn mcp(request: &Request, issuer: &str, script: &Mutex<Script>) -> Response {
    let mut script = held(script);
    script.presented += usize::from(request.token.is_some());
    let is_known = request.token.is_some() && request.token == script.memory.access;
    if !script.is_open && !is_known {
        let metadata = format!("{issuer}/.well-known/oauth-protected-resource/mcp");
        return Response {
            status: "401 Unauthorized",
            headers: format!("WWW-Authenticate: Bearer resource_metadata=\"{metadata}\"\r\n"),
            body: String::new(),
        };
    }
    drop(script);
    if request.method != "POST" {
        return json("405 Method Not Allowed", String::new());
    }
    let Some(id) = member(&request.body, "id") else {
        return json("202 Accepted", String::new());
    };
    let result = match member(&request.body, "method") {
        Some("\"initialize\"") => {
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"guarded","version":"1"}}"#
        }
        Some("\"tools/list\"") => {
            r#"{"tools":[{"name":"one","inputSchema":{"type":"object"}},{"name":"two","inputSchema":{"type":"object"}}]}"#
        }
        Some("\"ping\"") => "{}",
        _ => {
            let error = r#"{"code":-32601,"message":"method not found"}"#;
            let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#);
            return json("400 Bad Request", body);
        }
    };
    let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
    json("200 OK", body)
}

fn authorize(request: &Request, issuer: &str, script: &Mutex<Script>) -> Response {
    let parameter = |name: &str| request.query.get(name).cloned().unwrap_or_default();
    let (redirect, state) = (parameter("redirect_uri"), parameter("state"));
    let issuer = escaped(issuer);
    let consent = held(script).consent;
    if consent == Consent::AfterAStranger {
        let stranger = format!("{redirect}?code=stolen&state=other&iss={issuer}");
        fetch(&stranger);
    }
    let mut script = held(script);
    script.scopes = parameter("scope");
    let outcome = match consent {
        Consent::Never => return json("200 OK", "are you there?".to_owned()),
        Consent::Refused => {
            "error=access_denied&error_description=The%20user%20said%20no".to_owned()
        }
        Consent::AfterAStranger | Consent::Given => {
            script.memory.codes += 1;
            format!("code=code-{}", script.memory.codes)
        }
    };
    let state = escaped(&state);
    script.redirected_to = format!("{redirect}?{outcome}&state={state}&iss={issuer}");
    Response {
        status: "302 Found",
        headers: format!("Location: {}\r\n", script.redirected_to),
        body: String::new(),
    }
}

fn token(form: &HashMap<String, String>, script: &Mutex<Script>) -> Response {
    let parameter = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
    let refused = |error: &str| json("400 Bad Request", format!(r#"{{"error":"{error}"}}"#));
    let lifetime = match parameter("grant_type") {
        "authorization_code" => {
            let mut script = held(script);
            let code = format!("code-{}", script.memory.codes);
            if parameter("code") != code || parameter("code_verifier").len() < 43 {
                return refused("invalid_grant");
            }
            script.logins += 1;
            script.login_lifetime
        }
        "refresh_token" => {
            let takes = held(script).renewal_takes;
            std::thread::sleep(takes);
            let mut script = held(script);
            let presented_token = parameter("refresh_token").to_owned();
            if script.memory.used.contains(&presented_token) {
                // An old refresh token was used again, by theft or a race: the login is revoked.
                script.reuses += 1;
                script.memory.access = None;
                script.memory.refresh = None;
                return refused("invalid_grant");
            }
            if script.memory.refresh.as_ref() != Some(&presented_token) {
                return refused("invalid_grant");
            }
            script.memory.used.push(presented_token);
            script.renewals += 1;
            script.renewed_lifetime
        }
        _ => return refused("unsupported_grant_type"),
    };
    let mut script = held(script);
    let number = script.logins + script.renewals;
    let (access, refresh) = (
        format!("canary-access-{number}"),
        format!("canary-refresh-{number}"),
    );
    script.given.extend([access.clone(), refresh.clone()]);
    let body = format!(
        r#"{{"access_token":"{access}","token_type":"Bearer","expires_in":{lifetime},"refresh_token":"{refresh}"}}"#
    );
    script.memory.access = Some(access);
    script.memory.refresh = Some(refresh);
    json("200 OK", body)
}

/// Fetches a URL, following redirects like a browser, and returns the last page.
pub fn fetch(url: &str) -> String {
    let page = page(url);
    match location(&page) {
        Some(next) => fetch(&next),
        None => page,
    }
}

/// The redirect target of a URL, if any.
pub fn leads_to(url: &str) -> Option<String> {
    location(&page(url))
}

fn page(url: &str) -> String {
    let mut page = String::new();
    let rest = url.strip_prefix("http://");
    let Some((host, path)) = rest.and_then(|rest| rest.split_once('/')) else {
        return page;
    };
    if let Ok(mut stream) = TcpStream::connect(host) {
        let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let _ = stream.write_all(request.as_bytes());
        let _ = stream.read_to_string(&mut page);
    }
    page
}

fn location(page: &str) -> Option<String> {
    let mut lines = page.lines();
    lines.find_map(|line| line.strip_prefix("Location: ").map(str::to_owned))
}

fn json(status: &'static str, body: String) -> Response {
    Response {
        status,
        headers: "Content-Type: application/json\r\n".to_owned(),
        body,
    }
}

/// The raw value of a number or string member, at any depth.
fn member<'b>(body: &'b str, name: &str) -> Option<&'b str> {
    let (_, rest) = body.split_once(&format!("\"{name}\":"))?;
    let end = rest.find([',', '}'])?;
    Some(rest.get(..end)?.trim())
}

fn form(text: &str) -> HashMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (unescaped(name), unescaped(value)))
        .collect()
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [rest.next().unwrap_or(b'0'), rest.next().unwrap_or(b'0')];
                let digits = std::str::from_utf8(&digits).unwrap_or("00");
                u8::from_str_radix(digits, 16).unwrap_or(b'?')
            }
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
        escaped
    })
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
