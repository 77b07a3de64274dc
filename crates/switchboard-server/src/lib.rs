//! What MCP clients connect to: the front ends of Switchboard, over stdio and Streamable HTTP.
//!
//! A front end carries whole JSON-RPC messages between clients and a [`Handler`], and knows the rules of its
//! transport: lines, sessions, streams, headers, tokens. What a message means is the handler's business, so the agent,
//! the gateway and any [`Service`](switchboard::service::Service) stand on the same front ends, and what goes out is
//! never parsed here.
//!
//! | where | what |
//! |---|---|
//! | [`agent`] | the agent as something to serve |
//! | [`handler`] | what stands behind a front end, and how a `Service` does |
//! | [`stdio`] | one client over a pair of byte streams |
//! | [`http`] | many clients over Streamable HTTP: sessions of the stateful era and single requests of the stateless one |
//! | `backlog` | frames on their way to a client that may read slowly |
//!
//! Whoever reads slowly costs bounded memory; whoever goes away leaves nothing behind. No task here outlives the future
//! or the handle it belongs to.

pub mod agent;
pub mod handler;
pub mod http;
pub mod stdio;

mod backlog;

pub use handler::{Client, Exchange, Handler, ServiceHandler, SessionKey};
