//! HTTP listener for the OAuth redirect (callback).
//!
//! Open for one login, on loopback only. Every page in every browser on this machine can send requests to it, so a
//! request must have the exact path, a loopback `Host` (which stops DNS rebinding) and the `state` of the login. Any
//! other request is rejected and does not end the wait. Responses never echo request data.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use switchboard_config::entry::ServerEntry;
use switchboard_config::secret::Secret;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use url::{Host, Url};

use crate::auth::Callback;

/// Default callback path.
const PATH: &str = "/callback";
/// Maximum size of a request head.
const MAXIMUM_BYTES: usize = 16 * 1024;
/// Deadline for one request, including its response.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of concurrent requests. Browsers open speculative connections and never use them.
const AT_ONCE: usize = 32;

/// Address of the OAuth callback.
#[derive(Debug, Clone, Default)]
pub struct CallbackAddress {
    /// Fixed port; `None` picks a free one.
    pub port: Option<u16>,
    /// Complete redirect URI, if a port is not enough.
    pub redirect_uri: Option<String>,
}

impl CallbackAddress {
    /// Reads the callback address from a server entry.
    pub fn of(entry: &ServerEntry) -> Self {
        let oauth = entry.oauth.as_ref();
        Self {
            port: oauth.and_then(|oauth| oauth.callback_port),
            redirect_uri: oauth.and_then(|oauth| oauth.redirect_uri.clone()),
        }
    }
}

#[derive(Debug)]
pub(super) enum BindError {
    /// The redirect URI belongs to another machine or another program.
    Elsewhere(Url),
    /// Not a usable redirect URI.
    Unusable(String),
    /// Binding the socket failed.
    Io { address: String, error: io::Error },
}

/// Listens for the callback of one login.
#[derive(Debug)]
pub(crate) struct CallbackListener {
    redirect_uri: Url,
    port: u16,
    listeners: Vec<TcpListener>,
}

