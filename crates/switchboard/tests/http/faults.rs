//! Tests of refusals, oversized responses, broken connections and hostile servers.

use std::time::Duration;

use axum::body::Body;
use axum::http::Response;
use switchboard::internal::transport::http::{HttpSettings, RemoteServer, StreamableConnector};
use switchboard::transport::{Connector as _, TransportErrorKind};
use switchboard_config::secret::Secret;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::failed;
use crate::network::{
    Event, LIMIT, answer, client, client_with, frame, kind, notification, recorder, request, send,
    within,
};
use crate::web::Web;
use crate::{connect, connect_with, in_session, server_at};

#[tokio::test]
async fn a_refusal_is_passed_on_with_all_it_says() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    let mut check = async |response: axum::http::response::Builder, body: &str, expected: &str| {
        send(&link, request(1)).await;
        let response = response.body(Body::from(body.to_owned()));
        web.next().await.reply(response.expect("a response"));
        assert_eq!(record.next().await, failed(1, expected));
    };
    let status = |status: u16| Response::builder().status(status);
    check(status(400), "{\"a\":1}", "refused 400 <{\"a\":1}>").await;
    check(status(404), "", "refused 404 <>").await;
    check(
        status(401)
            .header("www-authenticate", "Bearer realm=\"x\"")
            .header("www-authenticate", "Basic"),
        "",
        "refused 401 challenge<Bearer realm=\"x\"> challenge<Basic> <>",
    )
    .await;
    check(
        status(429).header("retry-after", "7"),
        "",
        "refused 429 retry<7s> <>",
    )
    .await;
    check(
        status(503).header("retry-after", "99999999999"),
        "",
        "refused 503 retry<86400s> <>",
    )
    .await;
    check(
        status(503).header("retry-after", "soon"),
        "",
        "refused 503 <>",
    )
    .await;
    check(status(304), "", "refused 304 <>").await;
    let long = "x".repeat(100_000);
    check(
        status(500),
        &long,
        &format!("refused 500 <{}>", &long[..64 * 1024]),
    )
    .await;
}

#[tokio::test]
async fn a_404_in_a_session_says_so() {
    let mut web = Web::start().await;
    let (link, mut record) = in_session(&mut web).await;
    send(&link, request(1)).await;
    web.next().await.reply_with(404, "", "");
    assert_eq!(record.next().await, failed(1, "refused 404 in session <>"));
}

#[tokio::test]
async fn a_notification_that_is_refused_is_an_error_of_its_sender() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    let (sent, ()) = tokio::join!(link.send(notification()), async {
        web.next().await.reply_with(403, "", "no");
    });
    let error = sent.expect_err("a refusal");
    assert_eq!(
        kind(&error),
        "Protocol: the server answered with HTTP status 403"
    );
    assert_eq!(error.status(), Some(403));
    let refusal = error.refusal.expect("a refusal");
    assert_eq!(refusal.body, "no");

    // The response to a notification is passed on without waiting for it.
    let (sent, ()) = tokio::join!(link.send(notification()), async {
        let asked = web.next().await;
        asked.reply_json(r#"{"jsonrpc":"2.0","method":"x"}"#);
    });
    sent.expect("it was taken");
    assert_eq!(
        record.next().await,
        frame(r#"{"jsonrpc":"2.0","method":"x"}"#)
    );
    let sent = link.send(notification());
    drop(sent);
    assert_eq!(
        web.next().await.body,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#
    );
}

#[tokio::test]
async fn a_message_that_is_not_taken_in_time_is_given_up() {
    let mut web = Web::start().await;
    let (link, _record) = connect(server_at(web.address)).await;
    let (sent, ()) = tokio::join!(link.send(notification()), async {
        let asked = web.next().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(31)).await;
        tokio::time::resume();
        asked.abandoned().await;
    });
    let error = sent.expect_err("a deadline");
    let expected = "Timeout: the server did not accept the message within 30 seconds";
    assert_eq!(kind(&error), expected);
}

