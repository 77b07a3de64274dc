//! Where the runtime's thread leaves what Python is to know.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use switchboard::Progress;
use switchboard_bindings::{CallHook, Reply, Request};

use crate::convert;

/// A queue that a thread or an event loop of Python empties. Its socket is readable while there is something in it.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Inbox {
    queue: Arc<Queue>,
    reader: waker::Reader,
}

/// What the runtime's thread writes to.
pub(crate) struct Queue {
    items: Mutex<Vec<Item>>,
    writer: waker::Writer,
}

/// Something that Python is to know. The numbers are the keys that Python chose.
pub(crate) enum Item {
    /// An operation has ended.
    Ended(u64),
    /// Progress of a call.
    Progress(u64, Progress),
    /// A page to open for a login.
    Page(u64, String),
    /// A server, the permission gate or a caller of a tool asks.
    Asked {
        handlers: u64,
        is_tool: bool,
        id: u64,
        request: Request,
        reply: Reply,
    },
    /// The answer to a question is no longer wanted.
    Cancelled(u64),
}

impl Queue {
    /// Adds something, and wakes the reader if the queue was empty.
    pub(crate) fn push(&self, item: Item) {
        let was_empty = {
            let mut items = lock(&self.items);
            items.push(item);
            items.len() == 1
        };
        if was_empty {
            self.writer.wake();
        }
    }
}

#[pymethods]
impl Inbox {
    #[new]
    fn new() -> PyResult<Self> {
        let (reader, writer) = waker::pair()?;
        let queue = Queue {
            items: Mutex::default(),
            writer,
        };
        Ok(Self {
            queue: Arc::new(queue),
            reader,
        })
    }

    /// The socket that becomes readable.
    fn fileno(&self) -> i64 {
        self.reader.number()
    }

    /// Removes everything. Each item is a tuple that begins with its kind.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.reader.clear();
        let items = std::mem::take(&mut *lock(&self.queue.items));
        let list = PyList::empty(py);
        for item in items {
            list.append(self.tuple(py, item)?)?;
        }
        Ok(list)
    }
}

impl Inbox {
    pub(crate) fn queue(&self) -> Arc<Queue> {
        Arc::clone(&self.queue)
    }

    fn tuple<'py>(&self, py: Python<'py>, item: Item) -> PyResult<Bound<'py, PyTuple>> {
        match item {
            Item::Ended(key) => ("ended", key).into_pyobject(py),
            Item::Progress(key, progress) => {
                let Progress {
                    progress,
                    total,
                    message,
                } = progress;
                ("progress", key, progress, total, message).into_pyobject(py)
            }
            Item::Page(key, url) => ("page", key, url).into_pyobject(py),
            Item::Cancelled(id) => ("cancelled", id).into_pyobject(py),
            Item::Asked {
                handlers,
                is_tool,
                id,
                request,
                reply,
            } => {
                let queue = self.queue();
                reply.on_cancel(move || queue.push(Item::Cancelled(id)));
                let question = Question {
                    id,
                    request,
                    reply: Mutex::new(Some(reply)),
                };
                ("asked", handlers, is_tool, question).into_pyobject(py)
            }
        }
    }
}

/// The functions of a host: which inbox receives what they are called with.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Callbacks(Arc<Target>);

/// Where the questions of a host go.
pub(crate) struct Target {
    handlers: u64,
    queue: Mutex<Arc<Queue>>,
}

#[pymethods]
impl Callbacks {
    /// `handlers` is the key by which Python finds the functions.
    #[new]
    fn new(handlers: u64, inbox: &Inbox) -> Self {
        Self(Arc::new(Target {
            handlers,
            queue: Mutex::new(inbox.queue()),
        }))
    }

    /// Sends questions to another inbox, with those that no one has taken yet.
    fn redirect(&self, inbox: &Inbox) {
        let queue = inbox.queue();
        let previous = std::mem::replace(&mut *lock(&self.0.queue), Arc::clone(&queue));
        if Arc::ptr_eq(&previous, &queue) {
            return;
        }
        let ours = |item: &mut Item| matches!(item, Item::Asked { handlers, .. } if *handlers == self.0.handlers);
        let moved: Vec<Item> = lock(&previous.items).extract_if(.., ours).collect();
        for item in moved {
            queue.push(item);
        }
    }
}

