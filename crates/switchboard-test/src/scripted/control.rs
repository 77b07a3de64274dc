//! How a test steers a scripted server and sees what it saw.
//!
//! One handle for servers in this process and for servers in processes of their own. The latter connect back to the
//! test when they start (see [`transport::stdio`](super::transport::stdio)): lines of JSON go both ways, [`Command`]s
//! to the server and [`Record`]s from it.

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

/// Something a server is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Become this server. The first command of a process that waits for its script.
    Script(Box<Script>),
    /// Let one that waits at this gate go on, or the next one that comes there.
    Release {
        /// The gate.
        gate: String,
    },
    /// Go wrong like this too, from now on.
    Arm(Rule),
    /// Forget all rules.
    Disarm,
    /// Send a notification to every client that listens for it.
    Notify {
        /// Its method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Write this to every client, where a message is expected.
    Say {
        /// What is written, a message or not.
        text: String,
    },
    /// End every subscription with its final result (stateless era).
    EndSubscriptions,
    /// Forget every session (Streamable HTTP).
    ForgetSessions,
    /// Drop every connection. Processes exit.
    Disconnect,
    /// End: drop every connection and listen no more; a process exits with this code.
    Exit {
        /// The exit code.
        code: i32,
    },
}

/// The handle of a test on a server.
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

    /// Tells the server something. Without a running process it is told the next one that starts.
    pub fn tell(&self, command: Command) {
        match &self.0 {
            Target::Here(server) => server.obey(command),
            Target::Elsewhere(processes) => processes.tell(&command),
        }
    }

    /// Lets one that waits at this gate go on.
    pub fn release(&self, gate: &str) {
        self.tell(Command::Release {
            gate: gate.to_owned(),
        });
    }

    /// Goes wrong like this too, from now on.
    pub fn arm(&self, rule: Rule) {
        self.tell(Command::Arm(rule));
    }

    /// Sends a notification to every client that listens for it.
    pub fn notify(&self, method: &str, params: Value) {
        self.tell(Command::Notify {
            method: method.to_owned(),
            params,
        });
    }

    /// Replaces the tools and says so.
    pub fn change_tools(&self, script: &Script) {
        self.tell(Command::Script(Box::new(script.clone())));
        self.notify("notifications/tools/list_changed", json!({}));
    }

    /// Everything the server saw so far.
    pub fn records(&self) -> Vec<Record> {
        self.recorder().all()
    }

    /// Every message the server received so far.
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

    /// Waits until the server has seen what is looked for. What it saw before counts too.
    pub async fn wait<T>(&self, look: impl FnMut(&[Record]) -> Option<T>) -> Result<T, NotSeen> {
        self.recorder().wait(look).await
    }

    /// Waits until so many messages of this method have come in, and gives the last of them.
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

    /// Waits until the server has waited at this gate so many times.
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
    /// What every new process is told first.
    script: Script,
    /// What was said while there was no process.
    waiting: Vec<String>,
    /// Unbounded: a test says a handful of things, and must not wait for a server that is made not to listen.
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

    /// The lines for a process that has just connected.
    pub(crate) fn joined(&self) -> mpsc::UnboundedReceiver<String> {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut state = lock(&self.state);
        let script = line(&Command::Script(Box::new(state.script.clone())));
        for said in std::iter::once(script).chain(state.waiting.drain(..)) {
            // The receiver is in our own hands still.
            let _ = sender.send(said);
        }
        state.running.push(sender);
        receiver
    }

    fn tell(&self, command: &Command) {
        let mut state = lock(&self.state);
        if let Command::Script(script) = command {
            state.script = Script::clone(script);
        }
        let said = line(command);
        state
            .running
            .retain(|process| process.send(said.clone()).is_ok());
        if state.running.is_empty() && !matches!(command, Command::Script(_)) {
            state.waiting.push(said);
        }
    }
}

fn line(command: &Command) -> String {
    let mut line = serde_json::to_string(command).unwrap_or_default();
    line.push('\n');
    line
}

/// Where servers wait until they are told to go on.
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
