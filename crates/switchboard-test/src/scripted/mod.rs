//! MCP servers that do what a script says, over every transport and in both eras, with faults to arm.
//!
//! A [`Script`] says what the server is and offers; [`Rule`]s say which requests go wrong, and how. [`start`] runs it
//! over a transport and gives a [`Running`] server: its address, and a [`Control`] through which a test sees everything
//! the server received, in order, and tells it when to go on. Nothing in here has to be waited for by sleeping:
//! whatever takes time can be made to wait at a gate instead.
//!
//! | where | what |
//! |---|---|
//! | [`script`], [`fault`] | the description: identity, tools, resources, prompts; what goes wrong and when |
//! | [`record`], [`control`] | what the server saw, and how a test steers it |
//! | `engine/` | the behaviour, independent of transports: a message in, a plan of steps out |
//! | `perform` | carries out a plan: waits, asks the client, writes |
//! | `transport/` | stdio, Streamable HTTP, legacy HTTP+SSE, WebSocket |
//! | [`fixture`], [`process`] | one call that starts a script over a transport; the program `scripted-server` |
//!
//! The server is written by hand on `switchboard-protocol` and shares no code with the host.

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

/// Locks, also when a test has panicked with the lock held: what it guards is only ever read and appended to.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
