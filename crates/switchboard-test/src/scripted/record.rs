//! Records of what a scripted server received and did, in order.
//!
//! Tests compare complete sequences, so a record contains nothing that varies between runs, such as times or ports.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Mutex;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::watch;

use super::lock;

/// Timeout of every wait; only reached by a failing test.
const PATIENCE: Duration = Duration::from_secs(30);

/// A recorded event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Record {
    /// A process has started.
    Started {
        /// Process id.
        process: u32,
    },
    /// A child of the process has started.
    Child {
        /// Process id.
        process: u32,
    },
    /// A connection was accepted.
    Connected {
        /// Counted from one, over the life of the server.
        connection: u64,
    },
    /// A connection has ended.
    Disconnected {
        /// As in [`Connected`](Self::Connected).
        connection: u64,
    },
    /// An HTTP request was received.
    Http {
        /// HTTP method.
        method: String,
        /// Headers in lower case, without those that every client sends (`host`, `user-agent`, …).
        headers: BTreeMap<String, String>,
    },
    /// A message was received.
    Received {
        /// As JSON.
        message: Value,
    },
    /// Invalid input was received.
    Unreadable {
        /// Its beginning.
        text: String,
    },
    /// The server waits at a gate.
    AtGate {
        /// Name of the gate.
        gate: String,
    },
    /// The client disconnected from a request, or cancelled it, before it was answered.
    Abandoned {
        /// The request id as JSON.
        request: String,
    },
    /// Standard input has ended.
    InputEnded,
    /// A signal was received and ignored.
    Signal {
        /// Such as `SIGTERM`.
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

/// A wait for a record timed out.
#[derive(Debug, thiserror::Error)]
#[error("not seen within {PATIENCE:?}; seen so far: {records:#?}")]
#[non_exhaustive]
pub struct NotSeen {
    /// The records so far.
    pub records: Vec<Record>,
}

#[derive(Debug)]
pub(crate) struct Recorder {
    records: Mutex<Vec<Record>>,
    count: watch::Sender<usize>,
    /// A copy of the records goes here, for a test in another process.
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

    /// Stores a record. The copy is written before this returns, so that it is not lost if the process exits.
    pub(crate) fn record(&self, record: Record) {
        if let Some(stream) = lock(&self.copy).as_mut()
            && let Ok(mut line) = serde_json::to_vec(&record)
        {
            line.push(b'\n');
            // The test may have ended.
            let _ = stream.write_all(&line);
        }
        let mut records = lock(&self.records);
        records.push(record);
        self.count.send_replace(records.len());
    }

    pub(crate) fn all(&self) -> Vec<Record> {
        lock(&self.records).clone()
    }

    /// Waits until `look` finds something in the records.
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
