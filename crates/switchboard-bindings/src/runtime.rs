//! The thread that runs all futures, and operations on it. A call begins on the thread of its caller.
//!
//! One thread, as in the program: a host mostly waits. The thread lives as long as the process, because servers end
//! with the thread that started their supervisor. A forked child has no such thread. New hosts in the child get one of
//! their own; a host of the parent is refused there.

use std::fmt;
use std::future::pending;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt as _;
use switchboard::internal::transport::patiently;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::failure::Failure;

/// The name of the thread, as in debuggers.
const THREAD: &str = "switchboard";

/// The runtime of this process. Replaced in a forked child.
static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

/// Runs futures. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Runtime {
    handle: Handle,
    /// The process whose thread it is.
    process: u32,
}

impl Runtime {
    /// The runtime of this process, started on first use.
    ///
    /// # Errors
    ///
    /// If the thread cannot be started.
    pub fn current() -> Result<Self, Failure> {
        let mut runtime = lock(&RUNTIME);
        match &*runtime {
            Some(running) if running.is_here() => Ok(running.clone()),
            _ => {
                let started = Self::start()?;
                *runtime = Some(started.clone());
                Ok(started)
            }
        }
    }

    fn start() -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::internal(format!("cannot start: {error}"));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        std::thread::Builder::new()
            .name(THREAD.to_owned())
            .spawn(move || runtime.block_on(pending::<()>()))
            .map_err(failed)?;
        Ok(Self {
            handle,
            process: std::process::id(),
        })
    }

    /// Fails in a forked child, where the thread does not exist.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.is_here() {
            Ok(())
        } else {
            Err(Failure::forked())
        }
    }

    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Enters the runtime, for constructors that need one.
    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Starts an operation. In a forked child it fails at once.
    pub fn start_operation<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Operation<T> {
        if let Err(failure) = self.check() {
            return Operation::failed(failure);
        }
        let operation = Operation::new();
        let task = self.handle.spawn(operation.run(future));
        // Set before another thread can have the operation.
        let _ = operation.0.task.set(Work::Spawned(task.abort_handle()));
        operation
    }

    /// Like [`Self::start_operation`], but begins the work on the thread of the caller, so that a request is sent without
    /// waking the runtime's thread first, and the answer of a fast server is received without being woken by it. For work
    /// that starts no process: a process ends with the thread that started it. Takes less than a millisecond.
    pub(crate) fn begin_operation<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Operation<T> {
        if let Err(failure) = self.check() {
            return Operation::failed(failure);
        }
        let operation = Operation::new();
        let begun = Begun::poll(&self.handle, Box::pin(operation.run(future)));
        let _ = operation.0.task.set(Work::Begun(begun));
        operation
    }

    /// Runs something on the thread, without a result.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if self.is_here() {
            self.handle.spawn(future);
        }
    }
}

/// Work on the runtime's thread, with a result to take. Dropping it does not cancel the work. Cheap to clone.
pub struct Operation<T>(Arc<Shared<T>>);

struct Shared<T> {
    state: Mutex<State<T>>,
    task: OnceLock<Work>,
}

enum State<T> {
    Running(Option<Notify>),
    Ended(Result<T, Failure>),
    Taken,
}

type Notify = Box<dyn FnOnce() + Send>;

