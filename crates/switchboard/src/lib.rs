//! The MCP host: it connects to every configured server, keeps it healthy, and offers what the servers have
//! through one catalogue and one call pipeline.
//!
//! | where | what |
//! |---|---|
//! | [`guard`] | the small process that sees to it that no server outlives the host |
//! | [`transport`] | how bytes reach a server: child process, HTTP, WebSocket, in-process |
//! | [`names`], [`json`] | ids that cannot be mixed up, and JSON that is passed on without being copied |

#[cfg(unix)]
pub mod guard;
pub mod json;
pub mod names;
pub mod transport;
