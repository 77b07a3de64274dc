//! What a bridge must know of its client to replace the daemon behind it: the handshake, the open requests and
//! questions, the log level and the subscriptions.

use std::collections::{BTreeMap, HashMap, HashSet};

use bytes::Bytes;
use serde_json::value::RawValue;
use switchboard_protocol::types::method::{
    Cancelled, Initialize, Notification as _, Request as _, SubscribeResource, UnsubscribeResource,
};
use switchboard_protocol::{
    ErrorCode, ErrorObject, Incoming, Limits, Message, Method, RequestId, encode, parse, trusted,
};

/// Begins the ids of the bridge's own requests.
const OWN_ID: &str = "switchboard-connect-";
/// The answer to a request that a daemon took and did not answer.
const LOST: &str = "the gateway was restarted; the call may or may not have taken effect";

/// The state of one client.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Requests of the client that have no answer yet.
    open: HashMap<RequestId<'static>, OpenRequest>,
    /// Questions that the client has not answered: its id of each, and the daemon's.
    asked: HashMap<RequestId<'static>, RequestId<'static>>,
    /// The handshake (stateful era).
    handshake: Option<Handshake>,
    /// The params of the last `logging/setLevel`.
    log_level: Option<String>,
    /// The params of `resources/subscribe`, by URI.
    subscribed: BTreeMap<String, String>,
    /// Daemons that ended before the current one.
    replaced: u64,
    /// Ids given out by the bridge.
    numbered: u64,
}

#[derive(Debug)]
struct OpenRequest {
    /// The line, if the request can be made again without harm.
    repeatable: Option<Bytes>,
    /// Whether it has no answer until it is cancelled.
    is_endless: bool,
}

#[derive(Debug)]
struct Handshake {
    id: RequestId<'static>,
    params: String,
    is_answered: bool,
    is_confirmed: bool,
}

/// What a client and a new daemon must hear after the old one has ended.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    /// Lines for the client: failed requests and questions that are no longer asked.
    pub(super) client: Vec<u8>,
    /// Lines for the daemon: requests that are made again.
    pub(super) daemon: Vec<u8>,
}

/// The handshake that the bridge makes for its client.
#[derive(Debug)]
pub(super) struct Greeting {
    /// The request.
    pub(super) initialize: Vec<u8>,
    /// What follows its answer.
    pub(super) afterwards: Vec<u8>,
    /// Notifications for the client: everything may have changed.
    pub(super) client: Vec<u8>,
}

impl Ledger {
    /// Whether every request has its answer.
    pub(super) fn is_settled(&self) -> bool {
        self.open.values().all(|request| request.is_endless)
    }

    /// Takes a line of the client, and returns what the daemon gets.
    pub(super) fn take_from_client(&mut self, line: Bytes) -> Option<Bytes> {
        let Ok(incoming) = parse(&line, &limits(line.len())) else {
            // The daemon answers it with an error.
            return Some(line);
        };
        if let Incoming::Single(received) = &incoming
            && self.replaced > 0
            && let Message::Response { id, .. } | Message::Error { id: Some(id), .. } =
                &received.message
        {
            return self.answer_for_daemon(&id.clone().into_owned(), &received.message);
        }
        for received in incoming.into_messages().flatten() {
            match received.message {
                Message::Request { id, method, params } => {
                    self.request(&id, &method, params, &line);
                }
                Message::Notification { method, params } => self.notification(&method, params),
                Message::Response { id, .. } | Message::Error { id: Some(id), .. } => {
                    self.asked.remove(&id.into_owned());
                }
                Message::Error { id: None, .. } => {}
            }
        }
        Some(line)
    }

    /// Takes a line of the daemon, and returns what the client gets.
    pub(super) fn take_from_daemon(&mut self, line: Bytes) -> Option<Bytes> {
        let Ok(incoming) = parse(&line, &limits(line.len())) else {
            return Some(line);
        };
        match incoming {
            Incoming::Single(received) => self.message_for_client(&received.message, &line),
            Incoming::Batch(messages) => {
                for received in messages.into_iter().flatten() {
                    if let Message::Response { id, .. } | Message::Error { id: Some(id), .. } =
                        received.message
                    {
                        self.answered(&id.into_owned());
                    }
                }
                Some(line)
            }
        }
    }

