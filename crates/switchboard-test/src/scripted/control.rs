//! Controls a scripted server from a test, and reads its records.
//!
//! One handle for in-process servers and for servers in their own processes. The latter connect back to the test when
//! they start (see [`transport::stdio`](super::transport::stdio)): JSON lines in both directions, [`Command`]s to the
//! server and [`Record`]s from it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};

use super::engine::Server;
use super::fault::Rule;
use super::lock;
use super::record::{NotSeen, Record, Recorder};
use super::script::Script;

/// A command to a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Sets the script. The first command of a process that waits for its script.
    Script(Box<Script>),
    /// Releases one waiter at this gate, now or later.
    Release {
        /// Name of the gate.
        gate: String,
    },
    /// Adds a fault rule.
    Arm(Rule),
    /// Removes all fault rules.
    Disarm,
    /// Sends a notification to every client that subscribes to it.
    Notify {
        /// Method of the notification.
        method: String,
        /// Parameters of the notification.
        params: Value,
    },
    /// Writes raw text to every client, where a message is expected.
    Say {
        /// Need not be a valid message.
        text: String,
    },
    /// End every subscription with its final result (stateless era).
    EndSubscriptions,
    /// Drops every session (Streamable HTTP).
    ForgetSessions,
    /// Drops every connection. A process exits.
    Disconnect,
    /// Stops the server: drops every connection and stops listening. A process exits.
    Exit {
        /// Exit code of a process.
        code: i32,
    },
}

/// A test's handle of a server.
#[derive(Debug, Clone)]
pub struct Control(Target);

#[derive(Debug, Clone)]
enum Target {
    Here(Arc<Server>),
    Elsewhere(Arc<Processes>),
}

impl Control {
    pub(crate) fn of_server(server: Arc<Server>) -> Self {
        Self(Target::Here(server))
    }

    pub(crate) fn of_processes(processes: Arc<Processes>) -> Self {
        Self(Target::Elsewhere(processes))
    }

    /// Sends a command. Without a running process, it is queued for the next one.
    pub fn tell(&self, command: Command) {
        match &self.0 {
            Target::Here(server) => server.obey(command),
            Target::Elsewhere(processes) => processes.tell(&command),
        }
    }

    /// Releases one waiter at this gate.
    pub fn release(&self, gate: &str) {
        self.tell(Command::Release {
            gate: gate.to_owned(),
        });
    }

    /// Adds a fault rule.
    pub fn arm(&self, rule: Rule) {
        self.tell(Command::Arm(rule));
    }

    /// Sends a notification to every client that subscribes to it.
    pub fn notify(&self, method: &str, params: Value) {
        self.tell(Command::Notify {
            method: method.to_owned(),
            params,
        });
    }

    /// Replaces the script and announces changed tools.
    pub fn change_tools(&self, script: &Script) {
        self.tell(Command::Script(Box::new(script.clone())));
        self.notify("notifications/tools/list_changed", json!({}));
    }

    /// All records so far.
    pub fn records(&self) -> Vec<Record> {
        self.recorder().all()
    }

    /// All messages received so far.
    pub fn received(&self) -> Vec<Value> {
        let messages = self.records().into_iter();
        messages
            .filter_map(|record| match record {
                Record::Received { message } => Some(message),
                _ => None,
            })
            .collect()
    }

    /// The methods of the requests and notifications received so far, in order.
    pub fn methods(&self) -> Vec<String> {
        let records = self.records();
        let methods = records.iter().filter_map(Record::method);
        methods.map(str::to_owned).collect()
    }

    /// Waits until `look` finds something in the records, including earlier ones.
    pub async fn wait<T>(&self, look: impl FnMut(&[Record]) -> Option<T>) -> Result<T, NotSeen> {
        self.recorder().wait(look).await
    }

    /// Waits until `count` messages of this method were received and returns the last one.
    pub async fn wait_for_method(&self, method: &str, count: usize) -> Result<Value, NotSeen> {
        self.wait(|records| {
            let of_method = records
                .iter()
                .filter(|record| record.method() == Some(method));
            match of_method.take(count).enumerate().last() {
                Some((index, Record::Received { message })) if index + 1 == count => {
                    Some(message.clone())
                }
                _ => None,
            }
        })
        .await
    }

    /// Waits until the server has arrived at this gate `count` times.
    pub async fn wait_for_gate(&self, gate: &str, count: usize) -> Result<(), NotSeen> {
        self.wait(|records| {
            let arrived = records
                .iter()
                .filter(|record| matches!(record, Record::AtGate { gate: at } if at == gate));
            (arrived.count() >= count).then_some(())
        })
        .await
    }

    fn recorder(&self) -> &Recorder {
        match &self.0 {
            Target::Here(server) => &server.recorder,
            Target::Elsewhere(processes) => &processes.recorder,
        }
    }
}

/// The processes of one server, each of which has connected back.
#[derive(Debug)]
pub(crate) struct Processes {
    pub(crate) recorder: Recorder,
    state: Mutex<ProcessesState>,
}

#[derive(Debug)]
struct ProcessesState {
    /// Sent first to every new process.
    script: Script,
    /// Commands queued while no process runs.
    waiting: Vec<String>,
    /// Unbounded: a test sends few commands and must not block on a server that does not read.
    running: Vec<mpsc::UnboundedSender<String>>,
}

impl Processes {
    pub(crate) fn new(script: Script) -> Self {
        Self {
            recorder: Recorder::new(),
            state: Mutex::new(ProcessesState {
                script,
                waiting: Vec::new(),
                running: Vec::new(),
            }),
        }
    }

    /// The command lines for a process that has just connected.
    pub(crate) fn joined(&self) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = lock(&self.state);
        let script = line(&Command::Script(Box::new(state.script.clone())));
        for line in std::iter::once(script).chain(state.waiting.drain(..)) {
            // The receiver is still alive.
            let _ = sender.send(line);
        }
        state.running.push(sender);
        receiver
    }

    fn tell(&self, command: &Command) {
        let mut state = lock(&self.state);
        if let Command::Script(script) = command {
            state.script = Script::clone(script);
        }
        let line = line(command);
        state
            .running
            .retain(|process| process.send(line.clone()).is_ok());
        if state.running.is_empty() && !matches!(command, Command::Script(_)) {
            state.waiting.push(line);
        }
    }
}

fn line(command: &Command) -> String {
    let mut line = serde_json::to_string(command).unwrap_or_default();
    line.push('\n');
    line
}

/// Named semaphores at which servers wait for the test.
#[derive(Debug, Default)]
pub(crate) struct Gates(Mutex<HashMap<String, Arc<Semaphore>>>);

impl Gates {
    pub(crate) fn release(&self, gate: &str) {
        self.gate(gate).add_permits(1);
    }

    pub(crate) async fn pass(&self, gate: &str) {
        let gate = self.gate(gate);
        if let Ok(permit) = gate.acquire().await {
            permit.forget();
        }
    }

    fn gate(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = lock(&self.0);
        let gate = gates
            .entry(name.to_owned())
            .or_insert_with(|| Arc::new(Semaphore::new(0)));
        Arc::clone(gate)
    }
}
