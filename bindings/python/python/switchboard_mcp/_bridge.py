"""Waits for operations of the native module: under asyncio, under trio, and in a plain thread.

The native module puts everything that happens into an inbox, whose socket an event loop or a thread waits for. A home
is an inbox with the loop or thread that empties it. No task group or cancel scope outlives a call, so a host can be
closed from any task, in any order.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import sys
import threading
import types
import weakref
from collections.abc import Callable, Generator, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from switchboard_mcp import _handlers
from switchboard_mcp._handlers import Handlers
from switchboard_mcp._native import Inbox, Operation, Question

if TYPE_CHECKING:
    import asyncio

    import trio

# asyncio and what it imports take most of the time of an import, and not every program has an event loop.

Item: TypeAlias = "tuple[Any, ...]"
#: Receives what an operation tells before its end: progress, or the page of a login. Must not raise.
Watch: TypeAlias = "Callable[[Item], object]"
#: Starts an operation that tells something: to this inbox, under this key.
Start: TypeAlias = "Callable[[Inbox, int], Operation]"



class Home(Protocol):
    """Where the functions of a host run, and where its questions arrive."""

    @property
    def inbox(self) -> Inbox: ...
    @property
    def is_gone(self) -> bool: ...
    def is_current(self) -> bool: ...


class AsyncHome(Home, Protocol):
    """A home that operations can be awaited in."""

    async def wait(self, start: Start, watch: Watch | None) -> Any: ...
    async def wait_for(self, operation: Operation) -> Any: ...


class _Base:
    """What all homes do with the items of their inbox."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        #: Of operations. One for each home, since threads must not share an iterator.
        self.keys = itertools.count(1)
        self.watches: dict[int, Watch] = {}
        self.answering: dict[int, Callable[[], object]] = {}

    def drain(self) -> None:
        for item in self.inbox.drain():
            kind = item[0]
            if kind == "ended":
                self.ended(item[1])
            elif kind == "asked":
                _, number, is_tool, question = item
                handlers = _handlers.find(number)
                if handlers is None:
                    question.reject("the program dropped the host")
                else:
                    self.answer(handlers, is_tool, question)
            elif kind == "cancelled":
                cancel = self.answering.pop(item[1], None)
                if cancel is not None:
                    cancel()
            else:
                watch = self.watches.get(item[1])
                if watch is not None:
                    watch(item)

    def ended(self, key: int) -> None:
        raise NotImplementedError

    def answer(self, handlers: Handlers, is_tool: bool, question: Question) -> None:
        raise NotImplementedError


#: How long calls that end at once may follow each other before the other tasks of the loop run, in seconds.
_TURN = 0.001


@types.coroutine
def _next_turn() -> Generator[None, None, None]:
    """Lets every other task of an asyncio loop run."""
    yield


