//! A scripted model endpoint on loopback, in the wire formats of Anthropic and `OpenAI`.
//!
//! A script is a list of [`Turn`]s; a request gets the first unused one that matches. The request's path determines the
//! wire format. All requests are recorded completely. Requests that the real endpoints would reject get their status
//! 400, and so do requests without a matching turn. Tests need no sleeps: a stream can wait at a gate, and a test for a
//! request.
//!
//! | where | what |
//! |---|---|
//! | `script` | the script: text, thoughts, calls and faults |
//! | `anthropic`, `openai`, `responses` | encoders for the wire formats |
//! | `rules` | the validation rules of the real endpoints |
//! | `server`, `stream` | the HTTP server, recorded requests, gates |
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
//! // Pass `model.anthropic_url()` as ANTHROPIC_BASE_URL, or `model.openai_url()` as OPENAI_BASE_URL, and any key.
//! // Afterwards:
//! let asked: Vec<_> = model.requests().iter().map(|request| request.body.clone()).collect();
//! # assert!(asked.is_empty());
//! # assert_eq!(model.left().len(), 3);
//! # Ok::<_, std::io::Error>(())
//! # }).unwrap();
//! ```

mod anthropic;
mod openai;
mod responses;
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

/// Timeout of every wait; only reached by a failing test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// The Messages API.
    Anthropic,
    /// The Chat Completions API.
    OpenAi,
    /// The Responses API.
    Responses,
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Determined by the path.
    pub wire: Wire,
    /// Headers in lower case, without those that every client sends (`host`, `user-agent`, …).
    pub headers: BTreeMap<String, String>,
    /// The JSON body; `null` if it was not JSON.
    pub body: Value,
}

/// A running endpoint. Dropping it closes every connection.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl ScriptedModel {
    /// Starts the endpoint on a free loopback port.
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

    /// Value for `ANTHROPIC_BASE_URL`.
    pub fn anthropic_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Value for `OPENAI_BASE_URL`.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Base URL for this wire format.
    pub fn url(&self, wire: Wire) -> String {
        match wire {
            Wire::Anthropic => self.anthropic_url(),
            Wire::OpenAi | Wire::Responses => self.openai_url(),
        }
    }

    /// Adds a turn to the end of the script.
    pub fn add(&self, turn: Turn) {
        self.shared.add(turn);
    }

    /// Answers all requests to this path with this JSON, for example models at `/v1/models`, or a model's context
    /// window at `/props` and `/api/show`.
    pub fn answers(&self, path: &str, answer: Value) {
        self.shared.answer(path, answer);
    }

    /// The unused turns.
    pub fn left(&self) -> Vec<Turn> {
        self.shared.left()
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Recorded> {
        self.shared.requests()
    }

    /// Waits for the request with this number, counted from one.
    ///
    /// # Panics
    ///
    /// On timeout.
    pub async fn request(&self, number: usize) -> Recorded {
        self.wait("request", || {
            self.requests().get(number.checked_sub(1)?).cloned()
        })
        .await
    }

    /// Waits until the client has disconnected before the end of the answer to the request with this number.
    ///
    /// # Panics
    ///
    /// On timeout.
    pub async fn abandoned(&self, number: usize) {
        self.wait("disconnect", || {
            self.shared.has_abandoned(number).then_some(())
        })
        .await;
    }

    /// Releases one stream that waits at this gate, now or later.
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
        found.unwrap_or_else(|| panic!("no {what}; requests so far: {:#?}", self.requests()))
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.task.abort();
    }
}
