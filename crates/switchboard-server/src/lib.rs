//! Front ends that MCP clients connect to, over stdio and Streamable HTTP. They serve a Switchboard agent, or any
//! [`Service`](switchboard::Service) written in Rust.
//!
//! A front end carries whole JSON-RPC messages between clients and a [`Handler`], and enforces the rules of its transport:
//! lines, sessions, streams, headers, tokens. The handler interprets the messages; outgoing ones are never parsed here.
//!
//! | where | what |
//! |---|---|
//! | [`Handler`], [`ServiceHandler`] | the interface behind a front end, and its implementation for a `Service` |
//! | [`stdio`] | one client over a pair of byte streams |
//! | [`http`] | many clients over Streamable HTTP: sessions of the stateful era, single requests of the stateless one |
//! | `local` | clients of the same user over a unix-domain socket, after a line of greeting |
//! | [`agent`] | the agent as a `Service` |
//! | [`gateway`] | all servers of a host behind one MCP server |
//!
//! A client that reads slowly costs bounded memory. No task outlives the future or the handle it belongs to.

pub mod agent;
pub mod gateway;
mod handler;
pub mod http;
#[cfg(unix)]
pub mod local;
pub mod stdio;

mod backlog;

pub use handler::{
    Client, ClientKind, Exchange, Handler, Principal, Readiness, ServerReadiness, ServiceHandler,
    SessionKey,
};
