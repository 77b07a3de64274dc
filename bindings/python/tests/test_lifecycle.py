"""Opening and closing: in any task and order, in loops that are gone, in threads, after a fork, at exit."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
import pytest_asyncio
import trio
from conftest import PATIENCE, ROOT, Recorder, RunProgram, recording

from switchboard_mcp import ClosedError, ForkedError, Host, SyncHost, _bridge
from switchboard_mcp._bridge import Signal

if TYPE_CHECKING:
    from switchboard_mcp._native import Operation


async def test_closed_in_another_task_and_more_than_once() -> None:
    """openai-agents #1393 and #2005: "Attempted to exit cancel scope in a different task"."""
    host = await asyncio.create_task(Host.from_servers({"recording": recording()}).open())
    assert len(await host.list_tools()) == 8
    await asyncio.gather(*(asyncio.create_task(host.close()) for _ in range(3)))
    await host.close()
    with pytest.raises(ClosedError):
        await host.list_tools()
    with pytest.raises(ClosedError):
        host.status()


async def test_a_host_that_is_not_open_says_so() -> None:
    with pytest.raises(ClosedError, match="not open"):
        await Host().list_tools()
    await Host().close()


async def test_hosts_are_closed_in_any_order() -> None:
    hosts = [await Host.from_servers({"recording": recording()}) for _ in range(4)]
    await asyncio.gather(*(host.list_tools() for host in hosts))
    random.Random(7).shuffle(hosts)
    for host in hosts:
        await asyncio.create_task(host.close())


def test_used_and_closed_in_another_loop_than_it_was_opened_in() -> None:
    host = Host.from_servers({"recording": recording()})

    @host.tool
    async def add(a: int) -> int:
        await asyncio.sleep(0)
        return a + 1

    async def opened() -> str:
        await host.open()
        return (await host.call("local/add", {"a": 1})).text

    async def used() -> str:
        return (await host.call("local/add", {"a": 2})).text

    assert asyncio.run(opened()) == "2"
    # The first loop is closed. The tool runs in the second.
    assert asyncio.run(used()) == "3"
    asyncio.run(host.close())


def test_a_loop_that_is_closed_during_a_call() -> None:
    """pyo3-async-runtimes #90: the event loop of a future is closed before it ends."""
    host = Host.from_servers({"recording": recording()})
    loop = asyncio.new_event_loop()
    loop.run_until_complete(host.open())
    call = loop.create_task(host.call("recording/hang"))
    loop.run_until_complete(asyncio.sleep(0))
    call.cancel()
    loop.run_until_complete(asyncio.gather(call, return_exceptions=True))
    loop.close()
    asyncio.run(host.close())


async def test_a_call_under_way_fails_when_the_host_is_closed(recorder: Recorder) -> None:
    host = await Host.from_servers({"recording": recording(recorder)})
    call = asyncio.create_task(host.call("recording/hang"))
    await asyncio.to_thread(recorder.until, "hangs ")
    await host.close()
    with pytest.raises(Exception, match="recording"):
        await asyncio.wait_for(call, PATIENCE)


def test_a_forgotten_host_ends_its_servers(recorder: Recorder) -> None:
    host = SyncHost.from_servers({"recording": recording(recorder)}).open()
    host.list_tools()
    recorder.until("started ")
    del host
    gc.collect()
    recorder.until("gone")


def test_many_threads() -> None:
    with SyncHost.from_servers({"recording": recording()}) as host, ThreadPoolExecutor(16) as pool:

        def pid(_: int) -> str:
            return host.call("recording/pid").text

        results = list(pool.map(pid, range(64)))
        assert set(results) == {str(host.status()[0].pid)}


def test_other_threads_run_while_one_waits(recorder: Recorder) -> None:
    with SyncHost.from_servers({"recording": recording(recorder)}) as host:
        failed: list[BaseException] = []

        def hang() -> None:
            try:
                host.call("recording/hang")
            except Exception as error:
                failed.append(error)

        thread = threading.Thread(target=hang)
        thread.start()
        recorder.until("hangs ")
    thread.join(PATIENCE)
    assert failed


def test_ctrl_c_cancels_the_call(recorder: Recorder) -> None:
    with SyncHost.from_servers({"recording": recording(recorder)}) as host:

        def interrupt() -> None:
            recorder.until("hangs ")
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            host.call("recording/hang")
        thread.join()
        recorder.until("cancelled ")
        assert host.call("recording/fail").text == "it failed"


def test_a_signal_before_the_wait_is_handled_soon() -> None:
    # Nothing ends this wait: it has to end by itself, so that Python can handle the signal.
    waiting = threading.Thread(target=Signal().wait, daemon=True)
    waiting.start()
    waiting.join(PATIENCE)
    assert not waiting.is_alive()


class EndedOperation:
    """A call that a fast server has answered before it is awaited."""

    has_ended = True

    def take(self) -> str:
        return "the result"


async def test_a_call_that_was_answered_at_once_does_not_wait_for_the_loop() -> None:
    cast("Any", _bridge.current()).yielded = time.monotonic() + PATIENCE
    others_ran = False

    def run_others() -> None:
        nonlocal others_ran
        others_ran = True

    asyncio.get_running_loop().call_soon(run_others)
    assert await _bridge.wait(cast("Operation", EndedOperation())) == "the result"
    assert not others_ran


async def test_calls_that_are_answered_at_once_let_other_tasks_run() -> None:
    other = asyncio.create_task(asyncio.sleep(0))
    began = time.monotonic()
    while not other.done():
        assert time.monotonic() - began < PATIENCE
        assert await _bridge.wait(cast("Operation", EndedOperation())) == "the result"