impl<T> Operation<T> {
    fn new() -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State::Running(None)),
            task: OnceLock::new(),
        }))
    }

    /// Runs a future to its end, which is the end of the operation.
    fn run<F>(&self, future: F) -> impl Future<Output = ()> + use<T, F>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        // The future of a call is large: from here on it is not moved.
        let future = Box::pin(future);
        let shared = Arc::clone(&self.0);
        async move {
            let outcome = AssertUnwindSafe(future).catch_unwind().await;
            let panicked = |_| {
                Err(Failure::internal(
                    "a bug in Switchboard: it panicked".to_owned(),
                ))
            };
            shared.finish(outcome.unwrap_or_else(panicked));
        }
    }

    /// An operation that has failed.
    pub(crate) fn failed(failure: Failure) -> Self {
        let operation = Self::new();
        operation.0.finish(Err(failure));
        operation
    }

    /// Calls a function when the operation has ended: at once, or later on the runtime's thread. It must not block. A
    /// second function replaces the first.
    pub fn on_end(&self, notify: impl FnOnce() + Send + 'static) {
        {
            let mut state = lock(&self.0.state);
            if let State::Running(slot) = &mut *state {
                *slot = Some(Box::new(notify));
                return;
            }
        }
        notify();
    }

    /// The result, once; `None` before the end and after the first time.
    pub fn take(&self) -> Option<Result<T, Failure>> {
        let mut state = lock(&self.0.state);
        if matches!(*state, State::Running(_)) {
            return None;
        }
        match std::mem::replace(&mut *state, State::Taken) {
            State::Ended(outcome) => Some(outcome),
            State::Running(_) | State::Taken => None,
        }
    }

    /// Whether the operation has ended.
    pub fn has_ended(&self) -> bool {
        !matches!(*lock(&self.0.state), State::Running(_))
    }

    /// Blocks this thread until the operation has ended, at most for this time. Returns whether it has ended. Replaces
    /// the function of [`Self::on_end`].
    pub fn wait(&self, at_most: Duration) -> bool {
        let (ended, end) = mpsc::channel();
        self.on_end(move || {
            // The receiver is gone after the timeout.
            let _ = ended.send(());
        });
        end.recv_timeout(at_most).is_ok()
    }

    /// Cancels the work: a call is cancelled at its server. Does nothing after the end.
    pub fn cancel(&self) {
        if let Some(task) = self.0.task.get() {
            task.abort();
        }
        self.0.finish(Err(Failure::cancelled()));
    }
}

/// The work of an operation.
enum Work {
    Spawned(AbortHandle),
    Begun(Arc<Begun>),
}

impl Work {
    fn abort(&self) {
        match self {
            Self::Spawned(task) => task.abort(),
            Self::Begun(begun) => begun.abort(),
        }
    }
}

/// Work that begins on the thread of its caller. When it is first woken, it becomes a task of the runtime.
struct Begun {
    handle: Handle,
    stage: Mutex<Stage>,
}

enum Stage {
    /// Runs on the thread of the caller; whether it was woken meanwhile.
    Beginning {
        is_woken: bool,
    },
    /// Waits to be woken.
    Waiting(Boxed),
    Spawned(AbortHandle),
    Over,
}

type Boxed = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Begun {
    fn poll(handle: &Handle, mut work: Boxed) -> Arc<Self> {
        let begun = Arc::new(Self {
            handle: handle.clone(),
            stage: Mutex::new(Stage::Beginning { is_woken: false }),
        });
        let waker = Waker::from(Arc::clone(&begun));
        let _entered = handle.enter();
        let is_over = patiently(|| work.as_mut().poll(&mut Context::from_waker(&waker)));
        let mut stage = lock(&begun.stage);
        *stage = match (is_over, &*stage) {
            (Poll::Ready(()), _) => Stage::Over,
            (Poll::Pending, Stage::Beginning { is_woken: true }) => begun.spawn(work),
            (Poll::Pending, _) => Stage::Waiting(work),
        };
        drop(stage);
        begun
    }

    fn spawn(&self, work: Boxed) -> Stage {
        Stage::Spawned(self.handle.spawn(work).abort_handle())
    }

    fn abort(&self) {
        let work = {
            let mut stage = lock(&self.stage);
            match &*stage {
                Stage::Spawned(task) => return task.abort(),
                _ => std::mem::replace(&mut *stage, Stage::Over),
            }
        };
        // The lock is released: what the work does when it is dropped may wake it.
        let _entered = self.handle.enter();
        drop(work);
    }
}

impl Wake for Begun {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut stage = lock(&self.stage);
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Beginning { .. } => *stage = Stage::Beginning { is_woken: true },
            Stage::Waiting(work) => *stage = self.spawn(work),
            before @ (Stage::Spawned(_) | Stage::Over) => *stage = before,
        }
    }
}

