//! The behaviour of a scripted server, independent of transports: a message in, a plan of steps out.
//!
//! Owns the script, the fault rules, sessions, subscriptions and tasks. It never waits: [`perform`](super::perform)
//! executes plans, and the transports write bytes.

mod answers;
mod inbound;
mod plan;
mod tasks;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard_protocol::headers::ReceivedHeaders;
use switchboard_protocol::serve::{self, Opening, Serving};
use switchboard_protocol::{Era, ErrorCode, Revision, meta};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use super::control::{Command, Gates};
use super::fault::{Armed, Fault, Occasion};
use super::lock;
use super::record::{Record, Recorder};
use super::script::Script;

pub(crate) use inbound::{Inbound, Request, read};
pub(crate) use plan::{
    Outcome, Plan, PlannedAnswer, Step, encode_answer, encode_notification, encode_request,
};
use tasks::Tasks;

/// Output for a client.
#[derive(Debug)]
pub(crate) enum Out {
    /// A message, or a fault in its place.
    Frame(Vec<u8>),
    /// The only message of a request's stream, with its HTTP status.
    Last(Vec<u8>, u16),
    /// A piece of a message.
    Piece(Vec<u8>),
    /// The end of a message sent in pieces.
    PieceEnd,
    /// An HTTP error response.
    Refuse(Refusal),
    /// The content type of the response (HTTP).
    ContentType(String),
    /// Ends the event stream, which can be resumed (HTTP).
    CloseStream,
    Abort,
    /// Stops the server; a process exits with this code.
    Exit(i32),
}

/// An HTTP error response.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) recorder: Recorder,
    pub(crate) gates: Gates,
    /// The exit code, once the server is to stop.
    pub(crate) ended: watch::Sender<Option<i32>>,
    /// Counts the commands to drop every connection.
    pub(crate) disconnects: watch::Sender<u64>,
    script: Mutex<Arc<Script>>,
    rules: Mutex<Vec<Armed>>,
    counter: AtomicU64,
    sessions: Mutex<HashMap<String, Arc<ClientSession>>>,
    listeners: Mutex<Vec<Listener>>,
    tasks: Tasks,
}

/// A client: a process's pipe, a socket, or an HTTP session.
#[derive(Debug)]
pub(crate) struct ClientSession {
    pub(crate) id: String,
    /// For messages that belong to no request.
    pub(crate) outbox: mpsc::Sender<Out>,
    /// Held while a message is written in pieces.
    pub(crate) turn: tokio::sync::Mutex<()>,
    settled: Mutex<Option<Revision>>,
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    running: Mutex<HashMap<String, AbortHandle>>,
    subscribed: Mutex<BTreeSet<String>>,
}

/// An open `subscriptions/listen`.
#[derive(Debug)]
struct Listener {
    id: Value,
    filter: Value,
    sender: mpsc::Sender<Heard>,
}

/// A message to a subscription.
#[derive(Debug)]
pub(crate) enum Heard {
    Frame(Vec<u8>),
    End,
}

impl Server {
    pub(crate) fn new(script: Script) -> Arc<Self> {
        let rules = script.rules.iter().cloned().map(Armed::new).collect();
        Arc::new(Self {
            recorder: Recorder::new(),
            gates: Gates::default(),
            ended: watch::Sender::new(None),
            disconnects: watch::Sender::new(0),
            script: Mutex::new(Arc::new(script)),
            rules: Mutex::new(rules),
            counter: AtomicU64::new(0),
            sessions: Mutex::new(HashMap::new()),
            listeners: Mutex::new(Vec::new()),
            tasks: Tasks::default(),
        })
    }

    pub(crate) fn script(&self) -> Arc<Script> {
        Arc::clone(&lock(&self.script))
    }

    /// The next id.
    pub(crate) fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The faults for an occasion, which is counted, so call it once.
    pub(crate) fn faults(&self, occasion: Occasion<'_>) -> Vec<Fault> {
        let mut rules = lock(&self.rules);
        let struck = rules.iter_mut().flat_map(|rule| rule.strike(&occasion));
        struck.cloned().collect()
    }

