//! Functions of the other language, called from the runtime's thread and answered from any thread, later.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// A function of the other language.
///
/// It is called on the runtime's thread, so it must not block: it passes the request to the other language's event
/// loop or to a thread, and returns. The reply can be used at any time and on any thread.
pub trait Callback: Send + Sync + 'static {
    /// Passes on a request.
    fn call(&self, request: Request, reply: Reply);
}

impl<F: Fn(Request, Reply) + Send + Sync + 'static> Callback for F {
    fn call(&self, request: Request, reply: Reply) {
        self(request, reply);
    }
}

/// What a function of the other language is called with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The name of what is asked: `elicitation`, `sampling`, `roots`, `approval`, `hook INDEX`, or the name of a tool.
    pub name: String,
    /// The parameters, as JSON text.
    pub payload: String,
}

/// Where the answer goes. Dropping it without an answer is an error for the caller.
pub struct Reply {
    answer: Option<oneshot::Sender<Result<String, String>>>,
    cancelled: Arc<Mutex<OnCancel>>,
}

#[derive(Default)]
enum OnCancel {
    #[default]
    Unset,
    Set(Box<dyn FnOnce() + Send>),
    Happened,
}

impl Reply {
    /// Answers with JSON text.
    pub fn resolve(mut self, json: String) {
        self.send(Ok(json));
    }

    /// Answers with an error, such as the text of an exception.
    pub fn reject(mut self, message: String) {
        self.send(Err(message));
    }

    /// Calls a function if the answer is no longer wanted: at once if that has happened already.
    pub fn on_cancel(&self, notify: impl FnOnce() + Send + 'static) {
        {
            let mut cancelled = lock(&self.cancelled);
            if !matches!(*cancelled, OnCancel::Happened) {
                *cancelled = OnCancel::Set(Box::new(notify));
                return;
            }
        }
        notify();
    }

    fn send(&mut self, answer: Result<String, String>) {
        if let Some(sender) = self.answer.take() {
            // The asker may be gone.
            let _ = sender.send(answer);
        }
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Reply").finish_non_exhaustive()
    }
}

/// Calls a function of the other language and waits for its answer. Dropping the future
/// cancels the question.
pub(crate) async fn ask(
    callback: &dyn Callback,
    name: &str,
    payload: String,
) -> Result<String, String> {
    let (sender, answer) = oneshot::channel();
    let mut guard = Guard {
        cancelled: Arc::default(),
        is_answered: false,
    };
    let reply = Reply {
        answer: Some(sender),
        cancelled: Arc::clone(&guard.cancelled),
    };
    let name = name.to_owned();
    callback.call(Request { name, payload }, reply);
    let answer = answer.await;
    guard.is_answered = true;
    answer.unwrap_or_else(|_| Err("the program gave no answer".to_owned()))
}

/// Notifies the other language if the asker goes away first.
struct Guard {
    cancelled: Arc<Mutex<OnCancel>>,
    is_answered: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.is_answered {
            return;
        }
        let set = std::mem::replace(&mut *lock(&self.cancelled), OnCancel::Happened);
        if let OnCancel::Set(notify) = set {
            notify();
        }
    }
}

fn lock(cancelled: &Mutex<OnCancel>) -> std::sync::MutexGuard<'_, OnCancel> {
    cancelled.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn an_answer_reaches_the_asker() {
        let echo = |request: Request, reply: Reply| reply.resolve(request.payload);
        assert_eq!(
            ask(&echo, "echo", "{}".to_owned()).await,
            Ok("{}".to_owned())
        );
        let fail = |_: Request, reply: Reply| reply.reject("no".to_owned());
        assert_eq!(
            ask(&fail, "fail", String::new()).await,
            Err("no".to_owned())
        );
    }

    #[tokio::test]
    async fn a_forgotten_reply_is_an_error() {
        let forget = |_: Request, _: Reply| {};
        let answer = ask(&forget, "forget", String::new()).await;
        assert_eq!(answer, Err("the program gave no answer".to_owned()));
    }

    #[tokio::test]
    async fn a_dropped_question_is_cancelled_in_the_program() {
        let (sender, cancelled) = mpsc::channel();
        let held = Mutex::new(Vec::new());
        let keep = move |_: Request, reply: Reply| {
            let sender = sender.clone();
            reply.on_cancel(move || sender.send(()).unwrap());
            held.lock().unwrap().push(reply);
        };
        let asked = ask(&keep, "keep", String::new());
        let waited = tokio::time::timeout(Duration::from_millis(10), asked).await;
        assert!(waited.is_err());
        cancelled.recv_timeout(Duration::from_secs(10)).unwrap();
    }
}