#[tokio::test]
async fn an_answer_over_the_limit_fails_its_call_alone() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    let too_large = failed(1, &format!("the answer is larger than {LIMIT} bytes"));
    let filler = "x".repeat(LIMIT);
    let large = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":"{filler}"}}}}"#);

    // With a known length.
    send(&link, request(1)).await;
    web.next().await.reply_json(&large);
    assert_eq!(record.next().await, too_large);

    // With an unknown length.
    send(&link, request(1)).await;
    let response = Response::builder().header("content-type", "application/json");
    let chunks = large
        .as_bytes()
        .chunks(5000)
        .map(|chunk| Ok::<_, std::io::Error>(chunk.to_vec()));
    let chunks: Vec<_> = chunks.collect();
    let body = Body::from_stream(futures_util::stream::iter(chunks));
    web.next()
        .await
        .reply(response.body(body).expect("a response"));
    assert_eq!(record.next().await, too_large);

    // In an event.
    send(&link, request(1)).await;
    let events = web.next().await.reply_stream();
    events.event(&format!(
        r#"{{"jsonrpc":"2.0","method":"log","params":"{filler}"}}"#
    ));
    let start = r#"{"jsonrpc":"2.0","method":"log","params":"#[..24].to_owned();
    assert_eq!(
        record.next().await,
        Event::Oversized {
            start,
            limit: LIMIT
        }
    );
    events.event(&large);
    assert_eq!(record.next().await, too_large);
    events.abandoned().await;

    // An endless body is aborted at the limit.
    send(&link, request(1)).await;
    let events = web.next().await.reply_stream();
    events.write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"");
    for _ in 0..20 {
        events.write(&filler);
    }
    events.write("\"}\n\n");
    assert_eq!(record.next().await, too_large);

    // A body exactly at the limit is accepted.
    let rest = LIMIT - r#"{"jsonrpc":"2.0","id":1,"result":{"x":""}}"#.len();
    let exact = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"x":"{}"}}}}"#,
        "y".repeat(rest)
    );
    for content_type in ["application/json", "text/event-stream"] {
        send(&link, request(1)).await;
        let asked = web.next().await;
        if content_type == "application/json" {
            asked.reply_json(&exact);
        } else {
            asked.reply_with(200, content_type, &format!("data: {exact}\n\n"));
        }
        assert_eq!(record.next().await, frame(&exact));
    }
}

#[tokio::test]
async fn a_compressed_answer_is_not_unpacked() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    send(&link, request(1)).await;
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("content-encoding", "gzip")
        .body(Body::from("\u{1f}\u{8b}"));
    web.next().await.reply(response.expect("a response"));
    let reason = "the server's answer is compressed (gzip), which it was not asked for";
    assert_eq!(
        record.next().await,
        failed(1, &format!("lost: Protocol: {reason}"))
    );
}

