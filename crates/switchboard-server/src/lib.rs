//! Front ends for MCP clients, over stdio and Streamable HTTP.
//!
//! A front end carries whole JSON-RPC messages between clients and a [`Handler`] and implements the rules of its
//! transport: lines, sessions, streams, headers, tokens. It does not interpret messages, so the agent, the gateway and
//! any [`Service`](switchboard::service::Service) share the same front ends. Outgoing messages are never parsed here.
//!
//! | where | what |
//! |---|---|
//! | [`agent`] | the agent as a `Service` |
//! | [`handler`] | the interface behind a front end, and its implementation for a `Service` |
//! | [`stdio`] | one client over a pair of byte streams |
//! | [`http`] | many clients over Streamable HTTP: sessions of the stateful era and single requests of the stateless one |
//! | `backlog` | outgoing frames for clients that may read slowly |
//!
//! A slow client costs bounded memory, and a disconnected one is cleaned up. No task here outlives the future or the
//! handle that owns it.

pub mod agent;
pub mod handler;
pub mod http;
pub mod stdio;

mod backlog;

pub use handler::{Client, Exchange, Handler, ServiceHandler, SessionKey};