    /// Called when the daemon has ended. `unsent` are the lines that it did not get in full.
    pub(super) fn daemon_ended(&mut self, unsent: &[u8]) -> Recovery {
        self.replaced += 1;
        let mut recovery = Recovery::default();
        let unsent: HashSet<RequestId<'static>> = unsent
            .split(|byte| *byte == b'\n')
            .flat_map(requests_in)
            .collect();
        let error = ErrorObject::new(ErrorCode::INTERNAL_ERROR, LOST);
        self.open.retain(|id, request| {
            if unsent.contains(id) {
                return true;
            }
            if let Some(line) = &request.repeatable {
                recovery.daemon.extend_from_slice(line);
                recovery.daemon.push(b'\n');
                return true;
            }
            push(&mut recovery.client, |line| {
                encode::error(line, Some(id), &error)
            });
            false
        });
        for (id, _) in std::mem::take(&mut self.asked) {
            let params = cancelled(&id, "the gateway was restarted");
            push(&mut recovery.client, |line| {
                encode::notification(line, Method::Cancelled.name(), trusted(&params))
            });
        }
        recovery
    }

    /// The handshake for a new daemon; `None` if the client has made none, or makes it again itself.
    pub(super) fn greeting(&mut self) -> Option<Greeting> {
        let handshake = self.handshake.as_ref().filter(|made| made.is_answered)?;
        let (params, is_confirmed) = (handshake.params.clone(), handshake.is_confirmed);
        let mut greeting = Greeting {
            initialize: Vec::new(),
            afterwards: Vec::new(),
            client: Vec::new(),
        };
        let id = self.own_id();
        push(&mut greeting.initialize, |line| {
            encode::request(line, &id, Method::Initialize.name(), trusted(&params))
        });
        if !is_confirmed {
            return Some(greeting);
        }
        let after = &mut greeting.afterwards;
        push(after, |line| {
            encode::notification(line, Method::Initialized.name(), encode::NO_PARAMS)
        });
        if let Some(level) = self.log_level.clone() {
            let id = self.own_id();
            push(after, |line| {
                encode::request(line, &id, Method::SetLogLevel.name(), trusted(&level))
            });
        }
        for params in self.subscribed.clone().into_values() {
            let id = self.own_id();
            push(after, |line| {
                encode::request(
                    line,
                    &id,
                    Method::ResourcesSubscribe.name(),
                    trusted(&params),
                )
            });
        }
        for method in [
            Method::ToolsListChanged,
            Method::PromptsListChanged,
            Method::ResourcesListChanged,
        ] {
            push(&mut greeting.client, |line| {
                encode::notification(line, method.name(), encode::NO_PARAMS)
            });
        }
        Some(greeting)
    }

