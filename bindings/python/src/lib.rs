//! The native module of the Python package: converts values, and nothing else.
//!
//! The runtime's thread never runs Python code and never takes the GIL: what happens there is put into an `Inbox`,
//! which a thread or an event loop of Python empties. So a busy interpreter does not hold up the runtime, and an
//! interpreter that is shutting down cannot end the runtime's thread inside Rust code.
//!
//! | module | contents |
//! |---|---|
//! | `inbox` | where the runtime's thread leaves what Python is to know |
//! | `operation` | work that is under way |
//! | `host` | the host, its tools, results and events |
//! | `agent` | the agent, its sessions and the events of a turn |
//! | `held` | values that a forked child does not drop |
//! | `convert` | exceptions, times and JSON |

mod agent;
mod convert;
mod held;
mod host;
mod inbox;
mod operation;

/// The native part of `switchboard_mcp`.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::agent::{Agent, Session, TurnEvents};
    #[pymodule_export]
    use super::host::{CallResult, Events, Host, Tool};
    #[pymodule_export]
    use super::inbox::{Callbacks, Inbox, Question};
    #[pymodule_export]
    use super::operation::Operation;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
        module.add("CODES", switchboard_bindings::failure::CODES)
    }
}
