//! Kills processes at random moments: after resuming, no executed call is missing from the record, and none is
//! repeated.
//!
//! This program spawns itself: the child runs a session whose tools append lines to a file, until it is killed. Every
//! line in the file must be in the record, and no line may appear twice.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test fails by panicking, and says so"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard::internal::spec::{ConnectionKey, ServerSpec};
use switchboard::internal::transport::in_process::InProcessConnector;
use switchboard::permissions::{Engine, PermissionGate, Policy};
use switchboard::service::{Features, Reply, RequestContext, Service, text_result};
use switchboard::{Host, HostOptions};
use switchboard::{LocalContext, LocalOutput, LocalTool, ToolDefinition};
use switchboard_agent::message::{Content, Message, Part, Role, ToolCall};
use switchboard_agent::provider::{
    Chunk, Model, ModelReply, Provider, ProviderError, Request, Stop, Usage,
};
use switchboard_agent::{Agent, AgentOptions, SessionError, SessionId};
use switchboard_config::entry::Permission;
use switchboard_protocol::types::lifecycle::Implementation;
use switchboard_protocol::types::tool::{CallToolRequestParams, CallToolResult, Tool as WireTool};
use switchboard_store::SqliteStore;

const KILLS: u32 = 100;

/// Number of kills after which a new session starts, so that the record stays small.
const KILLS_OF_A_SESSION: u32 = 25;

/// Not a valid session id: starts a new session.
const NEW: &str = "";

/// Maximum number of events before the kill, and maximum delay after them in microseconds.
const MOST_EVENTS: u64 = 40;
const LONGEST_MOMENT: u64 = 5_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--child", folder, session] => child(Path::new(folder), session),
        // Test runners list the tests with this argument.
        _ if arguments.iter().any(|argument| argument == "--list") => {
            if !arguments.iter().any(|argument| argument == "--ignored") {
                println!("sessions_survive_being_killed: test");
            }
        }
        _ => parent(),
    }
}

fn parent() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut random = Random::seeded();
    let mut sessions = BTreeSet::new();
    let mut session = NEW.to_owned();
    for kill in 0..KILLS {
        if kill % KILLS_OF_A_SESSION == 0 {
            NEW.clone_into(&mut session);
        }
        let mut child = Command::new(std::env::current_exe().expect("this program"))
            .arg("--child")
            .arg(folder.path())
            .arg(&session)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        // Wait for that many events, and a moment longer.
        let output = child.stdout.take().expect("its output");
        let mut lines = BufReader::new(output).lines();
        session = next(&mut lines);
        sessions.insert(session.clone());
        for _ in 0..random.below(MOST_EVENTS) {
            next(&mut lines);
        }
        std::thread::sleep(Duration::from_micros(random.below(LONGEST_MOMENT)));
        child.kill().expect("it is killed");
        child.wait().expect("it is gone");
    }
    let runtime = runtime();
    let mut counts = BTreeMap::new();
    for session in &sessions {
        runtime.block_on(check(folder.path(), session, &mut counts));
    }
    println!(
        "killed {KILLS} times, {} sessions: {counts:?}",
        sessions.len()
    );
    let made = counts.get("made").copied().unwrap_or_default();
    assert!(made > 0, "no call was made at all");
}

fn next(lines: &mut impl Iterator<Item = std::io::Result<String>>) -> String {
    let line = lines.next().expect("the child does not end by itself");
    line.expect("a line")
}