    /// Executes a command of the test.
    pub(crate) fn obey(&self, command: Command) {
        match command {
            Command::Script(script) => *lock(&self.script) = Arc::new(*script),
            Command::Release { gate } => self.gates.release(&gate),
            Command::Arm(rule) => lock(&self.rules).push(Armed::new(rule)),
            Command::Disarm => lock(&self.rules).clear(),
            Command::Notify { method, params } => self.notify(&method, &params),
            Command::Say { text } => {
                for session in lock(&self.sessions).values() {
                    session.post(Out::Frame(text.clone().into_bytes()));
                }
                for listener in lock(&self.listeners).iter() {
                    let _ = listener
                        .sender
                        .try_send(Heard::Frame(text.clone().into_bytes()));
                }
            }
            Command::EndSubscriptions => {
                for listener in lock(&self.listeners).drain(..) {
                    let _ = listener.sender.try_send(Heard::End);
                }
            }
            Command::ForgetSessions => lock(&self.sessions).clear(),
            Command::Disconnect => self.disconnects.send_modify(|count| *count += 1),
            Command::Exit { code } => {
                self.ended.send_replace(Some(code));
            }
        }
    }

    /// Sends a notification to the sessions of the stateful era and the subscriptions of the other that listen for it.
    fn notify(&self, method: &str, params: &Value) {
        let frame = encode_notification(method, params);
        for session in lock(&self.sessions).values() {
            if session.hears(method, params) {
                session.post(Out::Frame(frame.clone()));
            }
        }
        lock(&self.listeners).retain(|listener| {
            if !listener.hears(method, params) {
                return !listener.sender.is_closed();
            }
            let mut params = params.clone();
            params["_meta"][meta::SUBSCRIPTION_ID] = listener.id.clone();
            let frame = encode_notification(method, &params);
            // If the channel is full, the client does not read, and misses some, as with a real server.
            !matches!(
                listener.sender.try_send(Heard::Frame(frame)),
                Err(mpsc::error::TrySendError::Closed(_))
            )
        });
    }

    pub(crate) fn open_session(&self, outbox: mpsc::Sender<Out>) -> Arc<ClientSession> {
        let session = Arc::new(ClientSession::new(
            format!("session-{}", self.next()),
            outbox,
        ));
        lock(&self.sessions).insert(session.id.clone(), Arc::clone(&session));
        session
    }

    pub(crate) fn session(&self, id: &str) -> Option<Arc<ClientSession>> {
        lock(&self.sessions).get(id).cloned()
    }

    pub(crate) fn close_session(&self, id: &str) -> bool {
        lock(&self.sessions).remove(id).is_some()
    }

    /// Handles a message that is not a request.
    pub(crate) fn take(&self, session: &ClientSession, inbound: &Inbound) {
        match inbound {
            Inbound::Notification { method, params } if method == "notifications/cancelled" => {
                let id = params["requestId"].to_string();
                if let Some(running) = lock(&session.running).remove(&id) {
                    running.abort();
                    self.recorder.record(Record::Abandoned { request: id });
                }
            }
            Inbound::Answer { id, answer } => {
                if let Some(asked) = lock(&session.asked).remove(id) {
                    // The asking request may have been cancelled.
                    let _ = asked.send(answer.clone());
                }
            }
            Inbound::Notification { .. } | Inbound::Request(_) => {}
        }
    }

    /// Plans the answer to a request.
    pub(crate) fn plan(
        &self,
        session: &ClientSession,
        request: &Request,
        headers: Option<&ReceivedHeaders<'_>>,
    ) -> Plan {
        let script = self.script();
        let faults = self.faults(Occasion::Request {
            method: &request.method,
            name: request.name(),
        });
        let mut plan = match opening(&script, session, request, headers) {
            Ok(revision) => self.answer(&script, session, request, revision),
            Err((error, status)) => {
                let mut plan = Plan::new(request, PlannedAnswer::Now(Err(error)));
                plan.http_status = status;
                plan
            }
        };
        plan.faults = faults;
        plan
    }

    pub(crate) fn listen(&self, id: Value, filter: Value) -> mpsc::Receiver<Heard> {
        let (sender, receiver) = mpsc::channel(1024);
        lock(&self.listeners).push(Listener { id, filter, sender });
        receiver
    }
}

