//! The way back to JavaScript: one threadsafe function for each environment, which never keeps the event loop alive.
//! JavaScript keeps it alive itself while operations are pending.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use napi::bindgen_prelude::{Either13, FnArgs, Function, Null};
use napi::threadsafe_function::{
    ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue,
};
use napi::{Env, Status};
use napi_derive::napi;
use serde_json::value::RawValue;
use switchboard::internal::call::result::text_of;
use switchboard::{CallOutcome, Progress};
use switchboard_bindings::{Callback, Failure, Operation, Reply, Request, failure};

use crate::agent::{AgentHandle, SessionHandle};
use crate::host::HostHandle;
use crate::values::{Asked, Failed, Progressed, ResultHandle, ToolList, elapsed};

/// The largest result that is copied to JavaScript with the message that it has come, in bytes. A larger one stays in Rust
/// until it is looked at. An object of the native module costs several times as much as the copy of a short text.
const MAX_COPIED: usize = 16 * 1024;

/// The most values that a message has.
const MESSAGE: usize = 7;

/// What a message carries to JavaScript.
pub(crate) type Value = Either13<
    Null,
    String,
    f64,
    bool,
    HostHandle,
    AgentHandle,
    SessionHandle,
    ResultHandle,
    ToolList,
    Failed,
    Progressed,
    Asked,
    u32,
>;

/// All waiting messages, one after the other: kind, id and values of each.
type Arguments = FnArgs<(Vec<Value>,)>;

/// Does not keep the event loop alive. Called when the queue of messages is no longer empty.
type Report = ThreadsafeFunction<(), UnknownReturnValue, Arguments, Status, false, true, 0>;

enum Message {
    Ended(u32, Value),
    Result(u32, CallOutcome),
    Failed(u32, Failure),
    Progress(u32, Progress),
    Open(u32, String),
    Asked(u32, Asked),
    Cancelled(u32),
}

impl Message {
    /// Appends the message to the arguments of the function. The numbers are those of `lib/bridge.js`.
    fn append(self, arguments: &mut Vec<Value>, env: Env) {
        let (kind, id, value) = match self {
            Self::Ended(id, value) => (0, id, value),
            Self::Failed(id, failure) => (1, id, Value::J(Failed::from(&failure))),
            Self::Progress(id, progress) => (2, id, Value::K(progress.into())),
            Self::Open(id, url) => (3, id, Value::B(url)),
            Self::Asked(id, asked) => (4, id, Value::L(asked)),
            Self::Cancelled(id) => (5, id, Value::A(Null)),
            Self::Result(id, outcome) => {
                if let Some(values) = copied(id, &outcome) {
                    arguments.extend(values);
                    return;
                }
                let result = ResultHandle::from(outcome);
                // Only a hint: without it, the result is collected later.
                let _ = result.account(env);
                (0, id, Value::H(result))
            }
        };
        arguments.extend([Value::M(kind), Value::M(id), value]);
    }
}

/// The message about a small result, as the arguments of the function.
fn copied(id: u32, outcome: &CallOutcome) -> Option<[Value; MESSAGE]> {
    if outcome.result.size() > MAX_COPIED {
        return None;
    }
    let server = outcome.tool.server.as_ref();
    let server = server.map(|server| Value::B(server.as_str().to_owned()));
    Some([
        Value::M(6),
        Value::M(id),
        Value::B(outcome.raw().to_owned()),
        Value::D(outcome.is_error),
        Value::C(elapsed(outcome)),
        server.unwrap_or(Value::A(Null)),
        Value::B(outcome.tool.tool.as_str().to_owned()),
    ])
}

/// The end of the bridge in Rust. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Port(Arc<PortInner>);

struct PortInner {
    report: Report,
    /// Messages that JavaScript has not received. No limit: they belong to calls of the program.
    messages: Arc<Mutex<Vec<Message>>>,
    operations: Mutex<HashMap<u32, Box<dyn Fn() + Send>>>,
    questions: Mutex<HashMap<u32, Reply>>,
    next_question: AtomicU32,
}

