//! An MCP host to embed: it connects to MCP servers over every transport and protocol revision, monitors and restores
//! the connections, and calls their tools. Each call passes through one pipeline that checks its arguments and a
//! permission gate.
//!
//! # Quick start
//!
//! ```no_run
//! use serde_json::json;
//! use switchboard::{Host, Server};
//!
//! #[tokio::main(flavor = "current_thread")]
//! async fn main() -> Result<(), switchboard::Error> {
//!     switchboard::supervise(); // this program's servers end with it, however it ends
//!     let host = Host::new();
//!     host.add(Server::stdio("files", "npx").args(["-y", "@modelcontextprotocol/server-filesystem", "."])).await?;
//!     let result = host.call("files/list_directory", json!({ "path": "." })).await?;
//!     println!("{}", result.text());
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! [`Server::http`], [`Server::sse`], [`Server::in_process`] and [`Server::over`] connect to other kinds of servers.
//! [`CallOutcome`] reads a result as text, content or a type; [`Host::request`] adds deadlines and progress to a call.
//!
//! # Servers from configuration files
//!
//! [`Host::from_config`] creates a host with the servers, permission rules and logins that the program `switchboard`
//! would use in a folder.
//!
//! ```no_run
//! # async fn example() -> Result<(), switchboard::Error> {
//! let host = switchboard::Host::from_config(".").await?;
//! host.start_all().await;
//! for server in host.statuses() {
//!     println!("{}: {}", server.name, server.word());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # An agent
//!
//! The crate [`switchboard-agent`](https://docs.rs/switchboard-agent) runs a model on a host:
//!
//! ```text
//! let agent = Agent::from_env(host).await?;
//! let reply = agent.session(".").send("What is this folder about?").await?;
//! println!("{}", reply.response);
//! ```
//!
//! # A permission callback
//!
//! A [`Gate`] decides about every call before it is sent. The default gate allows what the program itself calls.
//! [`PermissionGate`] applies rules and prompts through an [`Approver`].
//!
//! ```
//! use std::sync::Arc;
//! use switchboard::{Check, Gate, Host, HostOptions, PendingCall, Permit, Verdict};
//!
//! struct NoDeletions;
//!
//! impl Gate for NoDeletions {
//!     fn before<'a>(&'a self, call: &'a PendingCall<'a>) -> Check<'a, Verdict> {
//!         Check::Now(if call.tool.to_string().contains("delete") {
//!             Verdict::Deny { reason: "deleting is not allowed".to_owned() }
//!         } else {
//!             Verdict::Pass(Permit::default())
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let host = Host::with_options(HostOptions {
//!     gate: Arc::new(NoDeletions),
//!     ..HostOptions::default()
//! });
//! # host.shutdown().await;
//! # }
//! ```
//!
//! A [`ClientHandler`] answers requests from servers: elicitation, sampling, roots. The default declines everything.
//!
//! # Events
//!
//! [`Host::events`] returns a channel of [`Event`]s: state changes, calls with their progress and results, log lines.
//!
//! ```no_run
//! # async fn example(host: switchboard::Host) {
//! use switchboard::Event;
//!
//! let mut events = host.events();
//! while let Ok(event) = events.recv().await {
//!     if let Event::StateChanged { server, state, .. } = event {
//!         println!("{server} is {}", state.word());
//!     }
//! }
//! # }
//! ```
//!
//! # Errors
//!
//! [`Error::kind`] classifies a failure, [`Error::hint`] suggests a fix. A tool that ran and failed is not an error:
//! its result has [`is_error`](CallOutcome::is_error).
//!
//! ```no_run
//! # async fn example(host: switchboard::Host) {
//! use switchboard::ErrorKind;
//!
//! match host.call("files/read_file", serde_json::json!({ "path": "notes.txt" })).await {
//!     Ok(result) if result.is_error => println!("the tool failed: {}", result.text()),
//!     Ok(result) => println!("{}", result.text()),
//!     Err(error) if error.kind() == ErrorKind::TimedOut => println!("try again later"),
//!     Err(error) => println!("{error}; {}", error.hint().unwrap_or_default()),
//! }
//! # }
//! ```
//!
//! # Safety defaults
//!
//! - A server process inherits only the variables that programs need to run; see [`Server::env`] and [`Server::pass_env`].
//! - Arguments that do not match a tool's schema never reach the server.
//! - A model's call that no rule allows needs approval, and is denied if there is no [`Approver`].
//! - A tool whose definition changes after its first use is set aside until the change is approved ([`pins`]).
//! - Entries in files that a repository can contain have no effect until the user has approved them.
//!
//! # Modules
//!
//! The items that most programs need are at the root of the crate.
//!
//! | module | contents |
//! |---|---|
//! | [`catalog`] | the tools of all servers as a model sees them, and why a tool is set aside |
//! | [`permissions`] | the rule-based gate, its policy, and its prompts |
//! | [`pins`] | stored tool definitions, changes to them, and approving a change |
//! | [`search`] | tool search, as in [`Host::search`], for your own tools |
//! | [`service`] | the trait and helpers for an MCP server in Rust |
//! | [`status`] | the states of a server, with reason and remedy |
//! | [`transport`] | the interface for custom transports |

mod alarm;
mod audit;
mod auth;
mod call;
mod caller;
pub mod catalog;
mod configured;
mod connectors;
mod content;
mod desired;
mod digest;
mod doctor;
mod error;
mod events;
mod files;
mod handler;
mod helper_process;
mod hooks;
mod host;
mod id_map;
mod identity;
#[doc(hidden)]
pub mod internal;
mod json;
mod load;
mod logs;
mod manager;
mod memory;
mod names;
mod options;
mod own_variables;
mod peer;
pub mod permissions;
mod person;
pub mod pins;
mod places;
mod profile;
mod remembered;
mod roots;
mod sandbox;
pub mod search;
mod server;
pub mod service;
mod sharing;
mod spec;
pub mod status;
mod supervisor;
pub mod transport;
mod watch;
mod workspace;

// Hosting: the handle, its options, and the servers to connect to.
pub use configured::HostBuilder;
pub use error::{Error, ErrorKind};
pub use handler::{ClientHandler, DeclineAll, QuestionLimits, declined};
pub use host::{Host, PendingLogin, ServerError};
pub use names::{CallId, CalledTool, ExposedName, ServerName, ToolRef, WireName};
pub use options::{Backoff, HostOptions, HostSettings};
pub use peer::{OpenOptions, OpenStep};
pub use server::Server;
#[cfg(unix)]
pub use supervisor::supervise;
pub use workspace::Workspace;

// Calls and other requests, with their results and errors.
pub use call::arguments::{ArgumentProblem, ArgumentsError};
pub use call::local::{LocalCall, LocalContext, LocalOutput, LocalTool, ToolDefinition};
pub use call::shape::{Block, Media};
pub use call::{CallError, CallOutcome, CallRequest, CallTarget};
pub use content::ContentError;
pub use json::SharedJson;
pub use peer::{ListKind, Pages, Progress, ProgressSink, RequestError};

// The permission callback.
pub use call::gate::{AllowAll, Check, EndedCall, Gate, PendingCall, Permit, Sight, Verdict};
pub use permissions::{Approver, PermissionGate};

// Events, the catalog, and the status of servers.
pub use catalog::{Catalog, CatalogTool};
pub use events::{CallResult, Event, LogLine, LogSource};
pub use status::{ServerState, ServerStatus};

// Implementing a server in Rust.
pub use service::{
    Cancellation, Features, Reply, RequestContext, Service, error_result, text_result,
    tool_definition,
};

// Implementing a transport outside this crate.
pub use transport::{
    Abandoned, Closed, Connector, Inbound, Link, Outgoing, OutgoingKind, RequestFailure, Sending,
    TransportError, TransportErrorKind, sending, sent,
};
