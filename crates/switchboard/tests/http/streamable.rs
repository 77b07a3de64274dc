//! Tests of Streamable HTTP with well-behaved servers.

use axum::body::Body;
use axum::http::{Method, Response};
use switchboard::internal::transport::http::{HeadersHelper, RemoteServer};
use switchboard::transport::{Abandoned, Closed, Outgoing};
use switchboard_config::secret::Secret;
use switchboard_protocol::{Era, Revision};

use crate::failed;
use crate::network::{Event, answer, client, frame, kind, notification, request, send, within};
use crate::web::Web;
use crate::{connect, connect_with, in_session, response_to_server, server_at, stateless_request};

#[tokio::test]
async fn a_session_lasts_from_the_handshake_to_the_end() {
    let mut web = Web::start().await;
    let mut server = server_at(web.address);
    server.headers = vec![("X-Key".to_owned(), Secret::new("k"))];
    let (link, mut record) = connect(server).await;

    send(&link, request(0)).await;
    let asked = web.next().await;
    assert_eq!(
        (&asked.method, asked.path.as_str()),
        (&Method::POST, "/mcp")
    );
    assert_eq!(
        asked.header("accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(asked.header("content-type"), Some("application/json"));
    assert_eq!(asked.header("x-key"), Some("k"));
    assert_eq!(asked.header("mcp-session-id"), None);
    assert_eq!(asked.header("accept-encoding"), None);
    assert_eq!(
        asked.body,
        r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#
    );
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("mcp-session-id", "s-1")
        .body(Body::from(answer(0)));
    asked.reply(response.expect("a response"));
    assert_eq!(record.next().await, frame(&answer(0)));

    let (sent, ()) = tokio::join!(link.send(notification()), async {
        let asked = web.next().await;
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        asked.accept();
    });
    sent.expect("the server has taken it");

    link.opened(Revision::V2025_06_18);
    let asked = web.next().await;
    assert_eq!(asked.method, Method::GET);
    assert_eq!(asked.header("accept"), Some("text/event-stream"));
    assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(asked.header("x-key"), Some("k"));
    let events = asked.reply_stream();
    events.event(r#"{"jsonrpc":"2.0","method":"ping","id":7}"#);
    assert_eq!(
        record.next().await,
        frame(r#"{"jsonrpc":"2.0","method":"ping","id":7}"#)
    );

    let (sent, ()) = tokio::join!(link.send(response_to_server()), async {
        web.next().await.accept();
    });
    sent.expect("the server has taken it");

    let ((), ()) = tokio::join!(link.close(), async {
        let asked = web.next().await;
        assert_eq!(asked.method, Method::DELETE);
        assert_eq!(asked.header("mcp-session-id"), Some("s-1"));
        assert_eq!(asked.header("mcp-protocol-version"), Some("2025-06-18"));
        asked.reply_with(200, "", "");
    });
    events.abandoned().await;
    let error = link.send(request(1)).await.expect_err("the link has ended");
    assert_eq!(kind(&error), "Closed: the link has been closed");
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
    assert_eq!(web.rest(), Vec::<String>::new());
}

#[tokio::test]
async fn a_dropped_link_deletes_its_session_and_leaves_nothing_behind() {
    let mut web = Web::start().await;
    let (link, record) = in_session(&mut web).await;
    send(&link, request(1)).await;
    let pending = web.next().await;
    drop(link);
    pending.abandoned().await;
    let asked = web.next().await;
    assert_eq!(asked.method, Method::DELETE);
    asked.reply_with(405, "", "");
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn a_server_that_does_not_delete_holds_nobody_up() {
    let mut web = Web::start().await;
    let (link, record) = in_session(&mut web).await;
    within(link.close()).await;
    let asked = web.next().await;
    assert_eq!(asked.method, Method::DELETE);
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
}

#[tokio::test]
async fn the_era_of_a_message_is_what_it_says_and_not_its_headers() {
    let mut web = Web::start().await;
    let (link, mut record) = in_session(&mut web).await;
    let stateful = Outgoing {
        era: Era::Stateful,
        ..stateless_request(1)
    };
    let stateless = Outgoing {
        era: Era::Stateless,
        ..request(2)
    };
    for (id, message, session) in [(1, stateful, Some("s-1")), (2, stateless, None)] {
        send(&link, message).await;
        let asked = web.next().await;
        assert_eq!(asked.header("mcp-session-id"), session);
        asked.reply_json(&answer(id));
        assert_eq!(record.next().await, frame(&answer(id)));
    }
}

#[tokio::test]
async fn the_stateless_era_has_no_session_and_no_stream() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    send(&link, stateless_request(0)).await;
    let asked = web.next().await;
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-method"), Some("tools/list"));
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("mcp-session-id", "unasked")
        .body(Body::from(answer(0)));
    asked.reply(response.expect("a response"));
    assert_eq!(record.next().await, frame(&answer(0)));
    link.opened(Revision::V2026_07_28);

    send(&link, stateless_request(1)).await;
    let asked = web.next().await;
    assert_eq!(asked.header("mcp-session-id"), None);
    asked.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
    within(link.close()).await;
    drop(link);
    assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
    assert_eq!(web.rest(), Vec::<String>::new());
}

#[tokio::test]
async fn answers_come_in_many_dresses() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    let mut check = async |content_type: &str, body: &str, expected: &[Event]| {
        send(&link, request(1)).await;
        web.next().await.reply_with(200, content_type, body);
        for event in expected {
            assert_eq!(record.next().await, *event, "{content_type} {body}");
        }
        assert_eq!(record.rest(), [], "{content_type} {body}");
    };
    let json = answer(1);
    let delivered = [frame(&json)];
    check("application/json", &json, &delivered).await;
    check("application/json; charset=utf-8", &json, &delivered).await;
    check("application/problem+json", &json, &delivered).await;
    check("text/plain", &json, &delivered).await;
    check("", &json, &delivered).await;
    let batch = format!("[{},{}]", answer(9), answer(1));
    check("application/json", &batch, &[frame(&batch)]).await;
    let floating = r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#;
    check("application/json", floating, &[frame(floating)]).await;
    let quoted = r#"{"jsonrpc":"2.0","id":"1","result":{}}"#;
    check("application/json", quoted, &[frame(quoted)]).await;
    let broken = r#"{"jsonrpc":"2.0","id":1,"result":{"#;
    check("application/json", broken, &[frame(broken)]).await;

    let events = format!(
        ": hi\n\nevent: message\ndata: {{\"a\":1}}\n\nevent: ping\ndata: x\n\ndata: {json}\n\n"
    );
    check(
        "text/event-stream; charset=utf-8",
        &events,
        &[frame(r#"{"a":1}"#), frame(&json)],
    )
    .await;

    let lost = |reason: &str| failed(1, &format!("lost: Protocol: {reason}"));
    let page = "the server answered with text/html where JSON was expected; is the address right?";
    check("text/html", "<html>", &[lost(page)]).await;
    check(
        "application/json",
        " ",
        &[lost("the server's answer is empty")],
    )
    .await;
    check(
        "application/json",
        "",
        &[lost("the server accepted the request but sent no answer")],
    )
    .await;
    let other = answer(9);
    let none = "the server's response does not answer the request";
    check("application/json", &other, &[frame(&other), lost(none)]).await;
    let unaddressed = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
    let refused = failed(1, &format!("refused 200 <{unaddressed}>"));
    check(
        "application/json",
        unaddressed,
        &[frame(unaddressed), refused.clone()],
    )
    .await;
    let events = format!("data: {unaddressed}\n\n");
    check("text/event-stream", &events, &[frame(unaddressed), refused]).await;
    let ended = failed(
        1,
        "lost: Closed: the server ended the stream without an answer",
    );
    check("text/event-stream", "data: cut", &[ended]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_answer_blocks_no_other() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    let mut asked = Vec::new();
    for id in 0..20 {
        send(&link, request(id)).await;
        asked.push((id, web.next().await));
    }
    for (id, asked) in asked.into_iter().rev() {
        asked.reply_json(&answer(id));
        assert_eq!(record.next().await, frame(&answer(id)));
    }
}

#[tokio::test]
async fn an_abandoned_request_closes_its_stream() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    for (message, told) in [
        (request(1), Abandoned::NotTold),
        (stateless_request(1), Abandoned::Told),
    ] {
        send(&link, message).await;
        let events = web.next().await.reply_stream();
        events.event(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
        record.next().await;
        assert_eq!(link.abandon(1), told);
        events.abandoned().await;
    }
    // Also before the response headers.
    send(&link, request(2)).await;
    let asked = web.next().await;
    assert_eq!(link.abandon(2), Abandoned::NotTold);
    asked.abandoned().await;

    assert_eq!(link.abandon(77), Abandoned::NotTold);
    link.opened(Revision::V2026_07_28);
    assert_eq!(link.abandon(77), Abandoned::Told);
    assert_eq!(record.rest(), []);
}

#[tokio::test]
async fn a_stream_that_stays_open_after_its_answer_is_dropped() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    send(&link, request(1)).await;
    let events = web.next().await.reply_stream();
    events.event(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
    events.abandoned().await;
    assert_eq!(record.rest(), []);
}

#[tokio::test]
async fn an_answer_on_the_wrong_stream_is_an_answer() {
    let mut web = Web::start().await;
    let (link, mut record) = connect(server_at(web.address)).await;
    link.opened(Revision::V2025_03_26);
    let own = web.next().await.reply_stream();
    own.event("{}");
    assert_eq!(record.next().await, frame("{}"));

    // Accepted, and answered on another stream.
    send(&link, request(1)).await;
    web.next().await.accept();
    own.event(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));

    // A separate stream, and answered on another one.
    send(&link, request(2)).await;
    let events = web.next().await.reply_stream();
    events.event("{}");
    assert_eq!(record.next().await, frame("{}"));
    own.event(&answer(2));
    assert_eq!(record.next().await, frame(&answer(2)));
    events.abandoned().await;
    assert_eq!(record.rest(), []);
}

#[tokio::test]
async fn redirects_stay_inside_the_origin_and_keep_the_body() {
    let mut web = Web::start().await;
    let mut other = Web::start().await;
    let mut server = server_at(web.address);
    server.headers = vec![("Authorization".to_owned(), Secret::new("Bearer t"))];
    let (link, mut record) = connect(server).await;
    let redirect = |status: u16, target: &str| {
        let response = Response::builder()
            .status(status)
            .header("location", target);
        response.body(Body::empty()).expect("a response")
    };
    for status in [301, 302, 307, 308] {
        send(&link, request(1)).await;
        web.next().await.reply(redirect(status, "/mcp/"));
        let asked = web.next().await;
        assert_eq!(
            (&asked.method, asked.path.as_str()),
            (&Method::POST, "/mcp/")
        );
        assert_eq!(asked.header("authorization"), Some("Bearer t"));
        assert_eq!(
            asked.body,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#
        );
        asked.reply_json(&answer(1));
        assert_eq!(record.next().await, frame(&answer(1)));
    }
    for target in [
        format!("http://{}/x?key=1", other.address),
        format!("//{}/x", other.address),
    ] {
        send(&link, request(1)).await;
        web.next().await.reply(redirect(307, &target));
        let location = format!("location<http://{}/x>", other.address);
        assert_eq!(
            record.next().await,
            failed(1, &format!("refused 307 {location} <>"))
        );
    }
    // A redirect loop.
    send(&link, request(1)).await;
    for _ in 0..6 {
        web.next().await.reply(redirect(307, "/mcp"));
    }
    assert_eq!(record.next().await, failed(1, "refused 307 <>"));
    assert_eq!(other.rest(), Vec::<String>::new());
}

#[cfg(unix)]
#[tokio::test]
async fn the_headers_helper_runs_before_the_first_request_and_after_a_401() {
    let folder = tempfile::tempdir().expect("folder");
    let count = folder.path().join("count");
    let script = format!(
        "echo x >> {0}; echo \"X-Turn: $(wc -l < {0} | tr -d ' ')\"",
        count.display()
    );
    let mut web = Web::start().await;
    let mut server = server_at(web.address);
    server.headers = vec![
        ("X-Turn".to_owned(), Secret::new("fixed")),
        ("X-Other".to_owned(), Secret::new("o")),
    ];
    let words = ["sh", "-c", &script].map(str::to_owned);
    server.headers_helper = HeadersHelper::from_words(&words);
    let (link, mut record) = connect(server).await;

    send(&link, request(1)).await;
    send(&link, request(2)).await;
    for _ in 0..2 {
        let asked = web.next().await;
        assert_eq!(asked.header("x-turn"), Some("1"));
        assert_eq!(asked.header("x-other"), Some("o"));
        asked.reply_with(401, "", "");
    }
    // Both are retried, with the outcome of a single run.
    for _ in 0..2 {
        let asked = web.next().await;
        assert_eq!(asked.header("x-turn"), Some("2"));
        asked.reply_with(401, "", "no");
    }
    let mut refused = [record.next().await, record.next().await];
    refused.sort_by_key(|event| format!("{event:?}"));
    assert_eq!(
        refused,
        [failed(1, "refused 401 <no>"), failed(2, "refused 401 <no>")]
    );
    assert_eq!(web.rest(), Vec::<String>::new());
}

#[cfg(unix)]
#[tokio::test]
async fn a_server_behind_a_unix_socket_is_like_any_other() {
    let folder = tempfile::tempdir().expect("folder");
    let socket = folder.path().join("s.sock");
    let mut web = Web::start_on_socket(&socket);
    let url = format!("unix://{}:/mcp?x=1", socket.display());
    let (link, mut record) = connect(RemoteServer::new(url)).await;
    send(&link, request(1)).await;
    let asked = web.next().await;
    assert_eq!(asked.path, "/mcp?x=1");
    assert_eq!(asked.header("host"), Some("localhost"));
    asked.reply_json(&answer(1));
    assert_eq!(record.next().await, frame(&answer(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_host_that_is_gone() {
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.num_alive_tasks();
    {
        let mut web = Web::start().await;
        let client = client();
        let (link, mut record) = connect_with(&client, server_at(web.address)).await;
        link.opened(Revision::V2025_03_26);
        let own = web.next().await.reply_stream();
        for id in 0..50 {
            send(&link, request(id)).await;
            let asked = web.next().await;
            if id % 2 == 0 {
                asked.reply_json(&answer(id));
                record.next().await;
            } else {
                asked.reply_stream().event("{}");
                record.next().await;
                record.next().await;
            }
        }
        drop((link, client));
        own.abandoned().await;
        assert_eq!(record.end().await, [Event::Closed(Closed::ByUs)]);
    }
    within(async {
        while metrics.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
