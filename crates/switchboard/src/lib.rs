//! The MCP host: it connects to every configured server, keeps it healthy, and offers what the servers have
//! through one catalogue and one call pipeline.
//!
//! | where | what |
//! |---|---|
//! | [`transport`] | how bytes reach a server: child process, HTTP, WebSocket, in-process |
//! | [`catalog`] | what the servers offer, as agents may see it |
//! | [`call`] | what happens to arguments and results on their way |
//! | [`names`], [`json`] | ids that cannot be mixed up, and JSON that is passed on without being copied |

pub mod call;
pub mod catalog;
pub mod json;
pub mod names;
pub mod transport;
