//! The MCP host: it connects to every configured server, keeps it healthy, and offers what the servers have
//! through one catalogue and one call pipeline.
//!
//! | where | what |
//! |---|---|
//! | [`transport`] | how bytes reach a server: child process, HTTP, WebSocket, in-process |
//! | [`peer`] | one conversation with one server, in either era |
//! | [`handler`] | what servers may ask of the client |
//! | [`names`], [`json`] | ids that cannot be mixed up, and JSON that is passed on without being copied |

pub mod handler;
pub mod json;
pub mod names;
pub mod peer;
pub mod transport;
