//! Work that is under way on the runtime's thread.

use pyo3::BoundObject as _;
use pyo3::prelude::*;
use switchboard_bindings::Failure;

use crate::convert;
use crate::held::Held;
use crate::inbox::{Inbox, Item};

/// Work that is under way. Its result is taken once.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Operation(Held<Box<dyn Work>>);

/// A typed operation, without its type.
trait Work: Send + Sync {
    fn notify(&self, inbox: &Inbox, key: u64);
    fn has_ended(&self) -> bool;
    fn cancel(&self);
    fn take(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>>;
}

struct Typed<T, F> {
    operation: switchboard_bindings::Operation<T>,
    convert: F,
}

impl Operation {
    /// Wraps an operation; `convert` creates the Python value when the result is taken.
    pub(crate) fn new<T, F>(operation: switchboard_bindings::Operation<T>, convert: F) -> Self
    where
        T: Send + 'static,
        F: Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + Sync + 'static,
    {
        Self(Held::new(Box::new(Typed { operation, convert })))
    }

    /// Wraps an operation whose result Python has a type for.
    pub(crate) fn plain<T>(operation: switchboard_bindings::Operation<T>) -> Self
    where
        T: for<'py> IntoPyObject<'py> + Send + 'static,
    {
        Self::new(operation, |py, value| {
            let object = value.into_pyobject(py).map_err(Into::into)?;
            Ok(object.into_any().unbind())
        })
    }
}

#[pymethods]
impl Operation {
    /// Puts `("ended", key)` into the inbox when the work has ended: at once if it has ended already.
    fn notify(&self, inbox: &Inbox, key: u64) {
        self.0.notify(inbox, key);
    }

    /// Whether the work has ended: a fast server has answered before the call returned.
    #[getter]
    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    /// Cancels the work. Does nothing after the end.
    fn cancel(&self, py: Python<'_>) {
        py.detach(|| self.0.cancel());
    }

    /// The result, or its exception. To be called once, after the end.
    fn take(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let not_ended = || {
            let failure = Failure::invalid_arguments("the operation has not ended, or was taken");
            Err(convert::exception(py, &failure))
        };
        self.0.take(py).unwrap_or_else(not_ended)
    }
}

impl<T, F> Work for Typed<T, F>
where
    T: Send + 'static,
    F: Fn(Python<'_>, T) -> PyResult<Py<PyAny>> + Send + Sync,
{
    fn notify(&self, inbox: &Inbox, key: u64) {
        let queue = inbox.queue();
        self.operation.on_end(move || queue.push(Item::Ended(key)));
    }

    fn has_ended(&self) -> bool {
        self.operation.has_ended()
    }

    fn cancel(&self) {
        self.operation.cancel();
    }

    fn take(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        let outcome = self.operation.take()?;
        Some(match outcome {
            Ok(value) => (self.convert)(py, value),
            Err(failure) => Err(convert::exception(py, &failure)),
        })
    }
}
