//! Shared by the tests of network transports: a recording inbound, and scripted servers.

use std::fmt::Write as _;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rustls::pki_types::PrivatePkcs8KeyDer;
use switchboard::internal::transport::http::{HttpClient, HttpSettings};
use switchboard::transport::{
    Closed, Inbound, Link, Outgoing, OutgoingKind, RequestFailure, TransportError,
};
use switchboard_protocol::Era;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// The timeout of every wait, longer than any test takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// The size limit of the tests' clients.
pub(crate) const LIMIT: usize = 64 * 1024;

/// One call of an inbound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    Frame(String),
    Oversized { start: String, limit: usize },
    Failed(u64, String),
    Diagnostic(String),
    Closed(Closed),
}

pub(crate) fn frame(text: &str) -> Event {
    Event::Frame(text.to_owned())
}

/// An inbound that records all calls.
pub(crate) struct Recorder(mpsc::UnboundedSender<Event>);

/// The recorded calls.
pub(crate) struct Record(mpsc::UnboundedReceiver<Event>);

pub(crate) fn recorder() -> (Arc<dyn Inbound>, Record) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Arc::new(Recorder(sender)), Record(receiver))
}

impl Record {
    pub(crate) async fn next(&mut self) -> Event {
        let next = within(self.0.recv()).await;
        next.expect("the inbound is still there")
    }

    /// All recorded calls not yet taken.
    pub(crate) fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.0.try_recv().ok()).collect()
    }

    /// Waits until the inbound is dropped, which means that the link is released.
    pub(crate) async fn end(mut self) -> Vec<Event> {
        let mut rest = Vec::new();
        while let Some(event) = within(self.0.recv()).await {
            rest.push(event);
        }
        rest
    }
}

impl Inbound for Recorder {
    fn frame(&self, frame: Bytes) {
        let _ = self.0.send(Event::Frame(text(&frame)));
    }

    fn oversized(&self, start: &[u8], limit: usize) {
        let start = text(&start[..start.len().min(24)]);
        let _ = self.0.send(Event::Oversized { start, limit });
    }

    fn failed(&self, request: u64, failure: RequestFailure) {
        let _ = self.0.send(Event::Failed(request, render(&failure)));
    }

    fn diagnostic(&self, line: &str) {
        let _ = self.0.send(Event::Diagnostic(line.to_owned()));
    }

    fn closed(&self, closed: Closed) {
        let _ = self.0.send(Event::Closed(closed));
    }
}

/// Formats all fields of a failure on one line.
pub(crate) fn render(failure: &RequestFailure) -> String {
    match failure {
        RequestFailure::Refused(refusal) => {
            let mut line = format!("refused {}", refusal.status);
            if refusal.in_session {
                line.push_str(" in session");
            }
            for challenge in &refusal.challenges {
                let _ = write!(line, " challenge<{challenge}>");
            }
            if let Some(after) = refusal.retry_after {
                let _ = write!(line, " retry<{}s>", after.as_secs());
            }
            if let Some(location) = &refusal.location {
                let _ = write!(line, " location<{location}>");
            }
            let _ = write!(line, " <{}>", text(&refusal.body));
            line
        }
        RequestFailure::NotSent(error) => format!("not sent: {}", kind(error)),
        RequestFailure::Lost(error) => format!("lost: {}", kind(error)),
        other => other.to_string(),
    }
}

pub(crate) fn kind(error: &TransportError) -> String {
    format!("{:?}: {}", error.kind, error.message)
}

pub(crate) fn client() -> HttpClient {
    client_with(HttpSettings::default())
}

pub(crate) fn client_with(settings: HttpSettings) -> HttpClient {
    HttpClient::new(HttpSettings {
        max_message_bytes: LIMIT,
        ..settings
    })
    .expect("a client")
}

/// A request of the stateful era.
pub(crate) fn request(id: u64) -> Outgoing {
    Outgoing {
        payload: format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"}}"#).into_bytes(),
        kind: OutgoingKind::Request(id),
        era: Era::Stateful,
        headers: Vec::new(),
    }
}

pub(crate) fn notification() -> Outgoing {
    Outgoing {
        payload: br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec(),
        kind: OutgoingKind::Notification,
        era: Era::Stateful,
        headers: Vec::new(),
    }
}

pub(crate) fn answer(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

pub(crate) async fn send(link: &Arc<dyn Link>, message: Outgoing) {
    within(link.send(message))
        .await
        .expect("the message is sent");
}

/// A TLS server for `localhost` and its certificate, which is its own authority and valid for a hundred years.
///
/// It was created with `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj
/// '/CN=switchboard tests' -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE`; its key is
/// not secret.
pub(crate) fn certificate(protocols: &[&str]) -> (Vec<u8>, TlsAcceptor) {
    let certificate = include_bytes!("localhost.cert.der").to_vec();
    let key = include_bytes!("localhost.key.der").to_vec();
    acceptor(certificate, key, protocols)
}

/// The same, with a certificate that is its own CA, as common commands create it.
pub(crate) fn self_signed() -> (Vec<u8>, TlsAcceptor) {
    let certificate = include_bytes!("self_signed.cert.der").to_vec();
    let key = include_bytes!("self_signed.key.der").to_vec();
    acceptor(certificate, key, &[])
}

fn acceptor(certificate: Vec<u8>, key: Vec<u8>, protocols: &[&str]) -> (Vec<u8>, TlsAcceptor) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.clone().into()],
            PrivatePkcs8KeyDer::from(key).into(),
        )
        .expect("a configuration");
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    (certificate, TlsAcceptor::from(Arc::new(config)))
}

/// Panics if the future does not complete in time.
pub(crate) async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("it happens in time")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