    fn own_id(&mut self) -> RequestId<'static> {
        self.numbered += 1;
        RequestId::from(format!("{OWN_ID}{}", self.numbered).as_str())
    }

    fn request(
        &mut self,
        id: &RequestId<'_>,
        method: &str,
        params: Option<&RawValue>,
        line: &Bytes,
    ) {
        let id = id.clone().into_owned();
        let method = Method::from_name(method);
        match method {
            Some(Method::Initialize) if Initialize::decode_params(params).is_ok() => {
                self.handshake = params.map(|params| Handshake {
                    id: id.clone(),
                    params: params.get().to_owned(),
                    is_answered: false,
                    is_confirmed: false,
                });
            }
            Some(Method::SetLogLevel) => {
                self.log_level = params.map(|params| params.get().to_owned());
            }
            Some(Method::ResourcesSubscribe) => {
                if let (Ok(subscribe), Some(params)) =
                    (SubscribeResource::decode_params(params), params)
                {
                    let uri = subscribe.uri.into_owned();
                    self.subscribed.insert(uri, params.get().to_owned());
                }
            }
            Some(Method::ResourcesUnsubscribe) => {
                if let Ok(unsubscribe) = UnsubscribeResource::decode_params(params) {
                    self.subscribed.remove(&*unsubscribe.uri);
                }
            }
            _ => {}
        }
        let request = OpenRequest {
            repeatable: method
                .is_some_and(is_repeatable)
                .then(|| Bytes::clone(line)),
            is_endless: method == Some(Method::SubscriptionsListen),
        };
        self.open.insert(id, request);
    }

    fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        match Method::from_name(method) {
            Some(Method::Initialized) => {
                if let Some(handshake) = &mut self.handshake {
                    handshake.is_confirmed = true;
                }
            }
            // A cancelled request is not answered.
            Some(Method::Cancelled) => {
                if let Ok(Some(id)) = Cancelled::decode_params(params).map(|it| it.request_id) {
                    self.open.remove(&id.into_owned());
                }
            }
            _ => {}
        }
    }

    /// The line for a daemon when the client answers a question; `None` if an earlier daemon asked it.
    fn answer_for_daemon(
        &mut self,
        id: &RequestId<'static>,
        message: &Message<'_>,
    ) -> Option<Bytes> {
        let original = self.asked.remove(id)?;
        let mut line = Vec::new();
        match message {
            Message::Response { result, .. } => {
                encode::response(&mut line, &original, *result).ok()?;
            }
            Message::Error { error, .. } => {
                encode::error(&mut line, Some(&original), error).ok()?;
            }
            Message::Request { .. } | Message::Notification { .. } => return None,
        }
        Some(line.into())
    }

    fn message_for_client(&mut self, message: &Message<'_>, line: &Bytes) -> Option<Bytes> {
        match message {
            Message::Response { id, .. } | Message::Error { id: Some(id), .. } => {
                let is_own = id.as_str().is_some_and(|id| id.starts_with(OWN_ID));
                if is_own {
                    return None;
                }
                self.answered(&id.clone().into_owned());
            }
            Message::Request { id, method, params } => {
                let id = id.clone().into_owned();
                // Ids of an earlier daemon may come again while the client still knows them.
                let exposed = if self.replaced == 0 {
                    id.clone()
                } else {
                    self.own_id()
                };
                self.asked.insert(exposed.clone(), id);
                if self.replaced > 0 {
                    let mut line = Vec::new();
                    encode::request(&mut line, &exposed, method, *params).ok()?;
                    return Some(line.into());
                }
            }
            Message::Notification { method, params } if *method == Method::Cancelled.name() => {
                return self.question_cancelled(*params, line);
            }
            Message::Notification { .. } | Message::Error { id: None, .. } => {}
        }
        Some(Bytes::clone(line))
    }

    /// The daemon no longer asks a question.
    fn question_cancelled(&mut self, params: Option<&RawValue>, line: &Bytes) -> Option<Bytes> {
        let id = Cancelled::decode_params(params)
            .ok()
            .and_then(|params| params.request_id);
        let Some(id) = id.map(RequestId::into_owned) else {
            return Some(Bytes::clone(line));
        };
        let mut asked = self.asked.iter();
        let Some(exposed) = asked.find_map(|(exposed, own)| (*own == id).then(|| exposed.clone()))
        else {
            return Some(Bytes::clone(line));
        };
        self.asked.remove(&exposed);
        if exposed == id {
            return Some(Bytes::clone(line));
        }
        let params = cancelled(&exposed, "cancelled by the server");
        let mut line = Vec::new();
        encode::notification(&mut line, Method::Cancelled.name(), trusted(&params)).ok()?;
        Some(line.into())
    }

    fn answered(&mut self, id: &RequestId<'static>) {
        self.open.remove(id);
        if let Some(handshake) = self.handshake.as_mut().filter(|made| made.id == *id) {
            handshake.is_answered = true;
        }
    }
}

/// Whether a request changes nothing, so that a new daemon may get it again.
fn is_repeatable(method: Method) -> bool {
    matches!(
        method,
        Method::Initialize
            | Method::Discover
            | Method::Ping
            | Method::ToolsList
            | Method::PromptsList
            | Method::PromptsGet
            | Method::ResourcesList
            | Method::ResourceTemplatesList
            | Method::ResourcesRead
            | Method::ResourcesSubscribe
            | Method::ResourcesUnsubscribe
            | Method::SubscriptionsListen
            | Method::SetLogLevel
            | Method::Complete
            | Method::TasksGet
            | Method::TasksList
    )
}

/// The ids of the requests in a line.
fn requests_in(line: &[u8]) -> Vec<RequestId<'static>> {
    let Ok(incoming) = parse(line, &limits(line.len())) else {
        return Vec::new();
    };
    let messages = incoming.into_messages().flatten();
    messages
        .filter_map(|received| match received.message {
            Message::Request { id, .. } => Some(id.into_owned()),
            _ => None,
        })
        .collect()
}

