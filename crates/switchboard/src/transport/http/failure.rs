//! Classifies HTTP errors: the kind of failure, and whether the request reached the server.
//!
//! Interprets errors of the HTTP libraries and unsuccessful responses. Messages never contain secrets of the address or
//! header values.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::Response;
use reqwest::header::{HeaderMap, RETRY_AFTER, WWW_AUTHENTICATE};
use rustls::CertificateError;
use switchboard_config::text::visible;

use super::address::{Address, shown_link};
use super::trusted::is_authority_as_server;
use crate::auth::DPOP_NONCE;
use crate::transport::{HttpRefusal, RequestFailure, TransportError, TransportErrorKind};

/// Maximum bytes of a refusal's body.
const MAX_REFUSAL: usize = 64 * 1024;
/// Timeout for reading a refusal's body.
const REFUSAL_DEADLINE: Duration = Duration::from_secs(5);
/// Longer `Retry-After` values are capped.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// The failure of a request without a response.
pub(super) fn of_request(error: &reqwest::Error, address: &Address) -> RequestFailure {
    let never_sent = error.is_connect()
        || error.is_builder()
        || find::<hyper::Error>(error).is_some_and(hyper::Error::is_canceled);
    let error = describe(error, address);
    if never_sent {
        RequestFailure::NotSent(error)
    } else {
        RequestFailure::Lost(error)
    }
}

/// Describes an error by its innermost meaningful cause.
pub(super) fn describe(error: &reqwest::Error, address: &Address) -> TransportError {
    let place = address.place();
    let (kind, message) = if let Some(tls) = find::<rustls::Error>(error) {
        (TransportErrorKind::Tls, describe_tls(tls, &place))
    } else if error.is_timeout() {
        (
            TransportErrorKind::Timeout,
            format!("{place} did not answer in time"),
        )
    } else if is_dns(error) {
        let host = address.url().host_str().unwrap_or_default();
        (
            TransportErrorKind::Dns,
            format!("cannot resolve host {host}"),
        )
    } else if let Some(http) = find::<hyper::Error>(error).filter(|error| error.is_parse()) {
        (
            TransportErrorKind::Protocol,
            describe_parse(http, address, &place),
        )
    } else if let Some(error) = find::<io::Error>(error) {
        describe_io(error, &place)
    } else {
        let kind = if error.is_builder() {
            TransportErrorKind::Invalid
        } else if error.is_connect() {
            TransportErrorKind::Unreachable
        } else {
            TransportErrorKind::Io
        };
        (
            kind,
            format!("the connection to {place} failed: {}", innermost(error)),
        )
    };
    TransportError::new(kind, message)
}

/// Describes an I/O error of a connection.
pub(in crate::transport) fn describe_io(
    error: &io::Error,
    place: &str,
) -> (TransportErrorKind, String) {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => (
            TransportErrorKind::Refused,
            format!("the connection to {place} was refused"),
        ),
        io::ErrorKind::NotFound => (
            TransportErrorKind::Refused,
            format!("socket {place} does not exist"),
        ),
        io::ErrorKind::HostUnreachable
        | io::ErrorKind::NetworkUnreachable
        | io::ErrorKind::NetworkDown
        | io::ErrorKind::AddrNotAvailable
        | io::ErrorKind::PermissionDenied => (
            TransportErrorKind::Unreachable,
            format!("{place} cannot be reached: {error}"),
        ),
        io::ErrorKind::TimedOut => (
            TransportErrorKind::Timeout,
            format!("{place} did not answer in time"),
        ),
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::BrokenPipe => (
            TransportErrorKind::Io,
            format!("{place} closed the connection: {error}"),
        ),
        _ => (
            TransportErrorKind::Io,
            format!("the connection to {place} failed: {error}"),
        ),
    }
}

/// Describes a TLS error by its cause and remedy.
pub(in crate::transport) fn describe_tls(error: &rustls::Error, place: &str) -> String {
    match error {
        rustls::Error::InvalidMessage(_) => {
            format!("{place} does not speak TLS; if it should not, use http:// or ws://")
        }
        rustls::Error::InvalidCertificate(certificate) => {
            let reason = match certificate {
                CertificateError::UnknownIssuer => {
                    "is signed by an authority that this machine does not know"
                }
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    "has expired"
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    "is not valid yet; is the clock right?"
                }
                CertificateError::NotValidForName
                | CertificateError::NotValidForNameContext { .. } => "is for another name",
                CertificateError::Revoked => "has been revoked",
                error if is_authority_as_server(error) => {
                    "is self-signed, and this machine does not trust it"
                }
                CertificateError::BadEncoding => "cannot be read",
                CertificateError::BadSignature => "has an invalid signature",
                CertificateError::InvalidPurpose
                | CertificateError::InvalidPurposeContext { .. } => "is not valid for servers",
                other => {
                    let reason = in_words(&match other {
                        CertificateError::Other(other) => other.0.to_string(),
                        other => format!("{other:?}"),
                    });
                    return format!("the certificate of {place} cannot be trusted: {reason}");
                }
            };
            format!("the certificate of {place} {reason}")
        }
        rustls::Error::AlertReceived(alert) => {
            format!("{place} refused the TLS handshake: {alert:?}")
        }
        _ => format!("TLS with {place} failed: {error}"),
    }
}

