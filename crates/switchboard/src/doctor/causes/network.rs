//! The address cannot be reached, or what answers there is no MCP endpoint.

use switchboard_config::text::visible;

use super::{Symptoms, error, quoted};
use crate::doctor::Finding;
use crate::transport::{Destination, TransportErrorKind};

pub(super) fn login_needed(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if symptoms.status() != Some(401) {
        return None;
    }
    let name = visible(symptoms.server);
    let why = with_challenge(symptoms, "it answered with HTTP status 401");
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
                "run `switchboard mcp login {name}`; or give its entry a token: bearer_token_env_var, or headers"
            ),
        )
    })
}

pub(super) fn forbidden(symptoms: &Symptoms<'_>) -> Option<Finding> {
    if symptoms.status() != Some(403) {
        return None;
    }
    let remedy = if has_credentials(symptoms) {
        "see whether the token has the rights (scopes) the server wants, and whether your account may use it"
    } else {
        "give its entry a token (bearer_token_env_var, or headers), or log in; a server on this machine may also \
         refuse the name it is reached by: try 127.0.0.1 or localhost"
    };
    let why = with_challenge(symptoms, "it answered with HTTP status 403");
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
            "the proxy on the way requires a login",
            "it answered with HTTP status 407",
            "put the name and password into the proxy's address (HTTPS_PROXY=http://name:password@proxy:port), or \
             name the server's host in NO_PROXY",
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
        Some(location) => format!("it leads to {}", quoted(location)),
        None => format!("it answered with HTTP status {status}"),
    };
    Some(error(
        "redirected",
        "the address leads to another server",
        why,
        "redirects to other servers are not followed, because they would be shown your credentials: if you trust that \
         place, write its address as `url`",
    ))
}

pub(super) fn web_page(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let body = symptoms.refusal().map(|refusal| &refusal.body);
    let is_page = body.is_some_and(|body| looks_like_page(body))
        || symptoms
            .transport_error_of(TransportErrorKind::Protocol)
            .is_some_and(|error| error.message.contains("text/html"));
    // A proxy's or a framework's error page says less than its status does.
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
            format!(
                "it answered with HTTP status {status}{}",
                words_of(symptoms)
            ),
            path_advice(symptoms),
        )
    })
}

pub(super) fn too_many_requests(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let refusal = symptoms.refusal().filter(|refusal| refusal.status == 429)?;
    let wait = match refusal.retry_after {
        Some(wait) => format!("wait {} s and try again", wait.as_secs()),
        None => "wait a while and try again".to_owned(),
    };
    Some(error(
        "too-many-requests",
        "rate limited by the server",
        "it answered with HTTP status 429",
        format!("{wait}; if it lasts, your plan with the server's provider may be used up"),
    ))
}

pub(super) fn unavailable(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    matches!(status, 408 | 425 | 502..=504).then(|| {
        error(
            "unavailable",
            "the server is down behind its gateway or proxy",
            format!("a gateway or proxy answered with HTTP status {status}{}", words_of(symptoms)),
            "try again later; if it is your own server, see whether the program behind the gateway runs",
        )
    })
}

pub(super) fn server_fault(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    (status >= 500).then(|| {
        error(
            "server-fault",
            "internal error of the server",
            format!(
                "it answered with HTTP status {status}{}",
                words_of(symptoms)
            ),
            "look into the server's log; there is nothing to repair on this side",
        )
    })
}

pub(super) fn refused_status(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let status = symptoms.status()?;
    (400..500).contains(&status).then(|| {
        error(
            "refused",
            "the server rejects MCP requests",
            format!(
                "it answered with HTTP status {status}{}",
                words_of(symptoms)
            ),
            format!(
                "see whether a header in its entry is wrong or missing; or {}",
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
            "look for a typing mistake in `url`; if the name is right, see whether you are online, or need a VPN",
        ),
    ))
}

pub(super) fn nobody_listens(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Refused)?;
    Some(error(
        "nobody-listens",
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
            "see whether you are online; a VPN, a firewall or a proxy may stand between",
        ),
    ))
}

pub(super) fn certificate(symptoms: &Symptoms<'_>) -> Option<Finding> {
    /// What our own messages say, and what to do about it.
    const KINDS: &[(&str, &str, &str, &str)] = &[
        (
            "does not speak TLS",
            "no-tls",
            "the server does not speak TLS",
            "write http:// (or ws://) in `url` if the server is your own; anywhere else, look for the right port",
        ),
        (
            "does not know",
            "certificate-unknown",
            "its certificate is signed by an unknown authority",
            "if you trust the authority (a company's proxy, or one of your own), name its certificate in the entry: \
             ca_file = \"/path/to/ca.pem\"; or add it to those of the system",
        ),
        (
            "is self-signed",
            "certificate-self-signed",
            "its certificate is self-signed",
            "if the server is yours, copy its certificate into a PEM file and name it in the entry: ca_file = \
             \"/path/to/certificate.pem\"; anywhere else, do not connect",
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
            "write the name the certificate is for in `url`: not an address in numbers, not a short name",
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
            "see whether a proxy stands between, and whether the server's TLS is up to date",
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
            "a firewall may swallow what is sent there: compare host and port in `url`, and see whether you need a VPN",
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
                "compare the port in `url`; if it speaks TLS, write https://",
            )
        })
}

pub(super) fn invalid(symptoms: &Symptoms<'_>) -> Option<Finding> {
    let failure = symptoms.transport_error_of(TransportErrorKind::Invalid)?;
    Some(error(
        "entry-invalid",
        "its entry cannot be used",
        quoted(&failure.message),
        "correct what is named there in its entry",
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

/// The reason, with what the server says how to log in.
fn with_challenge(symptoms: &Symptoms<'_>, why: &str) -> String {
    let challenge = symptoms
        .refusal()
        .and_then(|refusal| refusal.challenges.first());
    match challenge {
        Some(challenge) => format!("{why}, and asks for: {}", quoted(challenge)),
        None => format!("{why}{}", words_of(symptoms)),
    }
}

/// What a refusal says in its body, if that is for people.
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

/// Which path to try instead of this one.
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
        "compare the path in `url` with the server's documentation: it is mostly {others} (now it is `{}`)",
        visible(path)
    )
}

/// The remedy, with a word about the proxy where there is one: it may be what failed.
fn with_proxy(symptoms: &Symptoms<'_>, remedy: &str) -> String {
    match symptoms.destination {
        Destination::Address {
            has_proxy: true, ..
        } => format!(
            "{remedy}; a proxy is set (HTTP_PROXY, HTTPS_PROXY or ALL_PROXY) and may be what failed: see whether it \
             runs, or name the host in NO_PROXY"
        ),
        _ => remedy.to_owned(),
    }
}
