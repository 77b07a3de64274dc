//! The host, its tools, results and events.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use switchboard::{CallOutcome, ListKind};
use switchboard_bindings::{CallOptions, Format, HostConfig};

use crate::convert;
use crate::held::Held;
use crate::inbox::{Answered, Callbacks, Inbox, Item};
use crate::operation::Operation;

/// A host. Dropping it without closing it ends its servers.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Host(Held<OpenHost>);

/// Closes the host if the program did not.
struct OpenHost {
    host: switchboard_bindings::Host,
    /// Whether this object closes it: the host of an agent is closed with the agent.
    is_owner: bool,
}

impl Host {
    pub(crate) fn new(host: switchboard_bindings::Host, is_owner: bool) -> Self {
        Self(Held::new(OpenHost { host, is_owner }))
    }

    fn get(&self) -> &switchboard_bindings::Host {
        &self.0.host
    }
}

#[pymethods]
impl Host {
    /// Creates a host and starts its servers. `answered` is what Python has functions for.
    #[staticmethod]
    #[pyo3(signature = (callbacks, answered, *, folder=None, servers=None, supervisor=None))]
    fn open(
        callbacks: &Callbacks,
        answered: Answered,
        folder: Option<PathBuf>,
        servers: Option<String>,
        supervisor: Option<PathBuf>,
    ) -> PyResult<Operation> {
        let config = HostConfig {
            folder,
            servers,
            supervisor,
            ..HostConfig::default()
        };
        let opened = switchboard_bindings::Host::open(config, &callbacks.answering(answered)?);
        Ok(Operation::new(opened, |py, host| {
            Ok(Py::new(py, Self::new(host, true))?.into_any())
        }))
    }

    /// Adds a tool from a definition in the form of the protocol.
    fn add_tool(&self, py: Python<'_>, definition: &str, callbacks: &Callbacks) -> PyResult<()> {
        let added = self.get().add_tool(definition, callbacks.tool());
        added.map_err(|failure| convert::exception(py, &failure))
    }

    #[pyo3(signature = (server=None))]
    fn tools(&self, server: Option<String>) -> Operation {
        Operation::new(self.get().tools(server), |py, tools| {
            let tools = tools.into_iter().map(Tool);
            Ok(PyList::new(py, tools.collect::<Vec<_>>())?
                .into_any()
                .unbind())
        })
    }

    /// Calls a tool. Progress goes to the inbox under the key, if there is one.
    #[pyo3(signature = (tool, arguments=None, timeout=None, total_timeout=None, progress=None))]
    fn call(
        &self,
        py: Python<'_>,
        tool: String,
        arguments: Option<String>,
        timeout: Option<f64>,
        total_timeout: Option<f64>,
        progress: Option<(Bound<'_, Inbox>, u64)>,
    ) -> PyResult<Operation> {
        let mut options = CallOptions {
            timeout: convert::duration(timeout)?,
            total_timeout: convert::duration(total_timeout)?,
            progress: None,
        };
        if let Some((inbox, key)) = progress {
            let queue = inbox.get().queue();
            options.progress = Some(Box::new(move |progress| {
                queue.push(Item::Progress(key, progress));
            }));
        }
        let call = py.detach(|| self.get().call(tool, arguments, options));
        // A signal during the call must cancel it: the caller gets nothing that it could cancel.
        py.check_signals().inspect_err(|_| call.cancel())?;
        Ok(Operation::new(call, |py, outcome| {
            Ok(Py::new(py, CallResult(outcome))?.into_any())
        }))
    }

    fn search(&self, query: String, limit: usize) -> Operation {
        Operation::new(self.get().search(query, limit), |py, hits| {
            let hits = hits.into_iter().map(|(tool, score)| (Tool(tool), score));
            Ok(PyList::new(py, hits.collect::<Vec<_>>())?
                .into_any()
                .unbind())
        })
    }

    /// Lists `resources`, `resource_templates` or `prompts`, as JSON text.
    #[pyo3(signature = (kind, server=None))]
    fn list(&self, kind: &str, server: Option<String>) -> PyResult<Operation> {
        let kind = match kind {
            "resources" => ListKind::Resources,
            "resource_templates" => ListKind::Templates,
            "prompts" => ListKind::Prompts,
            other => return Err(PyValueError::new_err(other.to_owned())),
        };
        Ok(Operation::plain(self.get().list(kind, server)))
    }

    fn read(&self, server: String, uri: String) -> Operation {
        Operation::plain(self.get().read(server, uri))
    }

    #[pyo3(signature = (server, name, arguments=None))]
    fn prompt(&self, server: String, name: String, arguments: Option<String>) -> Operation {
        Operation::plain(self.get().prompt(server, name, arguments))
    }

    /// The statuses, as JSON text.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let status = self.get().status();
        status.map_err(|failure| convert::exception(py, &failure))
    }