def test_trio(recorder: Recorder) -> None:
    cancelled: list[str] = []

    async def main() -> None:
        host = Host.from_servers({"recording": recording(recorder)})

        @host.tool
        async def add(a: int) -> int:
            await trio.lowlevel.checkpoint()
            return a + 1

        @host.tool
        def plain() -> str:
            return threading.current_thread().name

        @host.tool
        async def hang() -> None:
            try:
                await trio.sleep_forever()
            except trio.Cancelled:
                cancelled.append("hang")
                raise

        told: list[float] = []

        def tell(progress: float, total: float | None, message: str | None) -> None:
            told.append(progress)

        async with host:
            assert len(await host.list_tools("recording")) == 8
            assert (await host.call("local/add", {"a": 1})).text == "2"
            assert "main" not in (await host.call("local/plain")).text.lower()
            await host.call("recording/progress", on_progress=tell)
            with trio.move_on_after(0.2) as scope:
                await host.call("local/hang")
            assert scope.cancelled_caught
            async with trio.open_nursery() as nursery:
                nursery.start_soon(host.call, "recording/hang")
                number = await trio.to_thread.run_sync(recorder.until, "hangs ")
                nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert await trio.to_thread.run_sync(recorder.until, "cancelled ") == number
            async with trio.open_nursery() as nursery:
                for _ in range(16):
                    nursery.start_soon(host.call, "recording/pid")
            # Closed in another task than it was opened in.
            async with trio.open_nursery() as nursery:
                nursery.start_soon(host.close)
        assert told == [1.0, 2.0, 3.0]

    trio.run(main)
    assert cancelled == ["hang"]


@pytest_asyncio.fixture
async def fixture_host() -> AsyncIterator[Host]:
    async with Host.from_servers({"recording": recording()}) as host:
        yield host


@pytest.mark.parametrize("number", range(2))
async def test_an_asynchronous_fixture(fixture_host: Host, number: int) -> None:
    assert len(await fixture_host.list_tools()) == 8


def in_child(connection: int, host: SyncHost) -> None:
    """What a forked child finds: the parent's host is refused, a new one works."""
    found: list[str] = []
    for use in (host.list_tools, host.status, host.close):
        try:
            use()
            found.append("no error")
        except ForkedError as error:
            found.append(error.code)
    with SyncHost.from_servers({"recording": recording()}) as own:
        found.append(own.call("recording/fail").text)
    os.write(connection, ",".join(found).encode())


def test_after_a_fork_the_parents_host_is_refused_and_a_new_one_works() -> None:
    with SyncHost.from_servers({"recording": recording()}) as host:
        pid = host.call("recording/pid").text
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                in_child(writer, host)
            finally:
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answers:
            assert answers.read() == "forked,forked,forked,it failed"
        os.waitpid(child, 0)
        assert host.call("recording/pid").text == pid


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_worker_that_exits_does_not_disturb_the_parent() -> None:
    with SyncHost.from_servers({"recording": recording()}) as host:
        pid = host.call("recording/pid").text
        worker = multiprocessing.get_context("fork").Process(target=gc.collect)
        worker.start()
        worker.join(PATIENCE)
        assert worker.exitcode == 0
        assert host.call("recording/pid").text == pid


FORKS_AND_EXITS = """
import os, sys
from switchboard_mcp import SyncHost
host = SyncHost.from_servers({servers!r}).open()
pid = host.call("recording/pid").text
child = os.fork()
if child == 0:
    del host
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert host.call("recording/pid").text == pid
host.close()
print("done")
"""


def test_a_forked_child_that_drops_the_host_does_not_disturb_the_parent(run_program: RunProgram) -> None:
    ended = run_program(FORKS_AND_EXITS.format(servers={"recording": recording()}))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")


EXITS = {
    "plain": """
from switchboard_mcp import SyncHost
host = SyncHost.from_servers({servers!r}).open()
@host.tool
def add() -> None: ...
print(len(host.list_tools()))
""",
    "event loop": """
import asyncio
from switchboard_mcp import Host
async def main():
    global host
    host = await Host.from_servers({servers!r})
    @host.tool
    async def add() -> None: ...
    print(len(await host.list_tools()))
asyncio.run(main())
""",
    "daemon thread in a call": """
import threading
from switchboard_mcp import SyncHost
host = SyncHost.from_servers({servers!r}).open()
@host.tool
def add() -> None: ...
print(len(host.list_tools()))
begun = threading.Event()
def hang():
    begun.set()
    host.call("recording/hang")
threading.Thread(target=hang, daemon=True).start()
begun.wait()
""",
}


@pytest.mark.parametrize("kind", EXITS)
def test_exit_with_an_open_host(kind: str, recorder: Recorder, run_program: RunProgram) -> None:
    ended = run_program(EXITS[kind].format(servers={"recording": recording(recorder)}))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "9\n", "")
    recorder.until("gone")


def test_servers_end_with_a_killed_interpreter(recorder: Recorder, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    servers = {"recording": recording(recorder)}
    file.write_text(
        f"""
import sys
from switchboard_mcp import SyncHost
host = SyncHost.from_servers({servers!r}).open()
host.list_tools()
print("ready", flush=True)
sys.stdin.read()
"""
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, str(file)]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        pid = int(recorder.until("started "))
        program.kill()
        program.wait(PATIENCE)
    recorder.until("gone")
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline, "the server is still there"
        os.sched_yield()


def test_the_program_comes_along() -> None:
    command = [sys.executable, "-m", "switchboard_mcp", "--version"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "bindings/python/python")}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("switchboard ")
