//! Tests of streams that end early, and of the server-initiated stream.

use axum::http::Method;
use switchboard_protocol::Revision;

use crate::failed;
use crate::network::{answer, frame, request, send};
use crate::web::{Asked, Web};
use crate::{connect, in_session, server_at, stateless_request};

fn assert_resumes(asked: &Asked, last_id: &str) {
    assert_eq!(asked.method, Method::GET);
    assert_eq!(asked.header("accept"), Some("text/event-stream"));
    assert_eq!(asked.header("last-event-id"), Some(last_id));
    assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
}

#[tokio::test]
async fn an_answer_is_fetched_where_its_stream_broke_off() {
    let mut web = Web::start().await;
    let (link, mut record) = in_session(&mut web).await;
    send(&link, request(1)).await;
    let events = web.next().await.reply_stream();
    events.write("id: a-1\nretry: 1\ndata: {\"n\":1}\n\nid: a-2\ndata: {\"n\":2}");
    assert_eq!(record.next().await, frame(r#"{"n":1}"#));
    drop(events);

    let asked = web.next().await;
    assert_resumes(&asked, "a-1");
    let events = asked.reply_stream();
    events.write(&format!(
        "id: a-2\ndata: {{\"n\":2}}\n\nid: a-3\ndata: {}\n\n",
        answer(1)
    ));
    assert_eq!(record.next().await, frame(r#"{"n":2}"#));
    assert_eq!(record.next().await, frame(&answer(1)));
    events.abandoned().await;
    assert_eq!(record.rest(), []);
}

#[tokio::test]
async fn a_server_may_close_a_stream_to_be_asked_again() {
    let mut web = Web::start().await;
    let (link, mut record) = in_session(&mut web).await;
    send(&link, request(1)).await;
    web.next()
        .await
        .reply_with(200, "text/event-stream", "id: p-0\nretry: 1\ndata:\n\n");
    for turn in 0..10 {
        let asked = web.next().await;
        assert_resumes(&asked, &format!("p-{turn}"));
        let next = format!("id: p-{}\ndata:\n\n", turn + 1);
        asked.reply_with(200, "text/event-stream", &next);
    }
    let asked = web.next().await;
    assert_resumes(&asked, "p-10");
    // A failed attempt is retried, and the response may even be plain JSON.
    asked.reply_with(503, "", "");
    let asked = web.next().await;
    assert_resumes(&asked, "p-10");
    asked.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_again_has_lost_its_request() {
    let mut web = Web::start().await;
    let (link, mut record) = in_session(&mut web).await;
    let primed = "id: p-0\nretry: 1\ndata:\n\n";
    for status in [400, 404, 405] {
        send(&link, request(1)).await;
        web.next()
            .await
            .reply_with(200, "text/event-stream", primed);
        web.next().await.reply_with(status, "", "");
        let reason = format!(
            "the answer's stream ended early and cannot be resumed: \
             the server answered with HTTP status {status}"
        );
        assert_eq!(
            record.next().await,
            failed(1, &format!("lost: Protocol: {reason}"))
        );
    }
    // Without an event ID, or in the stateless era, a stream cannot be resumed.
    let ended = failed(
        1,
        "lost: Closed: the server ended the stream without an answer",
    );
    send(&link, request(1)).await;
    web.next()
        .await
        .reply_with(200, "text/event-stream", "retry: 1\ndata:\n\n");
    assert_eq!(record.next().await, ended);
    send(&link, stateless_request(1)).await;
    web.next()
        .await
        .reply_with(200, "text/event-stream", primed);
    assert_eq!(record.next().await, ended);
    assert_eq!(web.rest(), Vec::<String>::new());
}

#[tokio::test]
async fn a_request_that_is_abandoned_in_a_pause_asks_no_more() {
    let mut web = Web::start().await;
    let (link, mut record) = in_session(&mut web).await;
    send(&link, request(1)).await;
    let events = web.next().await.reply_stream();
    events.write("id: a-1\nretry: 200000\ndata: {}\n\n");
    assert_eq!(record.next().await, frame("{}"));
    drop(events);
    link.abandon(1);
    let ((), asked) = tokio::join!(link.close(), web.next());
    assert_eq!(asked.method, Method::DELETE);
    drop(link);
    assert_eq!(record.end().await.len(), 1);
}

#[tokio::test]
async fn the_servers_own_stream_comes_back() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    link.opened(Revision::V2025_11_25);
    let asked = web.next().await;
    assert_eq!(asked.header("last-event-id"), None);
    asked.reply_with(
        200,
        "text/event-stream",
        "retry: 1\nid: g-1\ndata: {\"n\":1}\n\n",
    );
    assert_eq!(record.next().await, frame(r#"{"n":1}"#));

    let asked = web.next().await;
    assert_eq!(asked.header("last-event-id"), Some("g-1"));
    asked.reply_with(502, "", "");
    let asked = web.next().await;
    assert_eq!(asked.header("last-event-id"), Some("g-1"));
    // The event ID is too old to resume from: start from now.
    asked.reply_with(400, "", "");
    let asked = web.next().await;
    assert_eq!(asked.header("last-event-id"), None);
    let events = asked.reply_stream();
    events.event(r#"{"n":2}"#);
    assert_eq!(record.next().await, frame(r#"{"n":2}"#));
    drop(events);

    // A server that drops the stream permanently is not asked again, and the link stays open.
    web.next().await.reply_with(405, "", "");
    send(&link, request(1)).await;
    web.next().await.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
    assert_eq!(web.rest(), Vec::<String>::new());
}
