//! Tests of TLS: HTTP/2, trust, and mismatched schemes.

use axum::http::Version;
use switchboard::internal::transport::http::{HttpClient, HttpSettings, RemoteServer};

use crate::connect_with;
use crate::failed;
use crate::network::{answer, certificate, client, client_with, frame, request, self_signed, send};
use crate::web::Web;

#[tokio::test]
async fn requests_share_one_connection_over_http_2() {
    let (root, acceptor) = certificate(&["h2", "http/1.1"]);
    let mut web = Web::start_with_tls(acceptor).await;
    let client = client_with(HttpSettings {
        extra_roots: vec![root],
        ..HttpSettings::default()
    });
    let server = RemoteServer::new(format!("https://localhost:{}/mcp", web.address.port()));
    let (link, mut record) = connect_with(&client, server).await;
    let mut asked = Vec::new();
    for id in 0..10 {
        send(&link, request(id)).await;
        let request = web.next().await;
        assert_eq!(request.version, Version::HTTP_2);
        asked.push((id, request));
    }
    for (id, asked) in asked.into_iter().rev() {
        asked.reply_json(&answer(id));
        assert_eq!(record.next().await, frame(&answer(id)));
    }
    // Cancelling one stream does not affect the others.
    send(&link, request(20)).await;
    let given_up = web.next().await;
    send(&link, request(21)).await;
    let other = web.next().await;
    link.abandon(20);
    given_up.abandoned().await;
    other.reply_json(&answer(21));
    assert_eq!(record.next().await, frame(&answer(21)));
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_says_why() {
    let (root, acceptor) = certificate(&[]);
    let web = Web::start_with_tls(acceptor).await;
    let port = web.address.port();
    let trusting = client_with(HttpSettings {
        extra_roots: vec![root],
        ..HttpSettings::default()
    });
    let check = async |client: &HttpClient, url: String, expected: String| {
        let (link, mut record) = connect_with(client, RemoteServer::new(url)).await;
        send(&link, request(1)).await;
        assert_eq!(record.next().await, failed(1, &expected));
    };
    check(
        &client(),
        format!("https://localhost:{port}/"),
        format!(
            "not sent: Tls: the certificate of localhost:{port} is signed by an authority \
             that this machine does not know"
        ),
    )
    .await;
    check(
        &trusting,
        format!("https://127.0.0.1:{port}/"),
        format!("not sent: Tls: the certificate of 127.0.0.1:{port} is for another name"),
    )
    .await;

    let plain = Web::start().await;
    let address = plain.address;
    check(
        &trusting,
        format!("https://{address}/"),
        format!(
            "not sent: Tls: {address} does not speak TLS; if it should not, \
             use http:// or ws://"
        ),
    )
    .await;
    check(
        &trusting,
        format!("http://localhost:{port}/"),
        format!(
            "lost: Protocol: localhost:{port} does not answer in HTTP \
             (invalid HTTP version parsed); if it speaks TLS, use https://"
        ),
    )
    .await;
}

#[tokio::test]
async fn a_self_signed_certificate_is_trusted_where_it_is_named_and_nowhere_else() {
    let (own, acceptor) = self_signed();
    let (other, _) = certificate(&[]);
    let mut web = Web::start_with_tls(acceptor).await;
    let port = web.address.port();
    let trusting = |root: Vec<u8>| {
        client_with(HttpSettings {
            extra_roots: vec![root],
            ..HttpSettings::default()
        })
    };
    let check = async |client: &HttpClient, host: &str, expected: String| {
        let server = RemoteServer::new(format!("https://{host}:{port}/"));
        let (link, mut record) = connect_with(client, server).await;
        send(&link, request(1)).await;
        assert_eq!(record.next().await, failed(1, &expected));
    };
    let untrusted = format!(
        "not sent: Tls: the certificate of localhost:{port} is self-signed, and this machine \
         does not trust it"
    );
    check(&client(), "localhost", untrusted.clone()).await;
    check(&trusting(other), "localhost", untrusted).await;
    let trusting = trusting(own);
    let name = format!("not sent: Tls: the certificate of 127.0.0.1:{port} is for another name");
    check(&trusting, "127.0.0.1", name).await;
    let server = RemoteServer::new(format!("https://localhost:{port}/mcp"));
    let (link, mut record) = connect_with(&trusting, server).await;
    send(&link, request(1)).await;
    web.next().await.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
}