impl CallbackListener {
    pub(super) async fn bind(address: &CallbackAddress) -> Result<Self, BindError> {
        let Some(text) = &address.redirect_uri else {
            let port = address.port.unwrap_or_default();
            let listener = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
            let port = port_of(&listener)?;
            let uri = format!("http://127.0.0.1:{port}{PATH}");
            return match Url::parse(&uri) {
                Ok(redirect_uri) => Ok(Self {
                    redirect_uri,
                    port,
                    listeners: vec![listener],
                }),
                Err(_) => Err(BindError::Unusable(uri)),
            };
        };
        let unusable = || BindError::Unusable(text.clone());
        let redirect_uri = Url::parse(text).map_err(|_| unusable())?;
        if redirect_uri.fragment().is_some() || redirect_uri.query().is_some() {
            return Err(unusable());
        }
        if redirect_uri.scheme() != "http" || !is_this_machine(&redirect_uri) {
            return Err(BindError::Elsewhere(redirect_uri));
        }
        let Some(port) = redirect_uri.port_or_known_default().or(address.port) else {
            return Err(unusable());
        };
        let addresses: &[IpAddr] = match redirect_uri.host() {
            Some(Host::Ipv4(_)) => &[IpAddr::V4(Ipv4Addr::LOCALHOST)],
            Some(Host::Ipv6(_)) => &[IpAddr::V6(Ipv6Addr::LOCALHOST)],
            // A browser may resolve `localhost` to either address.
            _ => &[
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST),
            ],
        };
        let mut bound = Vec::new();
        for address in addresses {
            bound.push(listen(SocketAddr::new(*address, port)).await);
        }
        let listeners = usable(bound)?;
        Ok(Self {
            redirect_uri,
            port,
            listeners,
        })
    }

    pub(crate) fn redirect_uri(&self) -> &Url {
        &self.redirect_uri
    }

    /// Waits for the callback with this state. The browser has received its page when this returns.
    pub(crate) async fn answer(&self, state: &Secret) -> Callback {
        let mut requests: JoinSet<Option<Callback>> = JoinSet::new();
        loop {
            let stream = tokio::select! {
                Some(done) = requests.join_next(), if !requests.is_empty() => {
                    match done {
                        Ok(Some(callback)) => return callback,
                        _ => continue,
                    }
                }
                stream = self.accept(), if requests.len() < AT_ONCE => stream,
            };
            let expected = Expected {
                path: self.redirect_uri.path().to_owned(),
                port: self.port,
                state: state.clone(),
            };
            requests.spawn(async move {
                let served = timeout(PATIENCE, serve(stream, &expected)).await;
                served.ok().flatten()
            });
        }
    }

    async fn accept(&self) -> TcpStream {
        loop {
            let accepts = self
                .listeners
                .iter()
                .map(|listener| Box::pin(listener.accept()));
            let (accepted, ..) = futures_util::future::select_all(accepts).await;
            match accepted {
                Ok((stream, _)) => return stream,
                // Out of file descriptors, or the client disconnected: retry.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// Properties of the expected callback request.
struct Expected {
    path: String,
    port: u16,
    state: Secret,
}

/// Serves one request; returns the callback if it is the expected one.
async fn serve(mut stream: TcpStream, expected: &Expected) -> Option<Callback> {
    let (page, callback) = match read_head(&mut stream).await? {
        Some(head) => judge(&head, expected),
        None => (Page::TooLarge, None),
    };
    let answered = stream.write_all(page.response().as_bytes()).await;
    // The callback is valid even if the browser did not get its page.
    if answered.is_ok() && stream.shutdown().await.is_ok() {
        let _ = timeout(Duration::from_millis(500), drain(&mut stream)).await;
    }
    callback
}

/// Discards the rest of a request: closing a socket with unread data resets the connection and can discard the page.
async fn drain(stream: &mut (impl AsyncRead + Unpin)) {
    let mut rest = [0; 1024];
    while stream.read(&mut rest).await.is_ok_and(|length| length > 0) {}
}

/// Reads a request head; `Some(None)` if it is too large, `None` if the connection closed first.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> Option<Option<String>> {
    let mut head = Vec::new();
    let mut part = [0; 4096];
    loop {
        let length = stream.read(&mut part).await.ok()?;
        if length == 0 {
            return None;
        }
        head.extend_from_slice(part.get(..length)?);
        if let Some(end) = memchr::memmem::find(&head, b"\r\n\r\n") {
            head.truncate(end);
            // A head that is not UTF-8 is treated as empty, hence malformed.
            return Some(Some(String::from_utf8(head).unwrap_or_default()));
        }
        if head.len() > MAXIMUM_BYTES {
            return Some(None);
        }
    }
}

/// Checks a request; returns the page for the browser, and the callback if it is the expected one.
fn judge(head: &str, expected: &Expected) -> (Page, Option<Callback>) {
    let mut lines = head.split("\r\n");
    let request = lines.next().unwrap_or_default();
    let words: Vec<&str> = request.split(' ').collect();
    let &[method, target, version] = words.as_slice() else {
        return (Page::Malformed, None);
    };
    if !version.starts_with("HTTP/1.") {
        return (Page::Malformed, None);
    }
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() || !host.is_some_and(|host| names_this_machine(host, expected.port)) {
        return (Page::Stranger, None);
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if path != expected.path {
        return (Page::Nothing, None);
    }
    if method != "GET" {
        return (Page::Method, None);
    }
    let callback = Callback::from_query(query);
    if callback.state.as_ref() != Some(&expected.state) {
        return (Page::OtherLogin, None);
    }
    match (&callback.code, &callback.error) {
        (Some(_), _) => (Page::Received, Some(callback)),
        (None, Some(_)) => (Page::Refused, Some(callback)),
        (None, None) => (Page::OtherLogin, None),
    }
}

fn names_this_machine(host: &str, port: u16) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|name| {
        let rest = host
            .get(..name.len())
            .filter(|start| start.eq_ignore_ascii_case(name))
            .and_then(|_| host.get(name.len()..));
        match rest {
            Some("") => port == 80,
            Some(rest) => rest.strip_prefix(':') == Some(port.to_string().as_str()),
            None => false,
        }
    })
}

fn is_this_machine(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address == Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(address)) => address == Ipv6Addr::LOCALHOST,
        None => false,
    }
}

