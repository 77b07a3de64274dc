//! Tests of the legacy HTTP+SSE transport.

use std::sync::Arc;

use axum::http::Method;
use switchboard::internal::transport::http::{LegacyConnector, RemoteServer, StreamableConnector};
use switchboard::transport::{Abandoned, Closed, Connector, Link, TransportError};
use switchboard_config::entry::Transport;
use switchboard_config::secret::Secret;

use crate::failed;
use crate::network::{
    Event, LIMIT, Record, answer, client, frame, kind, notification, recorder, request, send,
    within,
};
use crate::web::{Asked, Events, Web};

fn server(web: &Web) -> RemoteServer {
    let mut server = RemoteServer::new(format!("http://{}/a/sse", web.address));
    server.headers = vec![("X-Key".to_owned(), Secret::new("k"))];
    server
}

/// Connects to a server that runs `script` with the first request.
async fn connect<T>(
    web: &mut Web,
    script: impl FnOnce(Asked) -> T,
) -> (Result<Arc<dyn Link>, TransportError>, Record, T) {
    let connector = LegacyConnector::new(&client(), server(web)).expect("a connector");
    let (inbound, record) = recorder();
    let (link, kept) = tokio::join!(connector.connect(inbound), async {
        script(web.next().await)
    });
    (link, record, kept)
}

async fn connected(web: &mut Web) -> (Arc<dyn Link>, Record, Events) {
    let (link, record, events) = connect(web, |asked| {
        let events = asked.reply_stream();
        events.write("event: endpoint\ndata: messages?s=1\n\n");
        events
    })
    .await;
    (link.expect("a link"), record, events)
}

#[tokio::test]
async fn messages_go_to_the_endpoint_and_answers_come_on_the_stream() {
    let mut web = Web::start().await;
    let (link, mut record, events) = connected(&mut web).await;
    send(&link, request(1)).await;
    let asked = web.next().await;
    assert_eq!(asked.method, Method::POST);
    assert_eq!(asked.path, "/a/messages?s=1");
    assert_eq!(asked.header("x-key"), Some("k"));
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(
        asked.body,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
    );
    asked.reply_with(202, "text/plain", "Accepted");
    events.write(&format!(
        "event: message\ndata: {}\n\n: ping\n\nevent: ping\ndata: 1\n\n",
        answer(1)
    ));
    assert_eq!(record.next().await, frame(&answer(1)));

    let (sent, ()) = tokio::join!(link.send(notification()), async {
        web.next().await.reply_with(200, "", "");
    });
    sent.expect("it was taken");

    // A response in the POST's body is accepted, too.
    send(&link, request(2)).await;
    web.next().await.reply_json(&answer(2));
    assert_eq!(record.next().await, frame(&answer(2)));

    send(&link, request(3)).await;
    web.next().await.reply_with(404, "", "gone");
    assert_eq!(record.next().await, failed(3, "refused 404 <gone>"));

    events.event(&format!(r#"{{"id":4,"result":"{}"}}"#, "x".repeat(LIMIT)));
    let start = r#"{"id":4,"result":"xxxxxxxxxx"#[..24].to_owned();
    assert_eq!(
        record.next().await,
        Event::Oversized {
            start,
            limit: LIMIT
        }
    );

    send(&link, request(5)).await;
    let asked = web.next().await;
    assert_eq!(link.abandon(5), Abandoned::NotTold);
    asked.abandoned().await;

    within(link.close()).await;
    events.abandoned().await;
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn the_end_of_the_stream_is_the_end_of_the_link() {
    let mut web = Web::start().await;
    let (link, mut record, events) = connected(&mut web).await;
    send(&link, request(1)).await;
    let pending = web.next().await;
    drop(events);
    assert_eq!(record.next().await, Event::Closed(Closed::ByServer));
    pending.abandoned().await;
    let error = link.send(request(2)).await.expect_err("the link has ended");
    assert_eq!(kind(&error), "Closed: the link has been closed");
    within(link.close()).await;
    drop(link);
    assert_eq!(record.end().await, []);
}

#[tokio::test]
async fn a_dropped_link_drops_its_stream() {
    let mut web = Web::start().await;
    let (link, record, events) = connected(&mut web).await;
    drop(link);
    events.abandoned().await;
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn the_endpoint_may_be_absolute_at_the_same_origin() {
    let mut web = Web::start().await;
    let own = format!("http://{}/m", web.address);
    let (link, _record, _events) = connect(&mut web, |asked| {
        let events = asked.reply_stream();
        events.write(&format!("event: endpoint\ndata: {own}\n\n"));
        events
    })
    .await;
    let link = link.expect("a link");
    send(&link, request(1)).await;
    assert_eq!(web.next().await.path, "/m");
}

#[tokio::test]
async fn a_server_that_does_not_speak_it_says_so_in_the_error() {
    let mut web = Web::start().await;
    let address = web.address;
    let check =
        async |web: &mut Web, status: u16, content_type: &str, body: &str, expected: &str| {
            let reply = |asked: Asked| asked.reply_with(status, content_type, body);
            let (link, record, ()) = connect(web, reply).await;
            let error = link.err().expect(expected);
            assert_eq!(kind(&error), format!("Protocol: {expected}"));
            assert_eq!(error.status(), (status != 200).then_some(status));
            assert_eq!(record.end().await, []);
        };
    let events = "text/event-stream";
    check(
        &mut web,
        405,
        "",
        "",
        "the server answered with HTTP status 405",
    )
    .await;
    check(
        &mut web,
        200,
        "text/html",
        "<html>",
        "the server answered with text/html where a stream of events was expected",
    )
    .await;
    check(
        &mut web,
        200,
        events,
        "data: {}\n\n",
        "the server's stream ended before it named an endpoint",
    )
    .await;
    let chatter = "data: {}\n\n".repeat(20);
    check(
        &mut web,
        200,
        events,
        &chatter,
        "the server's stream names no endpoint",
    )
    .await;
    check(
        &mut web,
        200,
        events,
        "event: endpoint\ndata: http://[bad\n\n",
        "the server's stream names an invalid endpoint",
    )
    .await;
    check(
        &mut web,
        200,
        events,
        "event: endpoint\ndata: http://127.0.0.1:1/m?token=t\n\n",
        &format!(
            "the server names the endpoint http://127.0.0.1:1/m, which is not at the origin of \
             http://{address}/a/sse"
        ),
    )
    .await;
}

#[tokio::test]
async fn a_connection_attempt_that_is_dropped_leaves_nothing() {
    let mut web = Web::start().await;
    let connector = LegacyConnector::new(&client(), server(&web)).expect("a connector");
    let (inbound, record) = recorder();
    let mut connecting = connector.connect(inbound);
    let events = tokio::select! {
        _ = &mut connecting => panic!("no endpoint was named"),
        asked = web.next() => asked.reply_stream(),
    };
    drop(connecting);
    drop(events);
    assert_eq!(record.end().await, []);
}

#[test]
fn streamable_http_knows_its_older_transport() {
    let server = RemoteServer::new("https://example.com/mcp");
    let connector = StreamableConnector::new(&client(), server).expect("a connector");
    assert_eq!(connector.transport(), Transport::Http);
    let legacy = connector.legacy().expect("the older transport");
    assert_eq!(legacy.transport(), Transport::Sse);
    assert!(legacy.legacy().is_none());
}