class _AsyncioHome(_Base):
    """An event loop of asyncio."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.loop = weakref.ref(loop)
        self.pending: dict[int, asyncio.Future[None]] = {}
        #: When a task of this loop last let the others run, in seconds.
        self.yielded = 0.0
        try:
            loop.add_reader(self.inbox.fileno(), self.drain)
        except NotImplementedError:
            # The default loop of Windows cannot wait for sockets.
            threading.Thread(target=self._poll, name="switchboard-inbox", daemon=True).start()

    @property
    def is_gone(self) -> bool:
        loop = self.loop()
        return loop is None or loop.is_closed()

    def is_current(self) -> bool:
        import asyncio

        with contextlib.suppress(RuntimeError):
            return asyncio.get_running_loop() is self.loop()
        return False

    async def wait_for(self, operation: Operation) -> Any:
        if not operation.has_ended:
            return await self.wait(lambda _inbox, _key: operation, None)
        now = monotonic()
        if now - self.yielded > _TURN:
            # Calls to a fast server must not keep the other tasks from running.
            self.yielded = now
            await _next_turn()
        return operation.take()

    async def wait(self, start: Start, watch: Watch | None) -> Any:
        key = next(self.keys)
        loop = self.loop()
        assert loop is not None
        future = self.pending[key] = loop.create_future()
        if watch is not None:
            self.watches[key] = watch
        operation: Operation | None = None
        try:
            operation = start(self.inbox, key)
            operation.notify(self.inbox, key)
            await future
        except BaseException:
            if operation is not None:
                operation.cancel()
            raise
        finally:
            del self.pending[key]
            if watch is not None:
                del self.watches[key]
        return operation.take()

    def ended(self, key: int) -> None:
        future = self.pending.get(key)
        if future is not None and not future.done():
            future.set_result(None)

    def answer(self, handlers: Handlers, is_tool: bool, question: Question) -> None:
        import contextvars

        loop = self.loop()
        assert loop is not None

        async def run_plain(function: Callable[[], Any]) -> Any:
            return await loop.run_in_executor(None, contextvars.copy_context().run, function)

        task = loop.create_task(handlers.answer(is_tool, question, run_plain))
        self.answering[question.id] = task.cancel
        task.add_done_callback(lambda _: self.answering.pop(question.id, None))

    def _poll(self) -> None:
        fileno = self.inbox.fileno()
        while True:
            select.select([fileno], [], [])
            loop = self.loop()
            emptied = threading.Event()

            def empty(emptied: threading.Event = emptied) -> None:
                self.drain()
                emptied.set()

            try:
                if loop is None:
                    return
                loop.call_soon_threadsafe(empty)
            except RuntimeError:
                return
            del loop
            emptied.wait()


class _TrioHome(_Base):
    """A run of trio."""

    def __init__(self) -> None:
        super().__init__()
        import trio

        self.trio = trio
        self.pending: dict[int, trio.lowlevel.Task] = {}
        self.is_gone = False
        trio.lowlevel.spawn_system_task(self._serve, name="switchboard inbox")

    def is_current(self) -> bool:
        return _trio_home() is self

    async def wait_for(self, operation: Operation) -> Any:
        if not operation.has_ended:
            return await self.wait(lambda _inbox, _key: operation, None)
        await self.trio.lowlevel.cancel_shielded_checkpoint()
        return operation.take()

    async def wait(self, start: Start, watch: Watch | None) -> Any:
        trio = self.trio
        await trio.lowlevel.checkpoint_if_cancelled()
        key = next(self.keys)
        self.pending[key] = trio.lowlevel.current_task()
        if watch is not None:
            self.watches[key] = watch
        try:
            operation = start(self.inbox, key)
            operation.notify(self.inbox, key)

            def abort(_: object) -> Any:
                # The end that follows must not wake the task a second time.
                self.pending.pop(key, None)
                operation.cancel()
                return trio.lowlevel.Abort.SUCCEEDED

            await trio.lowlevel.wait_task_rescheduled(abort)
        finally:
            self.pending.pop(key, None)
            if watch is not None:
                del self.watches[key]
        return operation.take()

    def ended(self, key: int) -> None:
        task = self.pending.pop(key, None)
        if task is not None:
            self.trio.lowlevel.reschedule(task)

    def answer(self, handlers: Handlers, is_tool: bool, question: Question) -> None:
        trio = self.trio
        scope = trio.CancelScope()
        self.answering[question.id] = scope.cancel

        async def run_plain(function: Callable[[], Any]) -> Any:
            return await trio.to_thread.run_sync(function, abandon_on_cancel=True)

        async def run() -> None:
            with scope:
                await handlers.answer(is_tool, question, run_plain)
            self.answering.pop(question.id, None)

        trio.lowlevel.spawn_system_task(run, name="switchboard callback")

    async def _serve(self) -> None:
        try:
            while True:
                await self.trio.lowlevel.wait_readable(self.inbox.fileno())
                self.drain()
        finally:
            self.is_gone = True


class _ThreadHome(_Base):
    """A thread, for hosts that are used without an event loop. Each function runs in a thread of its own."""

    is_gone = False

    def __init__(self) -> None:
        super().__init__()
        self.thread = threading.Thread(target=self._serve, name="switchboard-callbacks", daemon=True)
        self.thread.start()

    def is_current(self) -> bool:
        return threading.current_thread() is self.thread

    def ended(self, key: int) -> None:
        """Operations are awaited elsewhere."""

    def answer(self, handlers: Handlers, is_tool: bool, question: Question) -> None:
        import asyncio

        loop = asyncio.new_event_loop()

        async def run_plain(function: Callable[[], Any]) -> Any:
            return function()

        async def answer() -> None:
            task = asyncio.current_task()
            assert task is not None
            self.answering[question.id] = lambda: _cancel(loop, task)
            try:
                await handlers.answer(is_tool, question, run_plain)
            finally:
                self.answering.pop(question.id, None)

        def run() -> None:
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    loop.run_until_complete(answer())
            finally:
                loop.close()

        threading.Thread(target=run, name="switchboard-callback", daemon=True).start()

    def _serve(self) -> None:
        wait = _waiter(self.inbox)
        while True:
            wait()
            self.drain()


def _cancel(loop: asyncio.AbstractEventLoop, task: asyncio.Task[None]) -> None:
    # The loop is closed if the function has just returned.
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(task.cancel)


_asyncio_homes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _AsyncioHome] = weakref.WeakKeyDictionary()
_trio_variable: Any = None
_thread_home: _ThreadHome | None = None
_lock = threading.Lock()


def current() -> AsyncHome:
    """The home of the running event loop."""
    home = _trio_home()
    if home is not None:
        return home
    import asyncio

    loop = asyncio.get_running_loop()
    found = _asyncio_homes.get(loop)
    if found is None:
        found = _asyncio_homes[loop] = _AsyncioHome(loop)
    return found


def _trio_home() -> _TrioHome | None:
    """The home of the running trio; `None` outside of trio."""
    if "trio" not in sys.modules:
        return None
    import trio

    if not trio.lowlevel.in_trio_task():
        return None
    global _trio_variable
    with _lock:
        if _trio_variable is None:
            _trio_variable = trio.lowlevel.RunVar[Any]("switchboard_home")
    try:
        home: _TrioHome = _trio_variable.get()
    except LookupError:
        home = _TrioHome()
        _trio_variable.set(home)
    return home


def thread() -> Home:
    """The home of hosts that are used without an event loop."""
    global _thread_home
    with _lock:
        if _thread_home is None:
            _thread_home = _ThreadHome()
        return _thread_home


async def wait(operation: Operation) -> Any:
    """Waits for an operation. Cancelling the task cancels the operation."""
    return await current().wait_for(operation)


async def wait_watching(start: Start, watch: Watch) -> Any:
    """Waits for an operation that tells something before its end."""
    return await current().wait(start, watch)


def watch_with(function: Callable[..., Any]) -> Watch:
    """Passes what an operation tells to a function, plain or asynchronous. Its errors are logged."""

    def watch(item: Item) -> None:
        try:
            result = function(*item[2:])
            if hasattr(result, "__await__"):
                _spawn(result)
        except Exception:
            _log_failure()

    return watch


def _log_failure() -> None:
    import logging

    logging.getLogger("switchboard_mcp").exception("a callback failed")


_spawned: set[asyncio.Task[None]] = set()


def _spawn(awaitable: Any) -> None:
    async def run() -> None:
        try:
            await awaitable
        except Exception:
            _log_failure()

    if "trio" in sys.modules:
        import trio

        if trio.lowlevel.in_trio_run():
            trio.lowlevel.spawn_system_task(run)
            return
    import asyncio

    try:
        task = asyncio.get_running_loop().create_task(run())
    except RuntimeError:
        asyncio.run(run())
        return
    _spawned.add(task)
    task.add_done_callback(_spawned.discard)


#: A signal that arrives just before a thread begins to wait does not end the wait. It is handled after this time, in
#: milliseconds.
_LATE_SIGNAL = 200


class Signal:
    """An inbox that one thread waits for."""

    def __init__(self) -> None:
        self.inbox = Inbox()
        self.wait = _waiter(self.inbox, _LATE_SIGNAL)


_signals: list[Signal] = []


def block(operation: Operation) -> Any:
    """Waits for an operation in this thread. The GIL is released, and signals such as Ctrl-C are handled."""
    if operation.has_ended:
        return operation.take()
    return block_watching(lambda _inbox, _key: operation, None)


def block_watching(start: Start, watch: Watch | None) -> Any:
    """Waits in this thread for an operation that tells something before its end."""
    try:
        signal = _signals.pop()
    except IndexError:
        signal = Signal()
    # The inbox receives nothing else.
    key = 0
    operation = start(signal.inbox, key)
    try:
        operation.notify(signal.inbox, key)
        while not any(_told(signal, watch)):
            signal.wait()
    except BaseException:
        # The inbox may still receive the end: it is not used again.
        operation.cancel()
        raise
    _signals.append(signal)
    return operation.take()


def _told(signal: Signal, watch: Watch | None) -> Iterator[bool]:
    for item in signal.inbox.drain():
        if item[0] != "ended" and watch is not None:
            watch(item)
        yield item[0] == "ended"


def _waiter(inbox: Inbox, milliseconds: int | None = None) -> Callable[[], object]:
    """Waits until an inbox has something, or for this time.

    In Python code, since a thread that is ended at exit must not be in Rust code.
    """
    fileno = inbox.fileno()
    if not hasattr(select, "poll"):
        seconds = None if milliseconds is None else milliseconds / 1_000
        return lambda: select.select([fileno], [], [], seconds)
    poll = select.poll()
    poll.register(fileno, select.POLLIN)
    return lambda: poll.poll(milliseconds)


def _forked() -> None:
    """A forked child shares the sockets of its parent, and has none of its threads."""
    global _thread_home, _lock
    _thread_home = None
    _lock = threading.Lock()
    _signals.clear()
    _asyncio_homes.clear()
    _handlers.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
