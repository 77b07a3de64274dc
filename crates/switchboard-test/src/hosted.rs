//! Support for tests with a host: server specs, waiting for events, and leak checks.
//!
//! Turns scripted and installed servers into [`ServerSpec`]s, waits for states, and counts tasks, descriptors and
//! processes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::http::{
    HttpClient, HttpSettings, LegacyConnector, RemoteServer, StreamableConnector,
};
use switchboard::internal::transport::stdio::{Grace, StdioConnector, StdioLimits};
use switchboard::internal::transport::websocket::WebSocketConnector;
use switchboard::transport::Connector;
use switchboard::{CallError, CallOutcome, CallRequest, Event, Host};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{sleep, timeout};

use crate::scripted::{Endpoint, Over, Running};

/// Timeout of every wait; only reached by a failing test.
const PATIENCE: Duration = Duration::from_secs(60);

/// The spec of a running server, with a limit on the size of its messages.
pub fn spec(name: &str, server: &Running, over: Over, max_message_bytes: usize) -> ServerSpec {
    match &server.endpoint {
        Endpoint::Command { program, arguments } => {
            spec_of_command(name, program.clone(), arguments, max_message_bytes)
        }
        Endpoint::Url(url) => spec_of_url(name, url, over, max_message_bytes),
    }
}

/// The spec of a stdio server.
pub fn spec_of_command(
    name: &str,
    program: PathBuf,
    arguments: &[String],
    max_message_bytes: usize,
) -> ServerSpec {
    let key = format!("{}{arguments:?}", program.display());
    let connector = StdioConnector {
        program,
        args: arguments.iter().map(Into::into).collect(),
        env: Vec::new(),
        env_vars: Vec::new(),
        inherit_env: false,
        base_env: std::env::vars_os().collect(),
        cwd: None,
        supervisor: None,
        sandbox: None,
        limits: StdioLimits {
            max_message_bytes,
            max_queued_bytes: 4 * max_message_bytes,
        },
        grace: Grace::default(),
    };
    spec_of(name, Arc::new(connector), &key)
}

/// The spec of a server at a URL.
///
/// # Panics
///
/// If the URL is invalid.
pub fn spec_of_url(name: &str, url: &str, over: Over, max_message_bytes: usize) -> ServerSpec {
    let made = || -> Result<Arc<dyn Connector>, switchboard::transport::TransportError> {
        let client = HttpClient::new(HttpSettings {
            max_message_bytes,
            ..HttpSettings::default()
        })?;
        let server = RemoteServer::new(url);
        Ok(match over {
            Over::Sse => Arc::new(LegacyConnector::new(&client, server)?),
            Over::WebSocket => Arc::new(WebSocketConnector::new(&client, server)?),
            Over::Http | Over::Stdio => Arc::new(StreamableConnector::new(&client, server)?),
        })
    };
    #[expect(clippy::expect_used, reason = "a test fails by panicking")]
    let connector = made().expect("the URL of a test server is valid");
    spec_of(name, connector, url)
}

/// The spec of a server behind a custom connector.
pub fn spec_of(name: &str, connector: Arc<dyn Connector>, key: &str) -> ServerSpec {
    let key = ConnectionKey::of(&[name.as_bytes(), key.as_bytes()]);
    ServerSpec::new(name, connector, key)
}

/// Calls a tool with this idle timeout.
pub async fn call(
    host: &Host,
    tool: &str,
    arguments: Value,
    idle: Duration,
) -> Result<CallOutcome, CallError> {
    host.request(CallRequest {
        tool: tool.to_owned(),
        arguments: serde_json::value::to_raw_value(&arguments).ok(),
        timeout: Some(idle),
        ..CallRequest::default()
    })
    .await
}

/// The events of a host since this was created.
#[derive(Debug)]
pub struct SeenEvents {
    events: broadcast::Receiver<Event>,
    seen: Vec<Event>,
}

impl SeenEvents {
    /// Subscribes to the events from now on.
    pub fn of(host: &Host) -> Self {
        Self {
            events: host.events(),
            seen: Vec::new(),
        }
    }

    /// Waits until `look` finds something in the events, including earlier ones.
    ///
    /// # Panics
    ///
    /// On timeout.
    pub async fn until<T>(&mut self, look: impl Fn(&[Event]) -> Option<T>) -> T {
        let search = async {
            loop {
                if let Some(found) = look(&self.seen) {
                    return Some(found);
                }
                match self.events.recv().await {
                    Ok(event) => self.seen.push(event),
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                }
            }
        };
        let found = timeout(PATIENCE, search).await.ok().flatten();
        #[expect(clippy::panic, reason = "a test fails by panicking")]
        found.unwrap_or_else(|| panic!("no such event; events so far: {:#?}", self.seen))
    }

    /// Waits until the server has gone through `count` states and returns them.
    pub async fn states(&mut self, server: &str, count: usize) -> Vec<&'static str> {
        self.until(|events| {
            let states = states_of(events, server);
            (states.len() >= count).then_some(states)
        })
        .await
    }

    /// The states that the server has gone through so far.
    pub fn states_so_far(&mut self, server: &str) -> Vec<&'static str> {
        states_of(self.so_far(), server)
    }

    /// All events so far.
    pub fn so_far(&mut self) -> &[Event] {
        loop {
            match self.events.try_recv() {
                Ok(event) => self.seen.push(event),
                Err(TryRecvError::Lagged(_)) => {}
                Err(_) => return &self.seen,
            }
        }
    }
}

fn states_of(events: &[Event], name: &str) -> Vec<&'static str> {
    let states = events.iter().filter_map(|event| match event {
        Event::StateChanged { server, state, .. } if server.as_str() == name => Some(state.word()),
        _ => None,
    });
    states.collect()
}

/// Resources that a host could leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Tasks of this runtime.
    pub tasks: usize,
    /// Open file descriptors of this process.
    pub descriptors: usize,
    /// Child processes of this process.
    pub children: usize,
}

impl Held {
    /// Counts the current resources. Outside Linux only tasks are counted.
    pub fn now() -> Self {
        Self {
            tasks: tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
            descriptors: entries("/proc/self/fd").len(),
            children: children(),
        }
    }

    /// Waits until no more is held than this, because cleanup is asynchronous. The error is what is still held.
    pub async fn again(self) -> Result<(), Self> {
        let over = wait_until(|| {
            let now = Self::now();
            now.tasks <= self.tasks
                && now.descriptors <= self.descriptors
                && now.children <= self.children
        });
        timeout(PATIENCE, over).await.map_err(|_| Self::now())
    }
}

/// Waits for a condition that no event announces, such as a descriptor closed by the system. The caller sets a timeout.
pub async fn wait_until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        sleep(Duration::from_millis(5)).await;
    }
}

/// Resident memory of this process in bytes, without its code, whose pages are loaded on demand. 0 if it cannot be
/// read.
pub fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kibibytes.unwrap_or_default() * 1024
}

fn children() -> usize {
    let own = std::process::id();
    let parents = entries("/proc").into_iter().filter_map(|folder| {
        let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
        // The name may contain spaces and parentheses, so fields are counted from its end.
        let (_, fields) = stat.rsplit_once(')')?;
        fields.split_whitespace().nth(1)?.parse::<u32>().ok()
    });
    parents.filter(|parent| *parent == own).count()
}

fn entries(folder: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}
