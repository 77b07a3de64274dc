//! Tests of calls answered with URLs to visit first (−32042): the user is asked, and the call is retried once.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _, ready};
use serde_json::{Value, json};
use switchboard::internal::person::working_time;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::transport::{
    Abandoned, Connector, Inbound, Link, Outgoing, Sending, TransportError, sent,
};
use switchboard::{
    CallError, CallOutcome, CallRequest, ClientHandler, Host, HostOptions, ServerName,
};
use switchboard_config::entry::Transport;
use switchboard_protocol::types::elicitation::{ElicitAction, ElicitRequestParams, ElicitResult};
use switchboard_protocol::{ErrorObject, Revision};
use tokio::sync::Notify;
use tokio::time::Instant;

/// A server with one tool that requires URLs to be visited first.
struct Shop {
    /// The number of calls answered with URLs.
    refusals: AtomicUsize,
    /// The `data` of these errors.
    data: Value,
    calls: AtomicUsize,
    /// Whether a call is answered only after the user has answered a form.
    asks: AtomicBool,
    /// The call that waits for the form.
    waiting: Mutex<Option<Value>>,
    inbound: Mutex<Option<Arc<dyn Inbound>>>,
}

impl Shop {
    fn new(refusals: usize, data: Value) -> Arc<Self> {
        Arc::new(Self {
            refusals: AtomicUsize::new(refusals),
            data,
            calls: AtomicUsize::new(0),
            asks: AtomicBool::new(false),
            waiting: Mutex::default(),
            inbound: Mutex::default(),
        })
    }

    fn say(&self, message: &Value) {
        let inbound = self.inbound.lock().unwrap().clone().unwrap();
        inbound.frame(Bytes::from(message.to_string()));
    }

    fn complete(&self, page: &str) {
        let params = json!({"elicitationId": page});
        self.say(&json!({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params}));
    }

    fn answer(&self, method: &str) -> Result<Value, Value> {
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "shop", "version": "1"}
            })),
            "tools/list" => {
                Ok(json!({"tools": [{"name": "buy", "inputSchema": {"type": "object"}}]}))
            }
            "tools/call" => {
                self.calls.fetch_add(1, Ordering::Relaxed);
                let left = self.refusals.load(Ordering::Relaxed);
                if left == 0 {
                    return Ok(json!({"content": [{"type": "text", "text": "bought"}]}));
                }
                self.refusals.store(left - 1, Ordering::Relaxed);
                Err(json!({"code": -32042, "message": "pay first", "data": self.data}))
            }
            _ => Err(json!({"code": -32601, "message": "no such method"})),
        }
    }
}

impl fmt::Debug for Shop {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Shop")
    }
}

#[derive(Debug)]
struct ShopConnector(Arc<Shop>);

impl Connector for ShopConnector {
    fn transport(&self) -> Transport {
        Transport::Sdk
    }

    fn connect(
        &self,
        inbound: Arc<dyn Inbound>,
    ) -> BoxFuture<'_, Result<Arc<dyn Link>, TransportError>> {
        *self.0.inbound.lock().unwrap() = Some(inbound);
        let link: Arc<dyn Link> = Arc::new(ShopLink(Arc::clone(&self.0)));
        ready(Ok(link)).boxed()
    }
}

struct ShopLink(Arc<Shop>);

