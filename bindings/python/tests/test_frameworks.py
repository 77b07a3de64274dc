"""The host in other frameworks, and the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from conftest import PATIENCE, ROOT, filesystem, recording
from langchain_core.tools import ToolException
from scripted import ScriptedModel, call
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from switchboard_mcp import CallResult, Host, SyncHost

EXAMPLES = ROOT / "bindings/python/examples"


async def test_the_lifespan_of_a_web_application() -> None:
    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[dict[str, Host]]:
        async with Host.from_servers({"recording": recording()}) as host:
            yield {"host": host}

    async def answer(request: Request) -> PlainTextResponse:
        return PlainTextResponse((await request.state.host.call("recording/fail")).text)

    app = Starlette(routes=[Route("/", answer)], lifespan=lifespan)
    async with app.router.lifespan_context(app) as state:
        # A real server copies the state of the lifespan into every request.
        async def with_state(scope: dict[str, object], receive: object, send: object) -> None:
            await app({**scope, "state": dict(state or {})}, receive, send)  # type: ignore[arg-type]  # pyright: ignore

        transport = httpx.ASGITransport(with_state)  # type: ignore[arg-type]  # pyright: ignore
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            assert [(await client.get("/")).text for _ in range(3)] == ["it failed"] * 3


async def test_langchain_tools(folder: Path) -> None:
    path = str(folder / "one.txt")
    async with Host.from_servers({"files": filesystem(folder)}) as host:
        tools = {tool.name: tool for tool in await host.langchain_tools()}
        read = tools["mcp__files__read_text_file"]
        assert await read.ainvoke({"path": path}) == "first"
        assert read.invoke({"path": path}) == "first"
        message = await read.ainvoke({"type": "tool_call", "id": "1", "name": read.name, "args": {"path": path}})
        assert isinstance(message.artifact, CallResult)
        with pytest.raises(ToolException):
            await read.ainvoke({"path": "/not/allowed"})


def test_langchain_tools_without_an_event_loop(folder: Path) -> None:
    with SyncHost.from_servers({"files": filesystem(folder)}) as host:
        tools = {tool.tool: name for tool, name in zip(host.list_tools(), host.langchain_tools(), strict=True)}
        assert tools["read_text_file"].invoke({"path": str(folder / "one.txt")}) == "first"


async def test_a_blocking_call_in_the_loop_of_own_tools_is_refused() -> None:
    async with Host() as host:

        @host.tool
        async def own() -> None: ...

        (tool,) = await host.langchain_tools()
        with pytest.raises(RuntimeError, match="ainvoke"):
            tool.invoke({})


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_the_examples(name: str, folder: Path) -> None:
    entry = filesystem(folder)
    answers = (call("mcp__files__list_allowed_directories"), "I can read one folder.")
    with ScriptedModel(*answers) as model:
        ended = subprocess.run(
            [sys.executable, str(EXAMPLES / name), entry["command"], *entry["args"]],
            cwd=folder,
            env={
                **os.environ,
                **model.environment(),
                "PYTHONPATH": os.pathsep.join(sys.path),
                "OPENAI_AGENTS_DISABLE_TRACING": "1",
            },
            capture_output=True,
            text=True,
            timeout=PATIENCE * 4,
            check=False,
        )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    if name == "own_tools.py":
        assert ended.stdout.endswith("\n5\n")
    elif name == "quickstart.py":
        assert str(folder) in ended.stdout
    else:
        assert ended.stdout.endswith("I can read one folder.\n")
        assert str(folder) in str(model.requests[1])