/// The revision of a request, by the rules of the served eras.
fn opening(
    script: &Script,
    session: &ClientSession,
    request: &Request,
    headers: Option<&ReceivedHeaders<'_>>,
) -> Result<Revision, (Value, u16)> {
    let supported = script.supported();
    let settled = *lock(&session.settled);
    if !supported
        .iter()
        .any(|revision| revision.era() == Era::Stateless)
    {
        return stateful_opening(&supported, settled, request, session);
    }
    let serving = Serving {
        supported: &supported,
        settled,
    };
    let params = request.params.as_deref();
    let opening = match headers {
        Some(headers) => serve::classify_http(serving, headers, &request.method, params),
        None => serve::classify(serving, &request.method, params),
    };
    match opening {
        Ok(Opening::Stateless { revision, .. }) => Ok(revision),
        Ok(Opening::Handshake { revision }) => {
            *lock(&session.settled) = Some(revision);
            Ok(revision)
        }
        Ok(Opening::Stateful { revision }) => Ok(revision.unwrap_or(Revision::LATEST_STATEFUL)),
        Err(refusal) => {
            let error = serde_json::to_value(&refusal.error).unwrap_or_default();
            Err((error, refusal.http_status))
        }
    }
}

/// A stateful server does not know the other era: to it, such requests are just unknown.
fn stateful_opening(
    supported: &[Revision],
    settled: Option<Revision>,
    request: &Request,
    session: &ClientSession,
) -> Result<Revision, (Value, u16)> {
    match (request.method.as_str(), settled) {
        ("initialize", _) => {
            let asked = request.value["protocolVersion"].as_str();
            let revision = serve::answer_version(asked, supported).map_err(|refusal| {
                let error = serde_json::to_value(&refusal.error).unwrap_or_default();
                (error, refusal.http_status)
            })?;
            *lock(&session.settled) = Some(revision);
            Ok(revision)
        }
        (_, Some(revision)) => Ok(revision),
        ("ping", None) => Ok(Revision::LATEST_STATEFUL),
        ("server/discover", None) => Err((
            json!({"code": ErrorCode::METHOD_NOT_FOUND.0, "message": "Method not found"}),
            400,
        )),
        (_, None) => Err((
            json!({"code": ErrorCode::INVALID_REQUEST.0, "message": "Not initialized"}),
            400,
        )),
    }
}

impl ClientSession {
    pub(crate) fn new(id: String, outbox: mpsc::Sender<Out>) -> Self {
        Self {
            id,
            outbox,
            turn: tokio::sync::Mutex::new(()),
            settled: Mutex::new(None),
            asked: Mutex::new(HashMap::new()),
            running: Mutex::new(HashMap::new()),
            subscribed: Mutex::new(BTreeSet::new()),
        }
    }

    /// Stores the task that answers a request, so that it can be cancelled.
    pub(crate) fn started(&self, request: &str, task: AbortHandle) {
        let mut running = lock(&self.running);
        running.retain(|_, task| !task.is_finished());
        running.insert(request.to_owned(), task);
    }

    /// Cancels all running requests.
    pub(crate) fn end(&self) {
        for (_, task) in lock(&self.running).drain() {
            task.abort();
        }
    }

    /// Waits for the answer to a request of ours.
    pub(crate) fn ask(&self, id: &str) -> oneshot::Receiver<Value> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.asked).insert(id.to_owned(), sender);
        receiver
    }

    pub(crate) fn settled(&self) -> Option<Revision> {
        *lock(&self.settled)
    }

    /// Sets the revision without a handshake.
    pub(crate) fn settle(&self, revision: Revision) {
        *lock(&self.settled) = Some(revision);
    }

    /// Sends a message outside of requests, unless the client has stopped reading.
    fn post(&self, out: Out) {
        let _ = self.outbox.try_send(out);
    }

    fn hears(&self, method: &str, params: &Value) -> bool {
        let is_stateful = self
            .settled()
            .is_some_and(|revision| revision.era() == Era::Stateful);
        let uri = params["uri"].as_str().unwrap_or_default();
        is_stateful
            && (method != "notifications/resources/updated" || lock(&self.subscribed).contains(uri))
    }
}

impl Listener {
    fn hears(&self, method: &str, params: &Value) -> bool {
        let wants = |key: &str| self.filter[key] == json!(true);
        let lists = |key: &str, value: &Value| {
            let listed = self.filter[key].as_array();
            listed.is_some_and(|listed| listed.contains(value))
        };
        match method {
            "notifications/tools/list_changed" => wants("toolsListChanged"),
            "notifications/prompts/list_changed" => wants("promptsListChanged"),
            "notifications/resources/list_changed" => wants("resourcesListChanged"),
            "notifications/resources/updated" => lists("resourceSubscriptions", &params["uri"]),
            "notifications/tasks" => lists("taskIds", &params["taskId"]),
            _ => false,
        }
    }
}