/// Splits a library's error name, such as `PathLenConstraintViolated`, into words.
fn in_words(name: &str) -> String {
    let mut words = String::new();
    for character in name.chars() {
        if character.is_ascii_uppercase() && !words.is_empty() && !words.ends_with(' ') {
            words.push(' ');
        }
        words.extend(character.to_lowercase());
    }
    visible(&words).into_owned()
}

pub(in crate::transport) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    find_in_io(error)
}

/// An unsuccessful response, with a bounded part of its body.
pub(super) async fn refusal(mut response: Response, in_session: bool) -> HttpRefusal {
    let mut refusal = refusal_head(response.status().as_u16(), response.headers());
    refusal.in_session = in_session;
    let mut body = BytesMut::new();
    // A partial body is used after a timeout; the reason is mostly in the first bytes.
    let _ = tokio::time::timeout(REFUSAL_DEADLINE, async {
        while body.len() < MAX_REFUSAL {
            match response.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) | Err(_) => break,
            }
        }
    })
    .await;
    body.truncate(MAX_REFUSAL);
    refusal.body = body.freeze();
    refusal
}

/// A redirect that leaves the origin.
pub(super) fn foreign_redirect(response: &Response, target: &url::Url) -> HttpRefusal {
    let mut refusal = HttpRefusal::new(response.status().as_u16());
    refusal.location = Some(shown_link(target));
    refusal
}

/// A JSON-RPC error without an id, sent with a successful status.
pub(super) fn unaddressed_error(body: &Bytes, in_session: bool) -> HttpRefusal {
    let mut refusal = HttpRefusal::new(200);
    refusal.in_session = in_session;
    refusal.body = body.slice(..body.len().min(MAX_REFUSAL));
    refusal
}

pub(in crate::transport) fn refusal_head(status: u16, headers: &HeaderMap) -> HttpRefusal {
    let mut refusal = HttpRefusal::new(status);
    refusal.challenges = challenges(headers);
    let nonce = headers.get(DPOP_NONCE);
    refusal.dpop_nonce = nonce.and_then(|nonce| nonce.to_str().ok().map(str::to_owned));
    // A date is ignored; the layer above then uses its own backoff.
    refusal.retry_after = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(|seconds| Duration::from_secs(seconds).min(MAX_RETRY_AFTER));
    refusal
}

pub(super) fn challenges(headers: &HeaderMap) -> Vec<String> {
    let values = headers.get_all(WWW_AUTHENTICATE).iter();
    values
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .collect()
}

fn describe_parse(error: &hyper::Error, address: &Address, place: &str) -> String {
    let hint = if address.url().scheme() == "http" && address.socket().is_none() {
        "; if it speaks TLS, use https://"
    } else {
        ""
    };
    format!("{place} does not answer in HTTP ({error}){hint}")
}

/// The resolver's errors have no type; the client marks them with this word.
fn is_dns(error: &reqwest::Error) -> bool {
    chain(error).any(|cause| cause.to_string() == "dns error")
}

fn innermost(error: &reqwest::Error) -> String {
    let cause = chain(error)
        .last()
        .map(ToString::to_string)
        .unwrap_or_default();
    visible(&cause).into_owned()
}

/// The causes of an error, without the outermost, which only repeats the address.
fn chain<'e>(error: &'e reqwest::Error) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |cause: &&'e (dyn Error + 'static)| {
        (*cause).source()
    })
}

fn find<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    chain(error).find_map(|cause| {
        cause
            .downcast_ref::<T>()
            .or_else(|| cause.downcast_ref::<io::Error>().and_then(find_in_io))
    })
}

/// An I/O error may wrap an error that is not among its sources.
fn find_in_io<T: Error + 'static>(error: &io::Error) -> Option<&T> {
    let mut inner: &(dyn Error + 'static) = error.get_ref()?;
    loop {
        if let Some(found) = inner.downcast_ref::<T>() {
            return Some(found);
        }
        inner = match inner.downcast_ref::<io::Error>() {
            Some(error) => error.get_ref()?,
            None => inner.source()?,
        };
    }
}
