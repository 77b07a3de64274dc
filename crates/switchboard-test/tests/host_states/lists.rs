//! Lists: the effect of changes, limits on endless lists, and errors without a request id.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use switchboard::internal::peer;
use switchboard::internal::peer::{Notice, Observer, PageLimits, Peer};
use switchboard::internal::spec::ServerSpec;
use switchboard::transport::Closed;
use switchboard::{DeclineAll, Event, HostSettings, ListKind, OpenOptions};
use switchboard_protocol::Era;
use switchboard_test::hosted::{SeenEvents, call, spec};
use switchboard_test::scripted::{Fault, Over, Rule, Script, Tool, start};

use super::{LONG, host, name};

#[tokio::test]
async fn a_change_of_prompts_drops_the_cached_prompts() {
    for (over, era) in [
        (Over::Stdio, Era::Stateful),
        (Over::Stdio, Era::Stateless),
        (Over::Http, Era::Stateful),
        (Over::Http, Era::Stateless),
        (Over::WebSocket, Era::Stateful),
    ] {
        let mut script = Script::new("lab")
            .era(era)
            .prompt("greet", &[], "hello")
            .resource("file:///last", "");
        script.ttl_ms = 1_000_000;
        let server = start(script, over).await.unwrap();
        let host = host(HostSettings::default());
        let mut events = SeenEvents::of(&host);
        host.add_server(spec("lab", &server, over, 1024 * 1024))
            .await
            .unwrap();
        if era == Era::Stateless {
            let listening = server.control.wait_for_method("subscriptions/listen", 1);
            listening.await.unwrap();
        }
        // The second call uses the cache.
        for _ in 0..2 {
            host.list(&name(), ListKind::Prompts).await.unwrap();
        }
        server
            .control
            .notify("notifications/prompts/list_changed", json!({}));
        events
            .until(|events| {
                let is_prompts = |event: &Event| {
                    let list = ListKind::Prompts;
                    matches!(event, Event::CatalogChanged { list: changed, .. } if *changed == list)
                };
                events.iter().any(is_prompts).then_some(())
            })
            .await;
        host.list(&name(), ListKind::Prompts).await.unwrap();
        // Records of the server may be late; after this one, all earlier ones are present.
        host.list(&name(), ListKind::Resources).await.unwrap();
        let last = server.control.wait_for_method("resources/list", 1);
        last.await.unwrap();
        let methods = server.control.methods();
        let lists = methods.iter().filter(|method| *method == "prompts/list");
        assert_eq!(lists.count(), 2, "{over:?}, {era:?}");
        host.shutdown().await;
    }
}

struct Nobody;

impl Observer for Nobody {
    fn notice(&self, _: Notice<'_>) {}

    fn closed(&self, _: &Closed) {}
}

async fn open(spec: &ServerSpec) -> Peer {
    peer::open(
        &spec.name,
        &*spec.connector,
        &OpenOptions::default(),
        Arc::new(Nobody),
        Arc::new(DeclineAll),
        &|_| {},
    )
    .await
    .unwrap()
}

#[tokio::test]
async fn a_list_is_fetched_up_to_its_limits_and_says_so() {
    const MANY: usize = 1_000_000;
    let mut script = Script::new("lab").era(Era::Stateful);
    for number in 0..5 {
        script = script.tool(Tool::new(&format!("tool-{number}")));
    }
    script.page_size = Some(1);
    let server = start(script, Over::Http).await.unwrap();
    let peer = open(&spec("lab", &server, Over::Http, 1024 * 1024)).await;
    let fetch = async |pages: usize, bytes: usize| {
        let limits = PageLimits { pages, bytes };
        let list = peer.list(ListKind::Tools, limits, LONG).await.unwrap();
        (list.pages.len(), list.cut)
    };
    let cut = |what: &str| Some(format!("more than {what}"));
    // A list exactly at the limit is complete.
    assert_eq!(fetch(5, MANY).await, (5, None));
    assert_eq!(fetch(6, MANY).await, (5, None));
    assert_eq!(fetch(4, MANY).await, (4, cut("4 pages")));
    assert_eq!(fetch(1, MANY).await, (1, cut("1 pages")));
    // All pages have the size of the first, except the last one, which has no cursor.
    let first = peer.list(
        ListKind::Tools,
        PageLimits {
            pages: 1,
            bytes: MANY,
        },
        LONG,
    );
    let size = first.await.unwrap().pages[0].as_str().len();
    assert_eq!(fetch(9, size).await, (1, cut(&format!("{size} bytes"))));
    let more = size + 1;
    assert_eq!(fetch(9, more).await, (2, cut(&format!("{more} bytes"))));
    assert_eq!(fetch(9, 5 * size).await, (5, None));
    peer.close().await;
}

#[tokio::test]
async fn an_error_without_an_id_fails_the_only_pending_request() {
    let text = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what was that?"}}"#;
    for over in [Over::Stdio, Over::WebSocket] {
        let script = Script::new("lab")
            .era(Era::Stateful)
            .tool(Tool::new("echo"))
            .rule(Rule::on("tools/call", Fault::Text(text.to_owned())));
        let server = start(script, over).await.unwrap();
        let host = host(HostSettings::default());
        host.add_server(spec("lab", &server, over, 1024 * 1024))
            .await
            .unwrap();
        // Otherwise the call would wait until its deadline.
        let error = call(&host, "lab/echo", json!({}), Duration::from_secs(50)).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("what was that?"), "{over:?}: {error}");
        host.shutdown().await;
    }
}
