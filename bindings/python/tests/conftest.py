"""The servers that the tests use, and a user without configuration."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
TESTS = Path(__file__).resolve().parent
INTEROP = ROOT / "target" / "interop"
NODE = str(INTEROP / "npm/node_modules/node/bin/node")
PACKAGES = INTEROP / "npm/node_modules/@modelcontextprotocol"

#: How long a test waits for what must happen, in seconds.
PATIENCE = 30


def filesystem(folder: Path) -> dict[str, Any]:
    """The reference server for files."""
    return {"command": NODE, "args": [str(PACKAGES / "server-filesystem/dist/index.js"), str(folder)]}


def everything() -> dict[str, Any]:
    """The reference server with every feature."""
    return {"command": NODE, "args": [str(PACKAGES / "server-everything/dist/index.js"), "stdio"]}


def python_sdk() -> dict[str, Any]:
    """A server on the Python SDK."""
    python = INTEROP / "pypi/venv/bin/python"
    return {"command": str(python), "args": [str(ROOT / "tests/interop/pypi/sdk_server.py")]}


def recording(recorder: Recorder | None = None) -> dict[str, Any]:
    """The server of these tests."""
    entry: dict[str, Any] = {"command": sys.executable, "args": [str(TESTS / "servers/recording.py")]}
    if recorder is not None:
        entry["env"] = {"RECORDER": recorder.address}
    return entry


class Recorder:
    """Receives what servers report."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(PATIENCE)
        host, port = self.listener.getsockname()
        self.address = f"{host}:{port}"
        self.connections: list[socket.socket] = []
        self.rest = b""

    def next(self) -> str:
        """Waits for the next report."""
        while b"\n" not in self.rest:
            readable, _, _ = select.select([self.listener, *self.connections], [], [], PATIENCE)
            assert readable, "no report"
            for ready in readable:
                if ready is self.listener:
                    self.connections.append(ready.accept()[0])
                    continue
                data = ready.recv(4096)
                if data:
                    self.rest += data
                else:
                    self.connections.remove(ready)
                    ready.close()
                    self.rest += b"gone\n"
        line, self.rest = self.rest.split(b"\n", 1)
        return line.decode()

    def until(self, start: str) -> str:
        """Waits for a report that starts so, and returns the rest of it."""
        while True:
            report = self.next()
            if report.startswith(start):
                return report[len(start) :].strip()

    def close(self) -> None:
        for connection in [self.listener, *self.connections]:
            connection.close()


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.close()


@pytest.fixture(autouse=True)
def user(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without configuration, whose state is in a temporary folder."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in list(os.environ):
        if name.startswith(("XDG_", "ANTHROPIC_", "OPENAI_")):
            monkeypatch.delenv(name)
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files."""
    (tmp_path / "one.txt").write_text("first")
    (tmp_path / "two.txt").write_text("second")
    return tmp_path


@pytest.fixture
def remote_server() -> Iterator[str]:
    """The address of a reference server over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [NODE, str(PACKAGES / "server-everything/dist/index.js"), "streamableHttp"],
        env={**os.environ, "PORT": str(port)},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stderr is not None
    assert any("listening" in line for line in server.stderr), "the server has not started"
    yield f"http://127.0.0.1:{port}/mcp"
    server.kill()
    server.communicate()


RunProgram = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_program(tmp_path: Path) -> RunProgram:
    """Runs a program with the package, and fails if it hangs."""

    def run(source: str, **environment: str) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "program.py"
        file.write_text(source)
        return subprocess.run(
            [sys.executable, str(file)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
            check=False,
        )

    return run
