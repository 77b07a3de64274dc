//! What a scripted server saw, in order.
//!
//! Owns the records and the waiting for them. Tests compare whole sequences, so a record holds nothing that differs
//! from run to run by itself: no times, no ports.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::lock;

/// How long a test waits for a record. It is only ever used up by a test that fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// One thing a server saw.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A process has started.
    Started {
        /// Its id.
        process: u32,
    },
    /// A child of the process has started.
    Child {
        /// Its id.
        process: u32,
    },
    /// A connection was accepted.
    Connected {
        /// Counted from one, over the life of the server.
        connection: u64,
    },
    /// A connection has ended.
    Disconnected {
        /// Its number.
        connection: u64,
    },
    /// An HTTP request came in.
    Http {
        /// Its method.
        method: String,
        /// Its headers, in lower case, without those that every client sends (`host`, `user-agent`, …).
        headers: BTreeMap<String, String>,
    },
    /// A message came in.
    Received {
        /// The message.
        message: Value,
    },
    /// Something came in that was no message.
    Unreadable {
        /// The beginning of it.
        text: String,
    },
    /// The server waits at a gate.
    AtGate {
        /// The gate.
        gate: String,
    },
    /// The client went away from a request, or cancelled it, before it was answered.
    Abandoned {
        /// The id of the request, as JSON.
        request: String,
    },
    /// Standard input has ended.
    InputEnded,
    /// A signal came in and was ignored.
    Signal {
        /// Its name.
        name: String,
    },
}

impl Record {
    /// The method of a received message.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Received { message } => message["method"].as_str(),
            _ => None,
        }
    }
}

/// What a test waited for did not come.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {PATIENCE:?}; seen so far: {records:#?}")]
#[non_exhaustive]
pub struct NotSeen {
    /// What came instead.
    pub records: Vec<Record>,
}

/// All records of one server.
#[derive(Debug)]
pub(crate) struct Recorder {
    records: Mutex<Vec<Record>>,
    count: watch::Sender<usize>,
    /// Where the records are passed on to, when somebody outside this process wants them.
    copy: Mutex<Option<TcpStream>>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            records: Mutex::new(Vec::new()),
            count: watch::Sender::new(0),
            copy: Mutex::new(None),
        }
    }

    pub(crate) fn copy_to(&self, stream: TcpStream) {
        *lock(&self.copy) = Some(stream);
    }

    /// Keeps a record. It is passed on before this returns, so that even a process that ends right away has told.
    pub(crate) fn record(&self, record: Record) {
        if let Some(stream) = lock(&self.copy).as_mut()
            && let Ok(mut line) = serde_json::to_vec(&record)
        {
            line.push(b'\n');
            // Nobody listens any more: then there is nobody to tell.
            let _ = stream.write_all(&line);
        }
        let mut records = lock(&self.records);
        records.push(record);
        self.count.send_replace(records.len());
    }

    pub(crate) fn all(&self) -> Vec<Record> {
        lock(&self.records).clone()
    }

    /// Waits until the records give what is looked for.
    pub(crate) async fn wait<T>(
        &self,
        mut look: impl FnMut(&[Record]) -> Option<T>,
    ) -> Result<T, NotSeen> {
        let mut count = self.count.subscribe();
        let search = async {
            loop {
                count.borrow_and_update();
                let found = look(&lock(&self.records));
                match found {
                    Some(found) => return Some(found),
                    None => count.changed().await.ok()?,
                }
            }
        };
        let found = tokio::time::timeout(PATIENCE, search).await;
        found.ok().flatten().ok_or_else(|| NotSeen {
            records: self.all(),
        })
    }
}
