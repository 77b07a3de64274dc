//! The way back to JavaScript: one threadsafe function for each environment, which never keeps the event loop alive.
//! JavaScript keeps it alive itself while operations are pending.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use napi::Status;
use napi::bindgen_prelude::{Either13, FnArgs, Function, Null};
use napi::threadsafe_function::{
    ThreadsafeFunction, ThreadsafeFunctionCallMode, UnknownReturnValue,
};
use napi_derive::napi;
use switchboard::Progress;
use switchboard_bindings::{Callback, Failure, Operation, Reply, Request, failure};

use crate::agent::{AgentHandle, SessionHandle};
use crate::host::HostHandle;
use crate::values::{Asked, Failed, Progressed, ResultHandle, ToolList};

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

/// Kind, id and value.
type Arguments = FnArgs<(u32, u32, Value)>;

/// Does not keep the event loop alive, and has no limit: what is queued belongs to calls of the program.
type Report = ThreadsafeFunction<Message, UnknownReturnValue, Arguments, Status, false, true, 0>;

enum Message {
    Ended(u32, Value),
    Failed(u32, Failure),
    Progress(u32, Progress),
    Open(u32, String),
    Asked(u32, Asked),
    Cancelled(u32),
}

impl Message {
    /// The numbers are those of `lib/bridge.js`.
    fn arguments(self) -> Arguments {
        match self {
            Self::Ended(id, value) => (0, id, value),
            Self::Failed(id, failure) => (1, id, Value::J(Failed::from(&failure))),
            Self::Progress(id, progress) => (2, id, Value::K(progress.into())),
            Self::Open(id, url) => (3, id, Value::B(url)),
            Self::Asked(id, asked) => (4, id, Value::L(asked)),
            Self::Cancelled(id) => (5, id, Value::A(Null)),
        }
        .into()
    }
}

/// The end of the bridge in Rust. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Port(Arc<PortInner>);

struct PortInner {
    report: Report,
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
        let cancelled = operation.clone();
        let cancel = Box::new(move || cancelled.cancel());
        lock(&self.0.operations).insert(id, cancel);
        let port = self.clone();
        let ended = operation.clone();
        operation.on_end(move || {
            lock(&port.0.operations).remove(&id);
            if let Some(outcome) = ended.take() {
                port.send(match outcome {
                    Ok(value) => Message::Ended(id, convert(value)),
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
        let mode = ThreadsafeFunctionCallMode::NonBlocking;
        let question = match &message {
            Message::Asked(id, _) => Some(*id),
            _ => None,
        };
        if self.0.report.call(message, mode) != Status::Ok
            && let Some(question) = question
        {
            drop(self.take(question));
        }
    }
}

/// The native side of an environment. Dropped with it, which cancels what is under way.
#[napi]
pub struct Bridge(pub(crate) Port);

#[napi]
impl Bridge {
    /// Calls a function with kind, id and value.
    #[napi(constructor)]
    pub fn new(report: Function<'_, Arguments, UnknownReturnValue>) -> napi::Result<Self> {
        let report = report
            .build_threadsafe_function::<Message>()
            .weak::<true>()
            .build_callback(|context| {
                if let Message::Ended(_, Value::H(result)) = &context.value {
                    result.account(context.env)?;
                }
                Ok(context.value.arguments())
            })?;
        Ok(Self(Port(Arc::new(PortInner {
            report,
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