impl<T> Shared<T> {
    /// Ends the operation, unless it has ended.
    fn finish(&self, outcome: Result<T, Failure>) {
        let notify = {
            let mut state = lock(&self.state);
            let State::Running(notify) = &mut *state else {
                return;
            };
            let notify = notify.take();
            *state = State::Ended(outcome);
            notify
        };
        if let Some(notify) = notify {
            notify();
        }
    }
}

impl<T> Clone for Operation<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Operation<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Operation").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn an_operation_is_waited_for_and_taken_once() {
        let runtime = Runtime::current().unwrap();
        let operation = runtime.start_operation(async { Ok(7) });
        assert!(operation.wait(Duration::from_secs(10)));
        assert_eq!(operation.take().unwrap().unwrap(), 7);
        assert!(operation.take().is_none());
    }

    #[test]
    fn a_cancelled_operation_ends_at_once_and_drops_its_future() {
        let runtime = Runtime::current().unwrap();
        let (dropped, seen) = mpsc::channel();
        let operation = runtime.start_operation(hang(Guard(dropped)));
        let (ended, told) = mpsc::channel();
        operation.on_end(move || ended.send(()).unwrap());
        operation.cancel();
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(operation.take().unwrap().unwrap_err().code, "cancelled");
        seen.recv_timeout(Duration::from_secs(10)).unwrap();
    }

    #[test]
    fn a_panic_is_a_failure() {
        let runtime = Runtime::current().unwrap();
        let nothing: Vec<u8> = Vec::new();
        let operation = runtime.start_operation(async move { Ok(nothing[0]) });
        assert!(operation.wait(Duration::from_secs(10)));
        assert_eq!(operation.take().unwrap().unwrap_err().code, "internal");
    }

    #[test]
    fn work_begins_with_its_caller_and_continues_on_the_runtime() {
        let runtime = Runtime::current().unwrap();
        let (answer, answered) = tokio::sync::oneshot::channel();
        let thread = || std::thread::current().name().map(str::to_owned);
        let operation = runtime.begin_operation(async move {
            let first = thread();
            answered.await.unwrap();
            Ok((first, thread()))
        });
        assert!(operation.take().is_none());
        answer.send(()).unwrap();
        assert!(operation.wait(Duration::from_secs(10)));
        let (first, second) = operation.take().unwrap().unwrap();
        assert_eq!(first, thread());
        assert_eq!(second.as_deref(), Some(THREAD));
    }

    #[test]
    fn work_that_does_not_wait_ends_with_its_caller() {
        let runtime = Runtime::current().unwrap();
        let operation = runtime.begin_operation(async { Ok(7) });
        assert_eq!(operation.take().unwrap().unwrap(), 7);
    }

    #[test]
    fn work_that_is_woken_while_it_begins_continues() {
        let runtime = Runtime::current().unwrap();
        let operation = runtime.begin_operation(async {
            let mut is_woken = false;
            std::future::poll_fn(|context| {
                if std::mem::replace(&mut is_woken, true) {
                    return Poll::Ready(());
                }
                context.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            Ok(7)
        });
        assert!(operation.wait(Duration::from_secs(10)));
        assert_eq!(operation.take().unwrap().unwrap(), 7);
    }

    #[test]
    fn cancelling_drops_work_that_has_begun_and_waits() {
        let runtime = Runtime::current().unwrap();
        let (dropped, seen) = mpsc::channel();
        let operation = runtime.begin_operation(hang(Guard(dropped)));
        operation.cancel();
        seen.try_recv().unwrap();
        assert_eq!(operation.take().unwrap().unwrap_err().code, "cancelled");
    }

    /// Never ends.
    async fn hang(_guard: Guard) -> Result<(), Failure> {
        pending().await
    }

    struct Guard(mpsc::Sender<()>);

    impl Drop for Guard {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
}