impl Port {
    /// Reports the end of an operation under the id that JavaScript chose.
    pub(crate) fn report<T: Send + 'static>(
        &self,
        id: u32,
        operation: Operation<T>,
        convert: impl FnOnce(T) -> Value + Send + 'static,
    ) {
        self.report_as(id, operation, move |value| {
            Message::Ended(id, convert(value))
        });
    }

    /// Reports the result of a call, after all of its progress.
    pub(crate) fn report_result(&self, id: u32, call: Operation<CallOutcome>) {
        self.report_as(id, call, move |outcome| Message::Result(id, outcome));
    }

    /// Reports the result of a call that has ended: returns it if it is small, and sends a message otherwise.
    pub(crate) fn report_ended(
        &self,
        id: u32,
        call: &Operation<CallOutcome>,
    ) -> Option<Vec<Value>> {
        match call.take()? {
            Ok(outcome) => match copied(id, &outcome) {
                Some(values) => return Some(values.into()),
                None => self.send(Message::Result(id, outcome)),
            },
            Err(failure) => self.send(Message::Failed(id, failure)),
        }
        None
    }

    fn report_as<T: Send + 'static>(
        &self,
        id: u32,
        operation: Operation<T>,
        message: impl FnOnce(T) -> Message + Send + 'static,
    ) {
        let cancelled = operation.clone();
        let cancel = Box::new(move || cancelled.cancel());
        lock(&self.0.operations).insert(id, cancel);
        let port = self.clone();
        let ended = operation.clone();
        operation.on_end(move || {
            lock(&port.0.operations).remove(&id);
            if let Some(outcome) = ended.take() {
                port.send(match outcome {
                    Ok(value) => message(value),
                    Err(failure) => Message::Failed(id, failure),
                });
            }
        });
    }

    /// Passes the progress of an operation on.
    pub(crate) fn progress(&self, id: u32) -> Box<dyn Fn(Progress) + Send + Sync> {
        let port = self.clone();
        Box::new(move |progress| port.send(Message::Progress(id, progress)))
    }

    /// Passes the address that a login opens on.
    pub(crate) fn open(&self, id: u32) -> impl FnOnce(&str) + Send + 'static {
        let port = self.clone();
        move |url| port.send(Message::Open(id, url.to_owned()))
    }

    /// A function in JavaScript, in the table of a host.
    pub(crate) fn callback(&self, table: u32, is_tool: bool) -> Arc<dyn Callback> {
        // A host lives as long as its callbacks, and must not keep its environment.
        let port = Arc::downgrade(&self.0);
        Arc::new(move |request: Request, reply: Reply| match port.upgrade() {
            Some(port) => Self(port).ask(table, is_tool, request, reply),
            None => reply.reject("the thread of the program has ended".to_owned()),
        })
    }

    fn ask(&self, table: u32, is_tool: bool, request: Request, reply: Reply) {
        let id = self.0.next_question.fetch_add(1, Ordering::Relaxed);
        let port = Arc::downgrade(&self.0);
        // Not called before this function has returned: the asker is polling it.
        reply.on_cancel(move || Self::withdraw(&port, id));
        lock(&self.0.questions).insert(id, reply);
        self.send(Message::Asked(
            id,
            Asked {
                table,
                is_tool,
                name: request.name,
                payload: request.payload,
            },
        ));
    }

    fn withdraw(port: &Weak<PortInner>, id: u32) {
        if let Some(port) = port.upgrade() {
            let port = Self(port);
            drop(port.take(id));
            port.send(Message::Cancelled(id));
        }
    }

    fn take(&self, id: u32) -> Option<Reply> {
        lock(&self.0.questions).remove(&id)
    }

    /// Sends a message. One to an environment that has ended is dropped, which closes the host in it.
    fn send(&self, message: Message) {
        let is_first = {
            let mut messages = lock(&self.0.messages);
            messages.push(message);
            messages.len() == 1
        };
        // The function takes everything that is there when it runs.
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        if is_first && self.0.report.call((), mode) != Status::Ok {
            let unsent = std::mem::take(&mut *lock(&self.0.messages));
            for message in unsent {
                if let Message::Asked(question, _) = message {
                    drop(self.take(question));
                }
            }
        }
    }
}

/// The native side of an environment. Dropped with it, which cancels what is under way.
#[napi]
pub struct Bridge(pub(crate) Port);

#[napi]
impl Bridge {
    /// Calls a function with everything that has happened: kind, id and values of each message.
    #[napi(constructor)]
    pub fn new(report: Function<'_, Arguments, UnknownReturnValue>) -> napi::Result<Self> {
        let messages = Arc::<Mutex<Vec<Message>>>::default();
        let queue = Arc::clone(&messages);
        let report = report
            .build_threadsafe_function::<()>()
            .weak::<true>()
            .build_callback(move |context| {
                let taken = std::mem::take(&mut *lock(&queue));
                let mut arguments = Vec::with_capacity(taken.len() * MESSAGE);
                for message in taken {
                    message.append(&mut arguments, context.env);
                }
                Ok((arguments,).into())
            })?;
        Ok(Self(Port(Arc::new(PortInner {
            report,
            messages,
            operations: Mutex::default(),
            questions: Mutex::default(),
            next_question: AtomicU32::new(1),
        }))))
    }

    /// All codes of failures.
    #[napi]
    pub fn codes() -> Vec<&'static str> {
        failure::CODES.iter().map(|(code, _)| *code).collect()
    }

    /// The text of a result as the server sent it.
    #[napi]
    pub fn text_of(raw: String) -> String {
        match RawValue::from_string(raw) {
            Ok(result) => text_of(&result),
            Err(_) => String::new(),
        }
    }

    /// Cancels an operation; nothing happens if it has ended.
    #[napi]
    pub fn cancel(&self, id: u32) {
        let cancel = lock(&self.0.0.operations).remove(&id);
        if let Some(cancel) = cancel {
            cancel();
        }
    }

    /// Answers a question with JSON.
    #[napi]
    pub fn resolve(&self, question: u32, json: String) {
        if let Some(reply) = self.0.take(question) {
            reply.resolve(json);
        }
    }

    /// Answers a question with the text of an error.
    #[napi]
    pub fn reject(&self, question: u32, message: String) {
        if let Some(reply) = self.0.take(question) {
            reply.reject(message);
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let operations = std::mem::take(&mut *lock(&self.0.0.operations));
        for cancel in operations.values() {
            cancel();
        }
        drop(std::mem::take(&mut *lock(&self.0.0.questions)));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
