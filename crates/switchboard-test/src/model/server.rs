//! The HTTP server of a scripted model, with recorded requests and gates.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::script::{Refusal, Turn};
use super::{Recorded, Wire, anthropic, openai, responses, rules, stream};
use crate::scripted::lock;

/// State shared by the server and the test.
#[derive(Debug)]
pub(super) struct Shared {
    turns: Mutex<Vec<Option<Turn>>>,
    requests: Mutex<Vec<Recorded>>,
    abandoned: Mutex<Vec<usize>>,
    /// Incremented whenever the state above changes.
    changes: watch::Sender<u64>,
    gates: Mutex<HashMap<String, Arc<Semaphore>>>,
    /// Answers at additional paths.
    answers: Mutex<HashMap<String, Value>>,
}

impl Shared {
    pub(super) fn new(turns: Vec<Turn>) -> Self {
        Self {
            turns: Mutex::new(turns.into_iter().map(Some).collect()),
            requests: Mutex::default(),
            abandoned: Mutex::default(),
            changes: watch::Sender::new(0),
            gates: Mutex::default(),
            answers: Mutex::default(),
        }
    }

    pub(super) fn answer(&self, path: &str, answer: Value) {
        lock(&self.answers).insert(path.to_owned(), answer);
    }

    pub(super) fn add(&self, turn: Turn) {
        lock(&self.turns).push(Some(turn));
    }

    pub(super) fn left(&self) -> Vec<Turn> {
        lock(&self.turns).iter().flatten().cloned().collect()
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        lock(&self.requests).clone()
    }

    pub(super) fn has_abandoned(&self, request: usize) -> bool {
        lock(&self.abandoned).contains(&request)
    }

    pub(super) fn abandoned(&self, request: usize) {
        lock(&self.abandoned).push(request);
        self.changed();
    }

    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub(super) fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = lock(&self.gates);
        let gate = gates.entry(name.to_owned());
        Arc::clone(gate.or_insert_with(|| Arc::new(Semaphore::new(0))))
    }

    pub(super) async fn pass(&self, name: &str) {
        let gate = self.gate(name);
        if let Ok(permit) = gate.acquire().await {
            permit.forget();
        }
    }

    fn changed(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    fn record(&self, request: Recorded) -> usize {
        let mut requests = lock(&self.requests);
        requests.push(request);
        let number = requests.len();
        drop(requests);
        self.changed();
        number
    }

    /// Takes the first unused turn that matches.
    fn take(&self, body: &Value) -> Option<Turn> {
        let last = last_message(body);
        let fits = |turn: &Turn| {
            let wanted = turn.when.as_deref().map(|text| json!(text).to_string());
            wanted.is_none_or(|text| last.contains(text.trim_matches('"')))
        };
        let mut turns = lock(&self.turns);
        let found = turns
            .iter_mut()
            .find(|turn| turn.as_ref().is_some_and(fits));
        found?.take()
    }
}

/// The last message, which is the user's, as JSON.
fn last_message(body: &Value) -> String {
    if let Some(messages) = body["messages"].as_array() {
        return messages.last().map(Value::to_string).unwrap_or_default();
    }
    // The Responses API has one item per result, and one for the text.
    let items = body["input"].as_array().into_iter().flatten().rev();
    let is_users = |item: &&Value| item["type"] == "function_call_output" || item["role"] == "user";
    let items = items.take_while(is_users).map(Value::to_string);
    items.collect::<Vec<_>>().join(" ")
}

/// Serves until dropped, which closes every connection.
pub(super) async fn serve(shared: Arc<Shared>, listener: TcpListener) {
    let router = Router::new().fallback(handle).with_state(shared);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    let _ = stream.set_nodelay(true);
                    connections.spawn(connection(router.clone(), stream));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(router: Router, stream: TcpStream) {
    let service = TowerToHyperService::new(router);
    let serving =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Tests cause connection errors on purpose.
    let _ = serving.await;
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    let answer = lock(&shared.answers).get(&path).cloned();
    if let Some(answer) = answer {
        return json_response(200, &answer);
    }
    let wire = match path.as_str() {
        "/v1/messages" => Wire::Anthropic,
        "/v1/chat/completions" => Wire::OpenAi,
        "/v1/responses" => Wire::Responses,
        "/v1/models" => {
            let offer = |id: &str| json!({"id": id, "object": "model", "max_model_len": 65_536});
            let list = json!({"object": "list", "data": [offer("scripted"), offer("test")]});
            return json_response(200, &list);
        }
        _ => return json_response(404, &json!({"error": {"message": "unknown path"}})),
    };
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return json_response(400, &json!({"error": {"message": "incomplete body"}}));
    };
    let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let headers = interesting(&parts.headers);
    let broken = rules::broken(wire, &headers, &body);
    let number = shared.record(Recorded {
        wire,
        headers,
        body: body.clone(),
    });
    if let Some(rule) = broken {
        return refuse(wire, &bad_request(rule));
    }
    let Some(turn) = shared.take(&body) else {
        return refuse(
            wire,
            &bad_request("the script has no turn for this request".to_owned()),
        );
    };
    if let Some(refusal) = &turn.refuse {
        return refuse(wire, refusal);
    }
    let model = body["model"].as_str().unwrap_or_default();
    let mut pieces = match wire {
        Wire::Anthropic => anthropic::stream(&turn, number, model),
        Wire::OpenAi => openai::stream(&turn, number, model),
        Wire::Responses => responses::stream(&turn, number, model),
    };
    if let Some(size) = turn.piece_bytes {
        pieces = stream::recut(pieces, size);
    }
    let mut response = Response::new(Body::from_stream(stream::body(pieces, shared, number)));
    let content_type = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

fn bad_request(message: String) -> Refusal {
    Refusal {
        status: 400,
        message,
        ..Refusal::default()
    }
}

fn refuse(wire: Wire, refusal: &Refusal) -> Response {
    if refusal.status == 0 {
        let cut =
            futures_util::stream::once(async { Err::<String, _>(std::io::Error::other("cut")) });
        return Response::new(Body::from_stream(cut));
    }
    let body = match wire {
        Wire::Anthropic => anthropic::refusal(refusal),
        Wire::OpenAi | Wire::Responses => openai::refusal(refusal),
    };
    let mut response = json_response(refusal.status, &body);
    if let Some(body) = &refusal.body {
        *response.body_mut() = Body::from(body.clone());
    }
    let retry_after = refusal.retry_after.as_deref();
    if let Some(value) = retry_after.and_then(|text| HeaderValue::from_str(text).ok()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
    response
}

fn json_response(status: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    let content_type = HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
}

/// The headers, without those that every client sends or that vary between runs.
fn interesting(headers: &HeaderMap) -> BTreeMap<String, String> {
    const DULL: [&str; 5] = [
        "host",
        "user-agent",
        "content-length",
        "connection",
        "accept-encoding",
    ];
    let relevant = headers
        .iter()
        .filter(|(name, _)| !DULL.contains(&name.as_str()));
    relevant
        .map(|(name, value)| {
            (
                name.to_string(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect()
}