fn cancelled(id: &RequestId<'_>, reason: &str) -> String {
    format!(r#"{{"requestId":{},"reason":"{reason}"}}"#, id.json())
}

/// Adds one line. A message that cannot be encoded is left out: all of these can be.
fn push<E>(lines: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) {
    let mut line = Vec::new();
    if encode(&mut line).is_ok() {
        lines.append(&mut line);
        lines.push(b'\n');
    }
}

/// The line has been read, so its length is not a reason to reject it.
fn limits(length: usize) -> Limits {
    Limits {
        max_bytes: length.max(Limits::DEFAULT.max_bytes),
        ..Limits::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn text(bytes: &[u8]) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn requests_are_repeated_or_failed_or_still_sent() {
        let mut ledger = Ledger::default();
        let list = line(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let call = line(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t"}}"#);
        let late =
            line(r#"{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"t"}}"#);
        for each in [&list, &call, &late] {
            assert_eq!(ledger.take_from_client(each.clone()).as_ref(), Some(each));
        }
        assert!(!ledger.is_settled());
        let recovery = ledger.daemon_ended(&late);
        assert_eq!(text(&recovery.daemon).trim_end(), text(&list));
        let failed = text(&recovery.client);
        assert!(failed.contains(r#""id":2"#), "{failed}");
        assert!(failed.contains("may or may not have taken effect"));
        assert_eq!(failed.lines().count(), 1);
        ledger.take_from_daemon(line(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#));
        ledger.take_from_daemon(line(r#"{"jsonrpc":"2.0","id":"3","result":{}}"#));
        assert!(ledger.is_settled());
    }

    #[test]
    fn a_cancelled_request_and_a_subscription_are_not_waited_for() {
        let mut ledger = Ledger::default();
        ledger.take_from_client(line(
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#,
        ));
        ledger.take_from_client(line(
            r#"{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{}}"#,
        ));
        assert!(!ledger.is_settled());
        ledger.take_from_client(line(
            r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
        ));
        assert!(ledger.is_settled());
    }

    #[test]
    fn a_new_daemon_gets_the_handshake_the_level_and_the_subscriptions() {
        let mut ledger = Ledger::default();
        ledger.take_from_client(line(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
        ));
        assert!(ledger.greeting().is_none(), "it is repeated instead");
        ledger.take_from_daemon(line(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
        for each in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}"#,
            r#"{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:2"}}"#,
            r#"{"jsonrpc":"2.0","id":4,"method":"resources/unsubscribe","params":{"uri":"a:1"}}"#,
        ] {
            ledger.take_from_client(line(each));
        }
        let greeting = ledger.greeting().unwrap();
        assert!(text(&greeting.initialize).contains(r#""method":"initialize""#));
        let after = text(&greeting.afterwards);
        assert!(after.contains("notifications/initialized"));
        assert!(after.contains(r#"{"level":"debug"}"#));
        assert!(after.contains("a:2") && !after.contains("a:1"), "{after}");
        assert_eq!(text(&greeting.client).lines().count(), 3);
        // The answers to them are the bridge's own.
        let own = line(r#"{"jsonrpc":"2.0","id":"switchboard-connect-2","result":{}}"#);
        assert_eq!(ledger.take_from_daemon(own), None);
    }

    #[test]
    fn questions_of_an_earlier_daemon_are_cancelled_and_their_answers_dropped() {
        let mut ledger = Ledger::default();
        let question = line(r#"{"jsonrpc":"2.0","id":7,"method":"roots/list"}"#);
        let answer = line(r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#);
        assert_eq!(
            ledger.take_from_daemon(question.clone()),
            Some(question.clone())
        );
        let recovery = ledger.daemon_ended(b"");
        assert!(text(&recovery.client).contains(r#""requestId":7"#));
        assert_eq!(ledger.take_from_client(answer), None);
        // The new daemon uses the same id.
        let asked = ledger.take_from_daemon(question).unwrap();
        assert!(text(&asked).contains(r#""id":"switchboard-connect-1""#));
        let answer =
            line(r#"{"jsonrpc":"2.0","id":"switchboard-connect-1","result":{"roots":[]}}"#);
        let answer = ledger.take_from_client(answer).unwrap();
        assert!(text(&answer).contains(r#""id":7"#), "{}", text(&answer));
    }
}
