//! Causes: the URL is unreachable, or not an MCP endpoint.

use switchboard_config::text::visible;

use super::{Symptoms, error, quoted};
use crate::doctor::Finding;
use crate::transport::{Destination, TransportErrorKind};

pub(super) fn login_needed(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if symptoms.status() != Some(401) {
        return None;
    }
    let name = visible(symptoms.server);
    let why = with_challenge(symptoms, "HTTP status 401");
    Some(if symptoms.destination.rejects_token_on_401() {
        error(
            "token-rejected",
            "the server rejects the token of its entry",
            why,
            "the token in `headers`, or in the variable that `bearer_token_env_var` names, is wrong or has expired: get \
             a new one, or remove it to log in with `switchboard mcp login`",
        )
    } else {
        error(
            "login-needed",
            "the server requires a login",
            why,
            format!(
                "run `switchboard mcp login {name}`; or set a token in its entry: bearer_token_env_var, or headers"
            ),
        )
    })
}

pub(super) fn forbidden(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if symptoms.status() != Some(403) {
        return None;
    }
    let remedy = if has_credentials(symptoms) {
        "check that the token has the required scopes and that your account has access"
    } else {
        "set a token in its entry (bearer_token_env_var, or headers), or log in; a local server may also \
         reject the host name: try 127.0.0.1 or localhost"
    };
    let why = with_challenge(symptoms, "HTTP status 403");
    Some(error("forbidden", "the server refuses access", why, remedy))
}

pub(super) fn proxy_login(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let text = symptoms.failed.to_string();
    let asked = symptoms.status() == Some(407)
        || text.contains("Proxy Authentication Required")
        || text.contains("proxy authorization required");
    asked.then(|| {
        error(
            "proxy-login",
            "the proxy requires a login",
            "HTTP status 407",
            "put the user name and password into the proxy's address (HTTPS_PROXY=http://name:password@proxy:port), or \
             add the server's host to NO_PROXY",
        )
    })
}

pub(super) fn redirected(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    if !(300..400).contains(&status) {
        return None;
    }
    let location = symptoms
        .refusal()
        .and_then(|refusal| refusal.location.as_deref());
    let why = match location {
        Some(location) => format!("redirects to {}", quoted(location)),
        None => format!("HTTP status {status}"),
    };
    Some(error(
        "redirected",
        "the address redirects to another server",
        why,
        "redirects to other servers are not followed, because they would receive your credentials: if you trust that \
         server, set `url` to its address",
    ))
}

pub(super) fn web_page(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let body = symptoms.refusal().map(|refusal| &refusal.body);
    let is_page = body.is_some_and(|body| looks_like_page(body))
        || symptoms
            .transport_error_of(TransportErrorKind::Protocol)
            .is_some_and(|error| error.message.contains("text/html"));
    // The status tells more than the error page of a proxy or framework.
    let is_success_or_missing = matches!(symptoms.status(), None | Some(200..=299 | 404 | 405));
    (is_page && is_success_or_missing).then(|| {
        error(
            "web-page",
            "this address returns a web page, not MCP",
            symptoms.said(),
            path_advice(symptoms),
        )
    })
}

pub(super) fn wrong_path(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    matches!(status, 404 | 405 | 410).then(|| {
        error(
            "wrong-path",
            "the server has no MCP endpoint at this path",
            format!("HTTP status {status}{}", words_of(symptoms)),
            path_advice(symptoms),
        )
    })
}

pub(super) fn too_many_requests(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let refusal = symptoms.refusal().filter(|refusal| refusal.status == 429)?;
    let wait = match refusal.retry_after {
        Some(wait) => format!("wait {} s and try again", wait.as_secs()),
        None => "try again later".to_owned(),
    };
    Some(error(
        "too-many-requests",
        "rate limited by the server",
        "HTTP status 429",
        format!("{wait}; if it persists, your quota with the provider may be used up"),
    ))
}

pub(super) fn unavailable(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    matches!(status, 408 | 425 | 502..=504).then(|| {
        error(
            "unavailable",
            "the server is down behind its gateway or proxy",
            format!("a gateway or proxy returned HTTP status {status}{}", words_of(symptoms)),
            "try again later; if it is your own server, check that the program behind the gateway is running",
        )
    })
}

pub(super) fn server_fault(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    (status >= 500).then(|| {
        error(
            "server-error",
            "internal server error",
            format!("HTTP status {status}{}", words_of(symptoms)),
            "check the server's log; the fault is not on this side",
        )
    })
}

pub(super) fn refused_status(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    (400..500).contains(&status).then(|| {
        error(
            "request-rejected",
            "the server rejects MCP requests",
            format!("HTTP status {status}{}", words_of(symptoms)),
            format!(
                "check the headers in its entry; or {}",
                path_advice(symptoms)
            ),
        )
    })
}

pub(super) fn unknown_name(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Dns)?;
    Some(error(
        "unknown-host",
        "cannot resolve the host name",
        quoted(&failure.message),
        with_proxy(
            symptoms,
            "check the host name in `url`; if it is right, check your network connection and VPN",
        ),
    ))
}

pub(super) fn nobody_listens(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Refused)?;
    Some(error(
        "connection-refused",
        "connection refused: no server listens at this address",
        quoted(&failure.message),
        with_proxy(
            symptoms,
            "start the server (Switchboard starts only those with a `command`), and compare the port in `url` with the \
             one it prints",
        ),
    ))
}