impl Link for ShopLink {
    fn send(&self, message: Outgoing) -> Sending<'_> {
        let message: Value = serde_json::from_slice(&message.payload).unwrap();
        let is_call = message["method"] == "tools/call";
        if is_call && self.0.asks.load(Ordering::Relaxed) {
            *self.0.waiting.lock().unwrap() = Some(message["id"].clone());
            let form = json!({"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}});
            self.0.say(&json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": form}));
        } else if message["id"] == "q" {
            let id = self.0.waiting.lock().unwrap().take().unwrap();
            let result = self.0.answer("tools/call").unwrap();
            self.0
                .say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
        } else if let Some(id) = message.get("id") {
            let answer = self
                .0
                .answer(message["method"].as_str().unwrap_or_default());
            self.0.say(&match answer {
                Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
                Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
            });
        }
        sent(Ok(()))
    }

    fn abandon(&self, _: u64) -> Abandoned {
        Abandoned::NotTold
    }

    fn opened(&self, _: Revision) {}

    fn close(&self) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

/// A user who answers every URL in the same way.
struct User {
    does: ElicitAction<'static>,
    /// A URL that completes before the user answers.
    completes: Option<(Arc<Shop>, &'static str)>,
    pages: Mutex<Vec<String>>,
    asked: Notify,
    /// The time the user takes to answer a form.
    thinks: Duration,
}

impl User {
    fn who(does: ElicitAction<'static>) -> Self {
        Self {
            does,
            completes: None,
            pages: Mutex::default(),
            asked: Notify::new(),
            thinks: Duration::ZERO,
        }
    }

    fn pages(&self) -> Vec<String> {
        self.pages.lock().unwrap().clone()
    }
}

struct Asks(Arc<User>);

impl ClientHandler for Asks {
    fn elicit<'a>(
        &'a self,
        server: &'a ServerName,
        params: ElicitRequestParams<'a>,
    ) -> BoxFuture<'a, Result<ElicitResult<'static>, ErrorObject<'static>>> {
        if let ElicitRequestParams::Url(page) = &params {
            let mut pages = self.0.pages.lock().unwrap();
            pages.push(format!("{server}: {} at {}", page.message, page.url));
        }
        if let Some((shop, page)) = &self.0.completes {
            shop.complete(page);
        }
        self.0.asked.notify_one();
        async move {
            tokio::time::sleep(self.0.thinks).await;
            Ok(ElicitResult::new(self.0.does.clone()))
        }
        .boxed()
    }
}

fn page(id: &str) -> Value {
    json!({"mode": "url", "elicitationId": id, "url": format!("https://shop.example/{id}"), "message": "pay"})
}

async fn open(shop: &Arc<Shop>, user: &Arc<User>) -> Host {
    let host = Host::with_options(HostOptions {
        handler: Arc::new(Asks(Arc::clone(user))),
        ..HostOptions::default()
    });
    let connector = Arc::new(ShopConnector(Arc::clone(shop)));
    let spec = ServerSpec::new("shop", connector, ConnectionKey::of(&[b"shop"]));
    host.add_server(spec).await.unwrap();
    host
}

async fn buy(host: &Host) -> Result<CallOutcome, CallError> {
    host.request(CallRequest {
        tool: "shop/buy".to_owned(),
        ..CallRequest::default()
    })
    .await
}

#[tokio::test(start_paused = true)]
async fn a_call_is_made_again_when_the_page_is_done_with() {
    let shop = Shop::new(1, json!({"elicitations": [page("one")]}));
    let user = Arc::new(User::who(ElicitAction::Accept));
    let host = open(&shop, &user).await;
    let started = Instant::now();
    let buying = tokio::spawn({
        let host = host.clone();
        async move { buy(&host).await }
    });
    user.asked.notified().await;
    shop.complete("another");
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(shop.calls.load(Ordering::Relaxed), 1);
    shop.complete("one");
    let outcome = buying.await.unwrap().unwrap();
    assert!(outcome.result.as_str().contains("bought"));
    assert_eq!(started.elapsed().as_secs(), 20);
    assert_eq!(user.pages(), ["shop: pay at https://shop.example/one"]);
    assert_eq!(shop.calls.load(Ordering::Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn the_time_that_a_question_of_the_server_takes_is_not_the_calls() {
    let shop = Shop::new(0, Value::Null);
    shop.asks.store(true, Ordering::Relaxed);
    let user = Arc::new(User {
        thinks: Duration::from_secs(30),
        ..User::who(ElicitAction::Accept)
    });
    let host = open(&shop, &user).await;
    let started = Instant::now();
    let (outcome, took) = working_time(buy(&host)).await;
    assert!(outcome.unwrap().result.as_str().contains("bought"));
    assert_eq!((started.elapsed().as_secs(), took.as_secs()), (30, 0));
}

#[tokio::test(start_paused = true)]
async fn what_comes_of_pages_to_visit() {
    let check = async |data: Value,
                       refusals,
                       user: User,
                       expected: Result<u64, &str>,
                       seen: (usize, usize)| {
        let shop = Shop::new(refusals, data.clone());
        let user = Arc::new(User {
            completes: user.completes.map(|(_, page)| (Arc::clone(&shop), page)),
            ..user
        });
        let host = open(&shop, &user).await;
        let started = Instant::now();
        let outcome = buy(&host).await;
        let outcome = match &outcome {
            Ok(_) => Ok(started.elapsed().as_secs()),
            Err(error) => Err(error.to_string()),
        };
        assert_eq!(outcome, expected.map_err(str::to_owned), "{data}");
        let calls = shop.calls.load(Ordering::Relaxed);
        assert_eq!((calls, user.pages().len()), seen, "{data}");
    };
    let one = || json!({"elicitations": [page("one")]});
    let accept = || User::who(ElicitAction::Accept);
    let unsaid = Shop::new(0, Value::Null);

    // A server that never reports completion is retried after a while.
    check(one(), 1, accept(), Ok(180), (2, 1)).await;
    // An early completion is not waited for, and a URL without an ID cannot complete.
    let early = User {
        completes: Some((unsaid, "one")),
        ..accept()
    };
    check(one(), 1, early, Ok(0), (2, 1)).await;
    let mut nameless = page("one");
    nameless.as_object_mut().unwrap().remove("elicitationId");
    check(
        json!({"elicitations": [nameless]}),
        1,
        accept(),
        Ok(0),
        (2, 1),
    )
    .await;
    let two = json!({"elicitations": [page("one"), page("two")]});
    check(two.clone(), 1, accept(), Ok(360), (2, 2)).await;
    // Only one retry.
    let wanted = "the call of shop/buy failed: pay first (code -32042)";
    check(one(), 2, accept(), Err(wanted), (2, 1)).await;
    // A refusal also covers the URLs that would follow.
    let declined = "the call of shop/buy failed: the server requires a page to be visited first, and that was declined";
    check(
        two.clone(),
        1,
        User::who(ElicitAction::Decline),
        Err(declined),
        (1, 1),
    )
    .await;
    let cancelled = "the call of shop/buy failed: the server requires a page to be visited first, and that was cancelled";
    check(
        two,
        1,
        User::who(ElicitAction::Cancel),
        Err(cancelled),
        (1, 1),
    )
    .await;
    // Errors without URLs, or with too many, are ordinary errors.
    let many: Vec<Value> = (0..9).map(|number| page(&number.to_string())).collect();
    for odd in [
        json!({}),
        json!({"elicitations": []}),
        json!({"elicitations": many}),
        json!("pay"),
    ] {
        check(odd, 1, accept(), Err(wanted), (1, 0)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_given_up_waits_for_no_page() {
    let shop = Shop::new(1, json!({"elicitations": [page("one")]}));
    let user = Arc::new(User::who(ElicitAction::Accept));
    let host = open(&shop, &user).await;
    let buying = buy(&host);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), buying)
            .await
            .is_err()
    );
    shop.complete("one");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(shop.calls.load(Ordering::Relaxed), 1);
    let again = buy(&host).await;
    assert!(again.is_ok(), "{again:?}");
}
