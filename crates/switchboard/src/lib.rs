//! The MCP host: it connects to every configured server, keeps it healthy, and offers what the servers have
//! through one catalogue and one call pipeline.
//!
//! | where | what |
//! |---|---|
//! | [`transport`] | how bytes reach a server: child process, HTTP, WebSocket, in-process |
//! | [`service`] | the other end: a Rust value that serves MCP |
//! | [`workspace`] | the embedded server, written as any in-process server would be |
//! | [`names`], [`json`] | ids that cannot be mixed up, and JSON that is passed on without being copied |

pub mod json;
pub mod names;
pub mod service;
pub mod transport;
pub mod workspace;