/// Compares the record of a session with the lines in its file.
async fn check(folder: &Path, id: &str, counts: &mut BTreeMap<&'static str, usize>) {
    let id = SessionId::parse(id).expect("an id");
    let written = fs::read_to_string(folder.join("lines.txt")).unwrap_or_default();
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for line in written.lines().filter(|line| line.starts_with(id.as_str())) {
        *done.entry(line).or_default() += 1;
    }
    let session = match agent(folder, Mind::Done).resume(&id).await {
        Ok(session) => session,
        // Killed before the first record, so no call may have run.
        Err(SessionError::Unknown(_)) => {
            assert!(done.is_empty(), "made and not recorded: {done:?}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    session.send("Are you done?").await.expect("a reply");
    let messages = session.messages().await;
    let parts: Vec<&Part> = messages.iter().flat_map(|message| &message.parts).collect();
    let results: BTreeMap<&str, (&str, bool)> = parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolResult(result) => match result.content.first() {
                Some(Content::Text { text }) => {
                    Some((result.call.as_str(), (text.as_str(), result.is_error)))
                }
                _ => None,
            },
            _ => None,
        })
        .collect();
    for part in &parts {
        let Part::ToolCall(call) = part else { continue };
        let arguments: Value = serde_json::from_str(&call.arguments).expect("JSON");
        let line = arguments["line"].as_str().expect("a line");
        let times = done.remove(line).unwrap_or_default();
        let (text, is_error) = results
            .get(call.id.as_str())
            .expect("a result for every call");
        let kind = match (is_error, text.contains("was not run")) {
            (false, _) => {
                assert_eq!(times, 1, "{line} was answered with {text}");
                "made"
            }
            (true, true) => {
                assert_eq!(times, 0, "{line} was answered with {text}");
                "not run"
            }
            (true, false) => {
                assert!(text.contains("may or may not have taken effect"), "{text}");
                assert!(times <= 1, "{line} was made {times} times");
                "interrupted"
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    assert!(done.is_empty(), "made and not recorded: {done:?}");
}

/// Runs a session until it is killed.
fn child(folder: &Path, session: &str) {
    runtime().block_on(async {
        let agent = agent(folder, Mind::NeverDone);
        let resumed = match SessionId::parse(session) {
            Some(id) => agent.resume(&id).await.ok(),
            None => None,
        };
        let session = resumed.unwrap_or_else(|| agent.session(folder));
        println!("{}", session.id());
        loop {
            // The model derives unique lines from this id.
            let mut events = session.stream(session.id().as_str());
            while let Some(event) = events.next().await {
                event.expect("no error");
                println!();
            }
        }
    });
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn agent(folder: &Path, mind: Mind) -> Agent {
    let policy = Policy {
        unattended: Permission::Allow,
        ..Policy::agent()
    };
    let gate = Arc::new(PermissionGate::new(Engine::without_rules(policy)));
    let lines = Lines(folder.join("lines.txt"));
    let connector = InProcessConnector::new(Arc::new(lines.clone()));
    let key = ConnectionKey::of(&[b"lines"]);
    let host = Host::with_options(HostOptions {
        gate,
        desired: vec![ServerSpec::new("lines", Arc::new(connector), key)].into(),
        ..HostOptions::default()
    });
    Agent::new(AgentOptions {
        store: Arc::new(SqliteStore::new(folder.join("store.db"))),
        tools: vec![Arc::new(lines)],
        ..AgentOptions::new(host, Arc::new(mind))
    })
}

/// Appends lines to a file, as a built-in tool and as a server.
#[derive(Clone)]
struct Lines(PathBuf);

impl Lines {
    fn append(&self, arguments: &str) {
        let arguments: Value = serde_json::from_str(arguments).expect("JSON");
        let line = arguments["line"].as_str().expect("a line");
        let file = OpenOptions::new().append(true).create(true).open(&self.0);
        // In one write: a kill between the line and its end would join it with the next line.
        let written = file
            .expect("a file")
            .write_all(format!("{line}\n").as_bytes());
        written.expect("it is written");
    }
}

impl LocalTool for Lines {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({"type": "object", "properties": {"line": {"type": "string"}}});
        ToolDefinition {
            name: "Append".to_owned(),
            description: "Appends a line".to_owned(),
            input_schema: serde_json::value::to_raw_value(&schema).expect("JSON"),
        }
    }

    fn run<'a>(
        &'a self,
        arguments: &'a RawValue,
        _context: &'a LocalContext,
    ) -> BoxFuture<'a, LocalOutput> {
        Box::pin(async move {
            self.append(arguments.get());
            LocalOutput::text("appended")
        })
    }
}

impl Service for Lines {
    fn identity(&self) -> Implementation<'static> {
        Implementation::new("lines".into())
    }

    fn features(&self) -> Features {
        Features {
            tools: true,
            ..Features::NONE
        }
    }

    fn tools(&self) -> Vec<WireTool<'static>> {
        vec![WireTool::new("append".into())]
    }

    fn call_tool<'a>(
        &'a self,
        call: CallToolRequestParams<'a>,
        _context: &'a RequestContext,
    ) -> Reply<'a, CallToolResult<'static>> {
        Box::pin(async move {
            self.append(call.arguments.unwrap_or_default().get());
            Ok(text_result("appended"))
        })
    }
}

/// A model that appends lines, each of them once.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mind {
    NeverDone,
    Done,
}

impl Provider for Mind {
    fn model(&self) -> &Model {
        static MODEL: std::sync::LazyLock<Model> = std::sync::LazyLock::new(|| Model {
            id: "lines".to_owned(),
            provider: "lines".to_owned(),
            // So large that the conversation is never compacted.
            window: u64::MAX / 2,
            max_output: 1_000,
            vision: true,
            tools: true,
            price: None,
        });
        &MODEL
    }

    fn ask<'a>(&'a self, request: Request<'a>) -> BoxStream<'a, Result<Chunk, ProviderError>> {
        let parts = || request.messages.iter().flat_map(|message| &message.parts);
        let made = parts()
            .filter(|part| matches!(part, Part::ToolCall(_)))
            .count();
        let said: Vec<&str> = parts()
            .filter_map(|part| match part {
                Part::Text { text } => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let session = said.first().copied().unwrap_or_default();
        // Three calls of each kind per answer, and sometimes the end of a turn.
        let is_done = *self == Self::Done || (made % 6 == 0 && said.len().is_multiple_of(3));
        let parts = if is_done {
            vec![Part::Text {
                text: "Done.".to_owned(),
            }]
        } else {
            let calls = (made..made + 3).map(|number| {
                let name = if number % 2 == 0 {
                    "Append"
                } else {
                    "mcp__lines__append"
                };
                Part::ToolCall(ToolCall {
                    id: format!("call-{number}"),
                    name: name.to_owned(),
                    arguments: json!({"line": format!("{session} {number}")}).to_string(),
                })
            });
            calls.collect()
        };
        let answer = ModelReply {
            message: Message {
                role: Role::Assistant,
                parts,
            },
            stop: Stop::Done,
            usage: Usage::default(),
        };
        stream::iter([Ok(Chunk::End(answer))]).boxed()
    }
}

/// Pseudo-random numbers with a seed, so that a run can be repeated.
struct Random(u64);

impl Random {
    fn seeded() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let seed = now.map_or(1, |since| u64::from(since.subsec_nanos()) | 1);
        println!("seed {seed}");
        Self(seed)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
