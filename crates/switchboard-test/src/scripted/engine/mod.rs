//! The behaviour of a scripted server, independent of transports: a message in, a plan of steps out.
//!
//! Owns the script, the armed rules, the sessions, subscriptions and tasks. It decides and never waits; carrying out
//! is [`perform`](super::perform)'s, and bytes are the transports'.

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
    Answer, Outcome, Plan, Step, encode_answer, encode_notification, encode_request,
};
use tasks::Tasks;

/// Something to write to a client.
#[derive(Debug)]
pub(crate) enum Out {
    /// A message, or what stands in the place of one.
    Frame(Vec<u8>),
    /// The one and last message of a request's stream, with the status it has over HTTP.
    Last(Vec<u8>, u16),
    /// A piece of a message.
    Piece(Vec<u8>),
    /// The end of a message that came in pieces.
    PieceEnd,
    /// A refusal by HTTP.
    Refuse(Refusal),
    /// The content type of what follows (HTTP).
    ContentType(String),
    /// Ends the event stream, to be resumed (HTTP).
    CloseStream,
    /// Drops the connection.
    Abort,
    /// Ends the server.
    Exit(i32),
}

/// A refusal by HTTP.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// A whole server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) recorder: Recorder,
    pub(crate) gates: Gates,
    /// Set once the server is to end, with its exit code.
    pub(crate) ended: watch::Sender<Option<i32>>,
    /// Counts the commands to drop every connection.
    pub(crate) disconnects: watch::Sender<u64>,
    script: Mutex<Arc<Script>>,
    rules: Mutex<Vec<Armed>>,
    counter: AtomicU64,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    listeners: Mutex<Vec<Listener>>,
    tasks: Tasks,
}

/// A client as the server knows it: a process's pipe, a socket, or an HTTP session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) id: String,
    /// Where messages go that belong to no request.
    pub(crate) outbox: mpsc::Sender<Out>,
    /// Held by whoever writes a message in pieces.
    pub(crate) turn: tokio::sync::Mutex<()>,
    settled: Mutex<Option<Revision>>,
    asked: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    running: Mutex<HashMap<String, AbortHandle>>,
    subscribed: Mutex<BTreeSet<String>>,
}

/// A `subscriptions/listen` that is open.
#[derive(Debug)]
struct Listener {
    id: Value,
    filter: Value,
    sender: mpsc::Sender<Heard>,
}

/// What a `subscriptions/listen` passes on.
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

    /// The next number of whatever is counted.
    pub(crate) fn next(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The faults of an occasion. It is counted, so ask once.
    pub(crate) fn faults(&self, occasion: Occasion<'_>) -> Vec<Fault> {
        let mut rules = lock(&self.rules);
        let struck = rules.iter_mut().flat_map(|rule| rule.strike(&occasion));
        struck.cloned().collect()
    }

    /// Does what the test says.
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

    /// Sends a notification to whoever listens for it: sessions of the stateful era, subscriptions of the other.
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
            // A subscription that is full has a client that does not read: it misses some, as with a real server.
            !matches!(
                listener.sender.try_send(Heard::Frame(frame)),
                Err(mpsc::error::TrySendError::Closed(_))
            )
        });
    }

    pub(crate) fn open_session(&self, outbox: mpsc::Sender<Out>) -> Arc<Session> {
        let session = Arc::new(Session::new(format!("session-{}", self.next()), outbox));
        lock(&self.sessions).insert(session.id.clone(), Arc::clone(&session));
        session
    }

    pub(crate) fn session(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).get(id).cloned()
    }

    pub(crate) fn close_session(&self, id: &str) -> bool {
        lock(&self.sessions).remove(id).is_some()
    }

    /// Takes what is no request.
    pub(crate) fn take(&self, session: &Session, inbound: &Inbound) {
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
                    // Whoever asked may have been cancelled meanwhile.
                    let _ = asked.send(answer.clone());
                }
            }
            Inbound::Notification { .. } | Inbound::Request(_) => {}
        }
    }

    /// Plans the answer to a request.
    pub(crate) fn plan(
        &self,
        session: &Session,
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
                let mut plan = Plan::new(request, Answer::Now(Err(error)));
                plan.http_status = status;
                plan
            }
        };
        plan.faults = faults;
        plan
    }

    /// Opens a subscription.
    pub(crate) fn listen(&self, id: Value, filter: Value) -> mpsc::Receiver<Heard> {
        let (sender, receiver) = mpsc::channel(1024);
        lock(&self.listeners).push(Listener { id, filter, sender });
        receiver
    }
}

/// The revision a request is answered in, by the rules of the era or eras that are served.
fn opening(
    script: &Script,
    session: &Session,
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

/// A server of the stateful era alone knows nothing of the other: what it cannot place is simply unknown to it.
fn stateful_opening(
    supported: &[Revision],
    settled: Option<Revision>,
    request: &Request,
    session: &Session,
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

impl Session {
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

    /// Remembers the task that answers a request, so that it can be cancelled.
    pub(crate) fn started(&self, request: &str, task: AbortHandle) {
        let mut running = lock(&self.running);
        running.retain(|_, task| !task.is_finished());
        running.insert(request.to_owned(), task);
    }

    /// Ends everything that is under way.
    pub(crate) fn end(&self) {
        for (_, task) in lock(&self.running).drain() {
            task.abort();
        }
    }

    /// The answer that will come to a request of ours.
    pub(crate) fn ask(&self, id: &str) -> oneshot::Receiver<Value> {
        let (sender, receiver) = oneshot::channel();
        lock(&self.asked).insert(id.to_owned(), sender);
        receiver
    }

    pub(crate) fn settled(&self) -> Option<Revision> {
        *lock(&self.settled)
    }

    /// Settles the revision without a handshake.
    pub(crate) fn settle(&self, revision: Revision) {
        *lock(&self.settled) = Some(revision);
    }

    /// Sends a message of the server's own, unless the client has stopped reading.
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