impl Callbacks {
    /// The callbacks that Python has functions for.
    pub(crate) fn answering(
        &self,
        answered: Answered,
    ) -> PyResult<switchboard_bindings::Callbacks> {
        let Answered {
            questions,
            hooks,
            hook_timeout,
        } = answered;
        let hooks = hooks.into_iter().map(|(event, tool)| {
            let known = CallHook::event(&event);
            Ok(CallHook {
                event: known.ok_or_else(|| PyValueError::new_err(event))?,
                tool,
                callback: self.callback(false),
            })
        });
        let mut callbacks = switchboard_bindings::Callbacks {
            hooks: hooks.collect::<PyResult<_>>()?,
            hook_timeout: convert::duration(hook_timeout)?,
            ..switchboard_bindings::Callbacks::default()
        };
        for name in questions {
            let slot = match name.as_str() {
                "elicitation" => &mut callbacks.elicitation,
                "sampling" => &mut callbacks.sampling,
                "roots" => &mut callbacks.roots,
                "approval" => &mut callbacks.approval,
                _ => continue,
            };
            *slot = Some(self.callback(false));
        }
        Ok(callbacks)
    }

    /// The callback of a tool.
    pub(crate) fn tool(&self) -> Arc<dyn switchboard_bindings::Callback> {
        self.callback(true)
    }

    fn callback(&self, is_tool: bool) -> Arc<dyn switchboard_bindings::Callback> {
        let target = Arc::clone(&self.0);
        Arc::new(move |request: Request, reply: Reply| {
            static NEXT: AtomicU64 = AtomicU64::new(0);
            let queue = Arc::clone(&lock(&target.queue));
            queue.push(Item::Asked {
                handlers: target.handlers,
                is_tool,
                id: NEXT.fetch_add(1, Ordering::Relaxed),
                request,
                reply,
            });
        })
    }
}

/// What Python has functions for.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Answered {
    /// The names of questions.
    questions: Vec<String>,
    /// The event and the tools of each hook.
    hooks: Vec<(String, String)>,
    /// In seconds.
    hook_timeout: Option<f64>,
}

/// A question to the program. Dropping it without an answer is an error for the asker.
#[pyclass(frozen, module = "switchboard_mcp._native")]
pub(crate) struct Question {
    id: u64,
    request: Request,
    reply: Mutex<Option<Reply>>,
}

#[pymethods]
impl Question {
    /// Unique in the process.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// `elicitation`, `sampling`, `roots`, `approval`, `hook INDEX`, or the name of a tool.
    #[getter]
    fn name(&self) -> &str {
        &self.request.name
    }

    /// The parameters, as JSON text.
    #[getter]
    fn payload(&self) -> &str {
        &self.request.payload
    }

    /// Answers with JSON text.
    fn resolve(&self, json: String) {
        if let Some(reply) = self.take() {
            reply.resolve(json);
        }
    }

    /// Answers with an error.
    fn reject(&self, message: String) {
        if let Some(reply) = self.take() {
            reply.reject(message);
        }
    }
}

impl Question {
    fn take(&self) -> Option<Reply> {
        lock(&self.reply).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A pair of sockets on Unix, where event loops can wait for one.
#[cfg(unix)]
mod waker {
    use std::io::{self, Read as _, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    pub(super) struct Reader(UnixStream);
    pub(super) struct Writer(UnixStream);

    pub(super) fn pair() -> io::Result<(Reader, Writer)> {
        let (reader, writer) = UnixStream::pair()?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok((Reader(reader), Writer(writer)))
    }

    impl Reader {
        pub(super) fn number(&self) -> i64 {
            self.0.as_raw_fd().into()
        }

        /// Reads what has been written, so that the socket is readable only after the next byte.
        pub(super) fn clear(&self) {
            let mut buffer = [0; 64];
            while matches!((&self.0).read(&mut buffer), Ok(read) if read > 0) {}
        }
    }

    impl Writer {
        pub(super) fn wake(&self) {
            // A full socket is readable already; without a reader, no one waits.
            let _ = (&self.0).write(&[0]);
        }
    }
}

/// On Windows a pair of connections, since only sockets can be waited for.
#[cfg(windows)]
mod waker {
    use std::io::{self, Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};
    use std::os::windows::io::AsRawSocket as _;

    pub(super) struct Reader(TcpStream);
    pub(super) struct Writer(TcpStream);

    pub(super) fn pair() -> io::Result<(Reader, Writer)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let writer = TcpStream::connect(listener.local_addr()?)?;
        let reader = loop {
            // Another program may connect first.
            let (reader, peer) = listener.accept()?;
            if peer == writer.local_addr()? {
                break reader;
            }
        };
        writer.set_nodelay(true)?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        Ok((Reader(reader), Writer(writer)))
    }

    impl Reader {
        pub(super) fn number(&self) -> i64 {
            i64::try_from(self.0.as_raw_socket()).unwrap_or(-1)
        }

        pub(super) fn clear(&self) {
            let mut buffer = [0; 64];
            while matches!((&self.0).read(&mut buffer), Ok(read) if read > 0) {}
        }
    }

    impl Writer {
        pub(super) fn wake(&self) {
            let _ = (&self.0).write(&[0]);
        }
    }
}