    fn events(&self, py: Python<'_>) -> PyResult<Events> {
        let events = self.get().events();
        let events = events.map_err(|failure| convert::exception(py, &failure))?;
        Ok(Events(Held::new(events)))
    }

    fn add_server(&self, name: String, entry: String) -> Operation {
        Operation::plain(self.get().add_server(name, entry))
    }

    fn remove_server(&self, name: String) -> Operation {
        Operation::plain(self.get().remove_server(name))
    }

    fn set_enabled(&self, name: String, enabled: bool) -> Operation {
        Operation::new(
            self.get().set_enabled(name, enabled),
            |py, ()| Ok(py.None()),
        )
    }

    fn restart(&self, name: String) -> Operation {
        Operation::plain(self.get().restart(name))
    }

    /// Logs in. The page to open goes to the inbox under the key.
    fn login(&self, name: String, inbox: &Inbox, key: u64) -> Operation {
        let queue = inbox.queue();
        let login = self.get().login(name, move |url| {
            queue.push(Item::Page(key, url.to_owned()));
        });
        Operation::new(login, |py, ()| Ok(py.None()))
    }

    fn close(&self) -> Operation {
        Operation::new(self.get().close(), |py, ()| Ok(py.None()))
    }

    /// Closes the host without waiting.
    fn abandon(&self) {
        self.get().abandon();
    }
}

impl Drop for OpenHost {
    fn drop(&mut self) {
        if self.is_owner {
            self.host.abandon();
        }
    }
}

/// A tool of a server. Nothing of it is decoded before it is accessed.
#[pyclass(frozen, module = "switchboard_mcp")]
pub(crate) struct Tool(switchboard_bindings::Tool);

#[pymethods]
impl Tool {
    /// The name that a model calls: `mcp__server__tool`.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The name of its server.
    #[getter]
    fn server(&self) -> &str {
        self.0.server()
    }

    /// Its name on the server.
    #[getter]
    fn tool(&self) -> &str {
        self.0.tool()
    }

    #[getter]
    fn title(&self) -> Option<String> {
        self.0.title()
    }

    /// The description as a model sees it: sanitized and cut.
    #[getter]
    fn description(&self) -> String {
        self.0.description()
    }

    /// The JSON Schema of its arguments, in a form that providers accept.
    #[getter]
    fn input_schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::parse(py, self.0.input_schema())
    }

    /// The JSON Schema of its structured results.
    #[getter]
    fn output_schema<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let schema = self.0.output_schema();
        schema.map(|schema| convert::parse(py, schema)).transpose()
    }

    /// The definition as the server wrote it.
    #[getter]
    fn definition<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        convert::parse(py, self.0.definition())
    }

    /// The definition as a provider takes it: `openai`, `openai-responses` or `anthropic`.
    fn format<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyAny>> {
        let known = Format::parse(format);
        let known = known.ok_or_else(|| PyValueError::new_err(format!("no format {format}")))?;
        convert::parse(py, &self.0.formatted(known))
    }

    fn __repr__(&self) -> String {
        format!("<Tool {}>", self.0.name())
    }
}

/// The result of a call, as the server sent it. Nothing of it is decoded before it is accessed.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct CallResult(CallOutcome);

#[pymethods]
impl CallResult {
    #[getter]
    fn text(&self) -> String {
        self.0.text()
    }

    /// The whole result, as JSON text.
    #[getter]
    fn raw(&self) -> &str {
        self.0.raw()
    }

    /// The length of the result in bytes.
    #[getter]
    fn size(&self) -> usize {
        self.0.result.size()
    }

    #[getter]
    fn is_error(&self) -> bool {
        self.0.is_error()
    }

    #[getter]
    fn server(&self) -> Option<&str> {
        let server = self.0.tool.server.as_ref();
        server.map(switchboard::ServerName::as_str)
    }

    #[getter]
    fn tool(&self) -> &str {
        self.0.tool.tool.as_str()
    }

    /// Seconds since the call was permitted.
    #[getter]
    fn elapsed(&self) -> f64 {
        self.0.elapsed.as_secs_f64()
    }
}

/// The events of a host.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Events(Held<switchboard_bindings::Events>);

#[pymethods]
impl Events {
    /// Waits for the next event, as JSON text; `None` after the end of the host.
    fn next(&self) -> Operation {
        Operation::plain(self.0.next())
    }
}