/// A server that reads a request, writes these bytes, and then closes the connection or hangs.
async fn raw_server(bytes: &'static [u8], hangs: bool) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let mut seen = Vec::new();
            // The request's body ends with a brace; a GET has none.
            while !seen.ends_with(b"}") && !seen.starts_with(b"GET") {
                match stream.read(&mut request).await {
                    Ok(count) if count > 0 => seen.extend_from_slice(&request[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(bytes).await;
            if hangs {
                let _ = stream.read(&mut request).await;
            }
        }
    });
    address
}

#[tokio::test]
async fn a_connection_that_breaks_loses_the_request_and_not_the_link() {
    let check = async |bytes: &'static [u8], expected: &[&str]| {
        let address = raw_server(bytes, false).await;
        let (link, mut record) = connect(server_at(address)).await;
        for _ in 0..2 {
            send(&link, request(1)).await;
            for expected in expected {
                match record.next().await {
                    Event::Failed(1, reason) => {
                        let reason = reason.replace(&address.to_string(), "HERE");
                        assert!(reason.starts_with(expected), "{reason}");
                    }
                    event => assert_eq!(event, frame(expected)),
                }
            }
            assert_eq!(record.rest(), []);
        }
    };
    check(b"", &["lost: "]).await;
    check(b"HTTP/1.1 200 OK\r\ncontent-ty", &["lost: "]).await;
    check(
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{\"id\":1",
        &["lost: "],
    )
    .await;
    check(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
          b\r\ndata: {}\r\n\r\n\r\n9\r\ndata: {\"i\r\n",
        &["{}", "lost: "],
    )
    .await;
    check(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        &["lost: "],
    )
    .await;
    check(
        b"\x15\x03\x01\x00\x02\x02\x16",
        &[
            "lost: Protocol: HERE does not answer in HTTP (invalid HTTP version parsed); \
           if it speaks TLS, use https://",
        ],
    )
    .await;
    check(
        b"SSH-2.0-OpenSSH_9.6\r\n",
        &["lost: Protocol: HERE does not answer in HTTP"],
    )
    .await;
}

#[tokio::test]
async fn a_server_that_stalls_is_given_up_by_the_caller() {
    for bytes in [
        &b"HTTP/1.1 200 OK\r\ncontent"[..],
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {",
    ] {
        let address = raw_server(bytes, true).await;
        let (link, mut record) = connect(server_at(address)).await;
        send(&link, request(1)).await;
        link.abandon(1);
        within(link.close()).await;
        drop(link);
        assert!(matches!(record.next().await, Event::Closed(_)));
        assert_eq!(record.end().await, []);
    }
}

#[tokio::test]
async fn what_keeps_a_request_from_the_server_is_told_apart() {
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        listener.local_addr().expect("an address")
    };
    let check = async |server: RemoteServer, expected: String| {
        let (link, mut record) = connect(server).await;
        send(&link, request(1)).await;
        assert_eq!(record.next().await, failed(1, &expected));
    };
    check(
        server_at(closed),
        format!("not sent: Refused: the connection to {closed} was refused"),
    )
    .await;
    // The resolver itself rejects a label that is too long, without network access.
    let name = format!("{}.invalid", "a".repeat(64));
    check(
        RemoteServer::new(format!("http://{name}:1/")),
        format!("not sent: Dns: cannot resolve host {name}"),
    )
    .await;
    check(
        RemoteServer::new("unix:///no/such/folder/x.sock"),
        "not sent: Refused: socket /no/such/folder/x.sock does not exist".to_owned(),
    )
    .await;
}

#[tokio::test]
async fn a_handshake_that_hangs_runs_into_the_time_to_connect() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let client = client_with(HttpSettings {
        connect_timeout: Duration::from_millis(50),
        ..HttpSettings::default()
    });
    let server = RemoteServer::new(format!("https://{address}/"));
    let (link, mut record) = connect_with(&client, server).await;
    send(&link, request(1)).await;
    let expected = format!("not sent: Timeout: {address} did not answer in time");
    assert_eq!(record.next().await, failed(1, &expected));
}

#[tokio::test]
async fn a_link_that_cannot_be_configured_is_not_made() {
    let check = |server: RemoteServer, expected: &str| {
        let error = StreamableConnector::new(&client(), server).expect_err(expected);
        assert_eq!(kind(&error), format!("Invalid: {expected}"));
    };
    let mut server = RemoteServer::new("http://127.0.0.1/");
    server.headers = vec![("X-A".to_owned(), Secret::new("secret\r\nX-B: 1"))];
    let control = "has a value with a line break or another control character";
    check(server, &format!("the header `X-A` {control}"));
    check(
        RemoteServer::new("ws://127.0.0.1/?token=secret"),
        "`ws://127.0.0.1/?token=********` is not a valid address: its scheme is not http or https",
    );

    let mut server = RemoteServer::new("http://127.0.0.1/");
    let helper = switchboard::internal::transport::http::HeadersHelper::from_words(&[
        "/no/helper".to_owned()
    ]);
    server.headers_helper = helper;
    let connector = StreamableConnector::new(&client(), server).expect("a connector");
    let error = connector
        .connect(recorder().0)
        .await
        .err()
        .expect("no helper");
    assert_eq!(error.kind, TransportErrorKind::ProgramNotFound);
}

#[tokio::test]
async fn the_proxy_is_asked_instead_of_the_server() {
    let mut proxy = Web::start().await;
    let mut direct = Web::start().await;
    let settings = HttpSettings {
        proxy: switchboard::internal::transport::http::ProxySettings {
            http: Some(Secret::new(format!("http://u:p@{}", proxy.address))),
            except: Some("127.0.0.1".to_owned()),
            ..Default::default()
        },
        ..HttpSettings::default()
    };
    let client = client_with(settings);
    let (link, mut record) = connect_with(&client, RemoteServer::new("http://mcp.invalid/x")).await;
    send(&link, request(1)).await;
    let asked = proxy.next().await;
    assert_eq!(asked.header("host"), Some("mcp.invalid"));
    assert_eq!(asked.header("proxy-authorization"), Some("Basic dTpw"));
    asked.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));

    let (link, mut record) = connect_with(&client, server_at(direct.address)).await;
    send(&link, request(1)).await;
    let asked = direct.next().await;
    assert_eq!(asked.header("proxy-authorization"), None);
    asked.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
}
