//! A model that says what a script says, over HTTP on loopback, in the wire formats of Anthropic and of `OpenAI`.
//!
//! A script is a list of [`Turn`]s, and a request gets the first that is left and fits. One script is playable in both
//! formats: the path a request comes to decides. Everything that was asked is kept, whole. What the real endpoints
//! refuse is refused here too, with their 400, and so is a request that the script has no turn for. Nothing has to be
//! waited for by sleeping: a stream can wait at a gate, and a test for a request.
//!
//! | where | what |
//! |---|---|
//! | `script` | the description: text, thoughts, calls, and what goes wrong |
//! | `anthropic`, `openai` | a turn in a wire format |
//! | `rules` | what the real endpoints refuse |
//! | `server`, `stream` | HTTP, the record, the gates |
//!
//! ```
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! use serde_json::json;
//! use switchboard_test::model::{ScriptedModel, Turn};
//!
//! let model = ScriptedModel::start(vec![
//!     Turn::text("I look.").call("call_1", "Read", json!({"path": "a.txt"})),
//!     Turn::refuse(429, "slow down").retry_after(1),
//!     Turn::text("It says hello."),
//! ])
//! .await?;
//! // A client under test is given `model.anthropic_url()` as ANTHROPIC_BASE_URL, or `model.openai_url()` as
//! // OPENAI_BASE_URL, and any key. Afterwards:
//! let asked: Vec<_> = model.requests().iter().map(|request| request.body.clone()).collect();
//! # assert!(asked.is_empty());
//! # assert_eq!(model.left().len(), 3);
//! # Ok::<_, std::io::Error>(())
//! # }).unwrap();
//! ```

mod anthropic;
mod openai;
mod rules;
mod script;
mod server;
mod stream;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use script::{Arguments, Call, Refusal, Step, Stop, StreamError, Thought, Turn, Usage};
use server::Shared;

/// How long anything is waited for. It is only ever used up by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The Messages API.
    Anthropic,
    /// Chat Completions.
    OpenAi,
}

/// A request that came in.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The format it is in.
    pub wire: Wire,
    /// Its headers, in lower case, without those that every client sends (`host`, `user-agent`, …).
    pub headers: BTreeMap<String, String>,
    /// Its whole body; `null` if it was no JSON.
    pub body: Value,
}

/// The endpoint. Dropping it ends it, and every connection.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl ScriptedModel {
    /// Starts it on a free port of the loopback interface.
    pub async fn start(turns: Vec<Turn>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(turns));
        let task = tokio::spawn(server::serve(Arc::clone(&shared), listener));
        Ok(Self {
            address,
            shared,
            task,
        })
    }

    /// What a client is given as `ANTHROPIC_BASE_URL`.
    pub fn anthropic_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What a client is given as `OPENAI_BASE_URL`.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// What a client of this format is given as its base URL.
    pub fn url(&self, wire: Wire) -> String {
        match wire {
            Wire::Anthropic => self.anthropic_url(),
            Wire::OpenAi => self.openai_url(),
        }
    }

    /// Adds a turn to the end of the script.
    pub fn add(&self, turn: Turn) {
        self.shared.add(turn);
    }

    /// Answers requests to this path, whatever they ask, with this JSON: other models at `/v1/models`, and what servers
    /// tell of a model's window at `/props` and `/api/show`.
    pub fn answers(&self, path: &str, answer: Value) {
        self.shared.answer(path, answer);
    }

    /// The turns that nobody has asked for yet.
    pub fn left(&self) -> Vec<Turn> {
        self.shared.left()
    }

    /// Everything asked so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests()
    }

    /// Waits for the request of this number, counted from one.
    ///
    /// # Panics
    ///
    /// If it does not come.
    pub async fn request(&self, number: usize) -> Recorded {
        self.wait("request", || {
            self.requests().get(number.checked_sub(1)?).cloned()
        })
        .await
    }

    /// Waits until the client has gone away from the answer to the request of this number before its end.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub async fn abandoned(&self, number: usize) {
        self.wait("goodbye", || {
            self.shared.has_abandoned(number).then_some(())
        })
        .await;
    }

    /// Lets one stream that waits at this gate go on, or the next one that comes there.
    pub fn release(&self, gate: &str) {
        self.shared.gate(gate).add_permits(1);
    }

    async fn wait<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> T {
        let mut changes = self.shared.changes();
        let search = async {
            loop {
                changes.borrow_and_update();
                match look() {
                    Some(found) => return Some(found),
                    None => changes.changed().await.ok()?,
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, search).await.ok().flatten();
        #[expect(clippy::panic, reason = "a test fails by panicking")]
        found.unwrap_or_else(|| panic!("no {what}; asked so far: {:#?}", self.requests()))
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}
