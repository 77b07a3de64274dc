//! The MCP host: it connects to every configured server, keeps it healthy, and offers what the servers have
//! through one catalogue and one call pipeline. Start with [`Host`].
//!
//! | where | what |
//! |---|---|
//! | [`host`], [`options`], [`spec`], [`connectors`] | the handle, what it is made of, and servers to manage |
//! | [`desired`] | all servers a host should have, where they come from, and what a new state changed |
//! | [`call`] | the call pipeline: prepare, permit, send, shape |
//! | [`permissions`], [`hooks`], [`audit`] | who may call what, who looks on, and what is written down |
//! | [`auth`] | how the host proves to a remote server that it may speak with it |
//! | [`content`] | resources, prompts, completion |
//! | [`catalog`] | what the servers offer, as a model may see it |
//! | [`search`] | which of many tools somebody means |
//! | [`pins`] | what tools were when they were first used, and what is set aside because it changed |
//! | `manager` | the one owner of states: starting, health, reconnecting |
//! | [`peer`] | one conversation with one server, in either era |
//! | [`transport`], [`supervisor`] | how bytes reach a server, and how its processes are ended |
//! | [`sandbox`] | what a server's process may touch |
//! | [`service`], [`workspace`] | a Rust value that serves MCP, and the one that is built in |
//! | [`find`] | files of a folder, as git sees it |
//! | [`doctor`] | what is wrong with a server, and how to fix it |
//! | [`handler`], [`roots`] | what servers may ask of the client, and which folders each is told about |
//! | [`events`], [`status`], [`logs`] | what happens, the status of servers, what they said |
//! | [`places`] | the folders of a user: configuration, state, the enterprise file |
//! | `memory`, [`remembered`], [`watch`] | what is kept between runs, what of it a program may look at, and files that change |
//! | [`names`], [`json`] | ids that cannot be mixed up, and JSON that is passed on without being copied |

mod alarm;
pub mod audit;
pub mod auth;
pub mod call;
pub mod catalog;
mod configured;
pub mod connectors;
pub mod content;
pub mod desired;
mod digest;
pub mod doctor;
mod error;
pub mod events;
pub mod find;
pub mod handler;
mod helper_process;
pub mod hooks;
pub mod host;
mod id_map;
mod identity;
pub mod json;
pub mod logs;
mod manager;
mod memory;
pub mod names;
pub mod options;
pub mod own_variables;
pub mod peer;
pub mod permissions;
pub mod person;
pub mod pins;
pub mod places;
pub mod remembered;
pub mod roots;
pub mod sandbox;
pub mod search;
mod server;
pub mod service;
pub mod spec;
pub mod status;
pub mod supervisor;
pub mod transport;
pub mod watch;
pub mod workspace;

pub use call::{CallOutcome, CallRequest};
pub use error::{Error, ErrorKind};
pub use host::Host;
pub use server::Server;
#[cfg(unix)]
pub use supervisor::supervise;
