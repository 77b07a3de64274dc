//! Scripted MCP servers over every transport and in both eras, with fault injection.
//!
//! A [`Script`] describes the server; [`Rule`]s inject faults. [`start`] runs it over a transport and returns a
//! [`Running`] server: its address, and a [`Control`] through which a test reads all received messages, in order, and
//! releases gates. Tests need no sleeps: anything that takes time can wait at a gate instead.
//!
//! | where | what |
//! |---|---|
//! | [`script`], [`fault`] | the script: identity, tools, resources, prompts; fault rules |
//! | [`record`], [`control`] | records of what the server received, and the test's control handle |
//! | `engine/` | the behaviour, independent of transports: a message in, a plan of steps out |
//! | `perform` | executes a plan: waits, asks the client, writes |
//! | `transport/` | stdio, Streamable HTTP, legacy HTTP+SSE, WebSocket |
//! | [`fixture`], [`process`] | starts a script over a transport; the program `scripted-server` |
//!
//! The server is implemented on `switchboard-protocol` and shares no code with the host.

pub mod control;
mod engine;
pub mod fault;
pub mod fixture;
mod perform;
pub mod process;
pub mod record;
pub mod script;
pub mod transport;

pub use control::{Command, Control};
pub use fault::{Fault, IdFault, Moment, On, Rule};
pub use fixture::{Endpoint, Over, Running, start};
pub use record::Record;
pub use script::{Do, Prompt, Resource, Script, Tool};

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Ignores poisoning: the data is only read and appended to.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
