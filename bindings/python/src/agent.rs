//! The agent, its sessions and the events of a turn.

use std::path::PathBuf;

use pyo3::prelude::*;
use switchboard_bindings::{AgentConfig, HostConfig};

use crate::convert;
use crate::held::Held;
use crate::host::Host;
use crate::inbox::{Answered, Callbacks};
use crate::operation::Operation;

/// An agent, on a host of its own. Dropping it without closing it ends the host's servers.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Agent(Held<OpenAgent>);

/// Closes the host if the program did not.
struct OpenAgent(switchboard_bindings::Agent);

#[pymethods]
impl Agent {
    /// Creates an agent. `answered` is what Python has functions for.
    #[staticmethod]
    #[pyo3(signature = (callbacks, answered, *, path=None, model=None, instructions=None, max_requests=None,
        max_tokens=None, supervisor=None))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn create(
        callbacks: &Callbacks,
        answered: Answered,
        path: Option<PathBuf>,
        model: Option<String>,
        instructions: Option<String>,
        max_requests: Option<u32>,
        max_tokens: Option<u64>,
        supervisor: Option<PathBuf>,
    ) -> PyResult<Operation> {
        let config = AgentConfig {
            path,
            model,
            instructions,
            max_requests,
            max_tokens,
            host: HostConfig {
                supervisor,
                ..HostConfig::default()
            },
        };
        let callbacks = callbacks.answering(answered)?;
        let created = switchboard_bindings::Agent::create(config, &callbacks);
        Ok(Operation::new(created, |py, agent| {
            let agent = Self(Held::new(OpenAgent(agent)));
            Ok(Py::new(py, agent)?.into_any())
        }))
    }

    /// Its host, which is closed with the agent.
    #[getter]
    fn host(&self) -> Host {
        Host::new(self.0.0.host().clone(), false)
    }

    #[expect(clippy::needless_pass_by_value, reason = "what Python passes")]
    fn session(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Session> {
        match self.0.0.session(&folder) {
            Ok(session) => Ok(Session(Held::new(session))),
            Err(failure) => Err(convert::exception(py, &failure)),
        }
    }

    fn resume(&self, id: &str) -> Operation {
        Operation::new(self.0.0.resume(id), |py, session| {
            Ok(Py::new(py, Session(Held::new(session)))?.into_any())
        })
    }

    /// The stored sessions, as JSON text.
    fn sessions(&self) -> Operation {
        Operation::plain(self.0.0.sessions())
    }

    fn delete(&self, id: &str) -> Operation {
        Operation::plain(self.0.0.delete(id))
    }
}

impl Drop for OpenAgent {
    fn drop(&mut self) {
        self.0.host().abandon();
    }
}

/// A session of an agent.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Session(Held<switchboard_bindings::Session>);

#[pymethods]
impl Session {
    #[getter]
    fn id(&self) -> &str {
        self.0.id()
    }

    #[getter]
    fn workspace(&self) -> PathBuf {
        self.0.workspace().to_owned()
    }

    /// Sends a message and waits for the end of the turn: the reply as JSON text.
    fn send(&self, text: String) -> Operation {
        Operation::plain(self.0.send(text))
    }

    /// Sends a message: the events of the turn.
    fn stream(&self, text: String) -> TurnEvents {
        TurnEvents(Held::new(self.0.stream(text)))
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }

    fn add_mcp_server(&self, name: String, entry: String) -> Operation {
        Operation::plain(self.0.add_mcp_server(name, entry))
    }

    fn messages(&self) -> Operation {
        Operation::plain(self.0.messages())
    }

    fn usage(&self) -> Operation {
        Operation::plain(self.0.usage())
    }

    fn compact(&self) -> Operation {
        Operation::new(self.0.compact(), |py, ()| Ok(py.None()))
    }
}

/// The events of a turn. Dropping them interrupts it.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct TurnEvents(Held<switchboard_bindings::TurnEvents>);

#[pymethods]
impl TurnEvents {
    /// Waits for the next event, as JSON text; `None` after the last one.
    fn next(&self) -> Operation {
        Operation::plain(self.0.next())
    }

    fn interrupt(&self) {
        self.0.interrupt();
    }
}
