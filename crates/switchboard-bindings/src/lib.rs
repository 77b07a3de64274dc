//! What the Python and Node packages share: a host and an agent for programs in other languages.
//!
//! The packages only convert values; everything they do is here. Arguments and results that a server defines are JSON
//! text, which each language parses with its own parser, and only on access. Futures run on one thread
//! of their own, so that no event loop of the other language has to drive them.
//!
//! | module | contents |
//! |---|---|
//! | [`runtime`] | the thread, and operations that run on it: wait, cancel, be notified |
//! | [`failure`] | the one error, with code, server, step, hint and causes |
//! | [`callback`] | functions of the other language: called from here, answered later |
//! | [`questions`] | what servers and the permission gate ask, passed to callbacks |
//! | [`hooks`] | functions that inspect calls before and after they are made |
//! | [`local`] | the server of tools that the other language implements |
//! | [`host`] | the host |
//! | [`tool`] | tools, and their definitions in the forms of model providers |
//! | [`events`] | events and statuses as JSON |
//! | [`agent`] | the agent and its sessions |

pub mod agent;
pub mod callback;
pub mod events;
pub mod failure;
pub mod hooks;
pub mod host;
pub mod local;
pub mod questions;
pub mod runtime;
pub mod tool;

pub use agent::{Agent, AgentConfig, Session, TurnEvents};
pub use callback::{Callback, Reply, Request};
pub use failure::Failure;
pub use hooks::CallHook;
pub use host::{CallOptions, Events, Host, HostConfig};
pub use questions::Callbacks;
pub use runtime::Operation;
pub use tool::{Format, Tool};