/// Returns the open listeners. One address family may be missing on this machine. A port in use is an error: its owner
/// would receive the callback.
fn usable<T>(bound: Vec<Result<T, BindError>>) -> Result<Vec<T>, BindError> {
    let mut listeners = Vec::new();
    let mut missing = None;
    for result in bound {
        match result {
            Ok(listener) => listeners.push(listener),
            Err(BindError::Io { address, error }) if lacks_family(&error) => {
                missing = Some(BindError::Io { address, error });
            }
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if listeners.is_empty() => Err(error),
        _ => Ok(listeners),
    }
}

/// Whether binding failed because this machine does not have the address family. Without an address of the family the
/// error is `AddrNotAvailable`; a kernel without the family (`ipv6.disable=1`) rejects the socket itself.
fn lacks_family(error: &io::Error) -> bool {
    #[cfg(unix)]
    let unsupported = rustix::io::Errno::AFNOSUPPORT.raw_os_error();
    // `WSAEAFNOSUPPORT`.
    #[cfg(not(unix))]
    let unsupported = 10047;
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(unsupported)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, BindError> {
    let listener = TcpListener::bind(address).await;
    listener.map_err(|error| BindError::Io {
        address: address.to_string(),
        error,
    })
}

fn port_of(listener: &TcpListener) -> Result<u16, BindError> {
    let address = listener.local_addr();
    let address = address.map_err(|error| BindError::Io {
        address: "127.0.0.1".to_owned(),
        error,
    })?;
    Ok(address.port())
}

/// Response pages. All text is static; nothing comes from the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Page {
    Received,
    Refused,
    OtherLogin,
    Nothing,
    Method,
    Stranger,
    Malformed,
    TooLarge,
}

impl Page {
    fn response(self) -> String {
        let (status, title, text) = match self {
            Self::Received => (
                "200 OK",
                "Back to Switchboard",
                "The response has arrived. You can close this window; Switchboard shows whether the login worked.",
            ),
            Self::Refused => (
                "200 OK",
                "Not logged in",
                "The login was refused. You can close this window; Switchboard shows the reason.",
            ),
            Self::OtherLogin => (
                "400 Bad Request",
                "Not this login",
                "This response does not belong to the current login. Start again with the newest link.",
            ),
            Self::Nothing => ("404 Not Found", "Nothing here", "There is nothing here."),
            Self::Method => (
                "405 Method Not Allowed",
                "Not like this",
                "Only GET is answered here.",
            ),
            Self::Stranger => (
                "403 Forbidden",
                "Not here",
                "This address accepts only the host names of this machine.",
            ),
            Self::Malformed => (
                "400 Bad Request",
                "Not understood",
                "The request is malformed.",
            ),
            Self::TooLarge => (
                "431 Request Header Fields Too Large",
                "Too much",
                "The request is too large.",
            ),
        };
        let body = format!(
            "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{title}</title>\n<h1>{title}</h1>\n<p>{text}</p>\n</html>\n"
        );
        let length = body.len();
        format!(
            "HTTP/1.1 {status}\r\n\
             Content-Type: text/html; charset=utf-8\r\n\
             Content-Length: {length}\r\n\
             Content-Security-Policy: default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'\r\n\
             Cache-Control: no-store\r\n\
             Referrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\n\
             Connection: close\r\n\
             \r\n{body}"
        )
    }
}

#[cfg(test)]
mod tests;