pub(super) fn unreachable(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Unreachable)?;
    Some(error(
        "unreachable",
        "no route to this address",
        quoted(&failure.message),
        with_proxy(
            symptoms,
            "check your network connection; a VPN, firewall or proxy may be in the way",
        ),
    ))
}

pub(super) fn certificate(symptoms: &Symptoms<'_>) -> Option<Finding> {
    /// Our own error messages, with explanation and remedy.
    const KINDS: &[(&str, &str, &str, &str)] = &[
        (
            "does not speak TLS",
            "no-tls",
            "the server does not speak TLS",
            "write http:// (or ws://) in `url` if the server is your own; otherwise, check the port",
        ),
        (
            "does not know",
            "certificate-unknown",
            "its certificate is signed by an unknown authority",
            "if you trust the authority (a company's proxy, or your own), name its certificate in the entry: \
             ca_file = \"/path/to/ca.pem\"; or add it to the system's certificates",
        ),
        (
            "is self-signed",
            "certificate-self-signed",
            "its certificate is self-signed",
            "if the server is yours, copy its certificate into a PEM file and name it in the entry: ca_file = \
             \"/path/to/certificate.pem\"; otherwise, do not connect",
        ),
        (
            "has expired",
            "certificate-expired",
            "its certificate has expired",
            "the server's operator has to renew it; if it is not expired, check this machine's clock",
        ),
        (
            "not valid yet",
            "certificate-not-valid-yet",
            "its certificate is not valid yet",
            "set this machine's clock",
        ),
        (
            "is for another name",
            "certificate-name",
            "its certificate is for another name",
            "use the name in the certificate in `url`, not an IP address or a short name",
        ),
    ];
    let failure = symptoms.transport_error_of(TransportErrorKind::Tls)?;
    let known = KINDS
        .iter()
        .find(|(said, ..)| failure.message.contains(said));
    let (code, what, remedy) = known.map_or(
        (
            "tls",
            "the TLS handshake failed",
            "check for a proxy in between, and that the server's TLS is up to date",
        ),
        |(_, code, what, remedy)| (*code, *what, *remedy),
    );
    Some(error(code, what, quoted(&failure.message), remedy))
}

pub(super) fn no_answer_in_time(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Timeout)?;
    Some(error(
        "connect-timeout",
        "the connection timed out",
        quoted(&failure.message),
        with_proxy(
            symptoms,
            "a firewall may drop the packets: check host and port in `url`, and whether you need a VPN",
        ),
    ))
}

pub(super) fn not_http(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Protocol)?;
    failure
        .message
        .contains("does not answer in HTTP")
        .then(|| {
            error(
                "not-http",
                "the server at this address does not speak HTTP",
                quoted(&failure.message),
                "check the port in `url`; if the server uses TLS, write https://",
            )
        })
}

pub(super) fn invalid(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Invalid)?;
    Some(error(
        "entry-invalid",
        "its entry is invalid",
        quoted(&failure.message),
        "correct its entry",
    ))
}

fn has_credentials(symptoms: &Symptoms<'_>) -> bool {
    matches!(
        symptoms.destination,
        Destination::Address {
            has_credentials: true,
            ..
        }
    )
}

/// The reason, with the server's authentication challenge.
fn with_challenge(symptoms: &Symptoms<'_>, why: &str) -> String {
    let challenge = symptoms
        .refusal()
        .and_then(|refusal| refusal.challenges.first());
    match challenge {
        Some(challenge) => format!("{why}, requires: {}", quoted(challenge)),
        None => format!("{why}{}", words_of(symptoms)),
    }
}

/// The text in the body of a refusal, if it is readable.
fn words_of(symptoms: &Symptoms<'_>) -> String {
    let Some(refusal) = symptoms.refusal() else {
        return String::new();
    };
    if let Some(error) = refusal.rpc_error() {
        return format!(": {}", quoted(&error.to_string()));
    }
    let text = String::from_utf8_lossy(&refusal.body);
    let text = text.trim();
    if text.is_empty() || looks_like_page(&refusal.body) {
        return String::new();
    }
    format!(": {}", quoted(text))
}

fn looks_like_page(body: &[u8]) -> bool {
    let start = body.trim_ascii_start();
    let starts = |with: &str| {
        start
            .get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
    };
    starts("<!doctype html") || starts("<html")
}

/// Suggests another path.
fn path_advice(symptoms: &Symptoms<'_>) -> String {
    let path = match symptoms.destination {
        Destination::Address { path, .. } => path.as_str(),
        _ => "",
    };
    let others = ["/mcp", "/sse"]
        .into_iter()
        .filter(|other| path.trim_end_matches('/') != *other)
        .collect::<Vec<_>>()
        .join(" or ");
    format!(
        "check the path in `url` against the server's documentation: usually {others} (now `{}`)",
        visible(path)
    )
}

/// The remedy, with a note about the proxy, if any: it may be what failed.
fn with_proxy(symptoms: &Symptoms<'_>, remedy: &str) -> String {
    match symptoms.destination {
        Destination::Address {
            has_proxy: true, ..
        } => format!(
            "{remedy}; a proxy is set (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY) and may be the cause: check that it \
             is running, or add the host to NO_PROXY"
        ),
        _ => remedy.to_owned(),
    }
}
