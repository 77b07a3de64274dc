"""The places where programs run a host: uvloop, anyio, FastAPI, pytest-asyncio and notebooks."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
import pytest_asyncio
from conftest import PATIENCE, Recorder, recording
from fastapi import FastAPI, Request
from fastapi.testclient import TestClient
from jupyter_client import manager as jupyter

from switchboard_mcp import Host, SyncHost


def test_uvloop(recorder: Recorder) -> None:
    import uvloop

    async def main() -> None:
        assert type(asyncio.get_running_loop()).__module__.startswith("uvloop")
        host = Host.from_servers({"recording": recording(recorder)})

        @host.tool
        async def add(a: int) -> int:
            await asyncio.sleep(0)
            return a + 1

        @host.tool
        def plain() -> str:
            return "in a thread"

        async with host:
            assert (await host.call("local/add", {"a": 1})).text == "2"
            assert (await host.call("local/plain")).text == "in a thread"
            pids = await asyncio.gather(*(host.call("recording/pid") for _ in range(16)))
            assert len({result.text for result in pids}) == 1
            call = asyncio.create_task(host.call("recording/hang"))
            number = await asyncio.to_thread(recorder.until, "hangs ")
            call.cancel()
            assert await asyncio.to_thread(recorder.until, "cancelled ") == number
            await asyncio.create_task(host.close())

    uvloop.run(main())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_anyio(backend: str, recorder: Recorder) -> None:
    async def main() -> None:
        async with Host.from_servers({"recording": recording(recorder)}) as host:
            async with anyio.create_task_group() as group:
                for _ in range(4):
                    group.start_soon(host.call, "recording/pid")
            number = ""
            async with anyio.create_task_group() as group:
                group.start_soon(host.call, "recording/hang")
                number = await anyio.to_thread.run_sync(recorder.until, "hangs ")
                group.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                assert await anyio.to_thread.run_sync(recorder.until, "cancelled ") == number
            with pytest.raises(TimeoutError), anyio.fail_after(0.1):
                await host.call("recording/hang")
            # Closed in another task than it was opened in.
            async with anyio.create_task_group() as group:
                group.start_soon(host.close)

    anyio.run(main, backend=backend)
    recorder.until("gone")


def application(recorder: Recorder) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        async with Host.from_servers({"recording": recording(recorder)}) as host:
            app.state.host = host
            yield

    app = FastAPI(lifespan=lifespan)

    async def pid(request: Request) -> str:
        host: Host = request.app.state.host
        return (await host.call("recording/pid")).text

    app.add_api_route("/pid", pid)
    return app


def test_a_fastapi_lifespan(recorder: Recorder) -> None:
    # Twice: each start of the application has an event loop of its own.
    app = application(recorder)
    for _ in range(2):
        with TestClient(app) as client:
            started = recorder.until("started ")
            answers = {client.get("/pid").json() for _ in range(3)}
            assert answers == {started}
        recorder.until("gone")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_host() -> AsyncIterator[tuple[Host, asyncio.Task[Any] | None]]:
    """pytest-asyncio runs what follows `yield` in another task."""
    opened_in = asyncio.current_task()
    async with Host.from_servers({"recording": recording()}) as host:
        yield host, opened_in
    assert asyncio.current_task() is not opened_in


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("number", range(2))
async def test_a_fixture_of_a_module(shared_host: tuple[Host, asyncio.Task[Any] | None], number: int) -> None:
    host, opened_in = shared_host
    assert asyncio.current_task() is not opened_in
    assert (await host.call("recording/echo", {"number": number})).structured == {"number": number}


def test_a_synchronous_host_in_a_running_event_loop() -> None:
    async def main() -> str:
        # As a plain library function does that does not know of the loop.
        with SyncHost.from_servers({"recording": recording()}) as host:
            return host.call("recording/fail").text

    assert asyncio.run(main()) == "it failed"


Run = Callable[[str], str]


@pytest.fixture
def notebook() -> Iterator[Run]:
    """Runs cells in a Jupyter kernel, and returns what they print."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    kernel: Any
    client: Any
    kernel, client = jupyter.start_new_kernel(kernel_name="python3", env=environment)

    def run(cell: str) -> str:
        printed: list[str] = []

        def hear(message: dict[str, Any]) -> None:
            content = message["content"]
            if message["msg_type"] == "stream":
                printed.append(content["text"])
            elif message["msg_type"] == "error":
                printed.append(f"{content['ename']}: {content['evalue']}")

        client.execute_interactive(cell, timeout=PATIENCE, output_hook=hear)
        return "".join(printed)

    yield run
    client.stop_channels()
    kernel.shutdown_kernel(now=True)


def test_a_notebook(notebook: Run, recorder: Recorder) -> None:
    cell = f"""
from switchboard_mcp import Host
host = await Host.from_servers({ {"recording": recording(recorder)} !r})
@host.tool
async def add(a: int) -> int:
    return a + 1
print((await host.call("recording/pid")).text, (await host.call("local/add", {{"a": 1}})).text)
"""
    assert notebook(cell) == f"{recorder.until('started ')} 2\n"
    # Run again, as one does in a notebook: the first host is dropped, and its server ends.
    awaited = {f"started {notebook(cell).split()[0]}", "gone"}
    while awaited:
        awaited.discard(recorder.next())
    assert notebook("print(len(await host.list_tools('recording')))\nawait host.close()") == "8\n"
    recorder.until("gone")
    assert notebook("await host.list_tools()").startswith("ClosedError: ")
