//! HTTPS from files.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use switchboard_server::ServiceHandler;
use switchboard_server::http::{Access, BindErrorKind, HttpOptions, HttpServer, TlsFiles};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::bench::{Bench, soon};
use crate::client::{Server, send_over};

const AUTHORITY: &[u8] = include_bytes!("tls/ca.pem");
const FIRST: [&str; 2] = [include_str!("tls/first.pem"), include_str!("tls/first.key")];
const SECOND: [&str; 2] = [
    include_str!("tls/second.pem"),
    include_str!("tls/second.key"),
];

fn write(folder: &Path, [certificate, key]: [&str; 2]) -> TlsFiles {
    let files = TlsFiles {
        certificate: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    };
    std::fs::write(&files.certificate, certificate).unwrap();
    std::fs::write(&files.key, key).unwrap();
    files
}

/// Connects as a client that trusts the authority of the test certificates.
async fn connect(server: &Server) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(AUTHORITY).unwrap();
    roots.add(authority).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let socket = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, socket);
    soon(connecting).await.unwrap()
}

fn shown(connection: &TlsStream<TcpStream>) -> Vec<u8> {
    let certificates = connection.get_ref().1.peer_certificates().unwrap();
    certificates[0].to_vec()
}

#[tokio::test]
async fn https_is_served_and_a_renewed_certificate_is_used() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = HttpOptions::new(Access::Anybody);
    options.tls = Some(write(folder.path(), FIRST));
    let server = Server::with(options).await;
    let connection = connect(&server).await;
    let first = shown(&connection);
    let request = Request::post("/mcp")
        .header("host", "localhost")
        .header("content-type", "application/json");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let answer = send_over(connection, request.body(ping.to_owned()).unwrap()).await;
    assert_eq!(answer.status, 200);
    drop(answer);
    // A client without TLS is not answered in plain text.
    let plain = Request::post("/mcp").header("host", "localhost");
    let socket = TcpStream::connect(server.address).await.unwrap();
    let handshake = hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(socket));
    let (mut sender, connection) = handshake.await.unwrap();
    let connection = tokio::spawn(connection);
    let refused = soon(sender.send_request(plain.body(ping.to_owned()).unwrap())).await;
    assert!(refused.is_err());
    connection.abort();
    // Unusable files leave the certificate in force.
    std::fs::write(folder.path().join("cert.pem"), "broken").unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(shown(&connect(&server).await), first);
    write(folder.path(), SECOND);
    soon(async {
        while shown(&connect(&server).await) == first {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    server.stop().await;
}

#[tokio::test]
async fn unusable_files_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let check = |files: TlsFiles, expected: &'static str| async move {
        let mut options = HttpOptions::new(Access::Anybody);
        options.tls = Some(files);
        let handler = Arc::new(ServiceHandler::new(Arc::new(Bench::default())));
        let Err(error) = HttpServer::bind(options, handler).await else {
            panic!("{expected}");
        };
        assert!(matches!(error.kind, BindErrorKind::Tls(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    };
    let files = write(folder.path(), [FIRST[0], SECOND[1]]);
    check(files, "key.pem: not the key of the certificate in").await;
    let files = write(folder.path(), ["", FIRST[1]]);
    check(files, "cert.pem: does not contain a certificate").await;
    let files = write(folder.path(), [FIRST[0], FIRST[0]]);
    check(
        files,
        "key.pem: does not contain an unencrypted private key",
    )
    .await;
    let mut files = write(folder.path(), FIRST);
    files.key = folder.path().join("missing");
    check(files, "missing: cannot be read").await;
}
