//! Exceptions, times and JSON.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use switchboard_bindings::Failure;

/// The exception for a failure. `switchboard_mcp._errors` has the classes.
pub(crate) fn exception(py: Python<'_>, failure: &Failure) -> PyErr {
    static FROM_FAILURE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let build = || {
        let from_failure = imported(py, &FROM_FAILURE, "switchboard_mcp._errors", "from_failure")?;
        from_failure.call1((
            failure.code,
            failure.message.as_str(),
            failure.server.as_deref(),
            failure.step,
            failure.hint.as_deref(),
            failure.causes.clone(),
        ))
    };
    match build() {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Parses JSON text with Python's own parser.
pub(crate) fn parse<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    static LOADS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    imported(py, &LOADS, "json", "loads")?.call1((json,))
}

/// A time in seconds, as Python passes it.
pub(crate) fn duration(seconds: Option<f64>) -> PyResult<Option<Duration>> {
    let duration = seconds.map(Duration::try_from_secs_f64).transpose();
    duration.map_err(|error| PyValueError::new_err(error.to_string()))
}

fn imported<'a, 'py>(
    py: Python<'py>,
    cell: &'a PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<&'a Bound<'py, PyAny>> {
    let found = cell.get_or_try_init(py, || {
        PyResult::Ok(py.import(module)?.getattr(name)?.unbind())
    })?;
    Ok(found.bind(py))
}
