"""The programs of the documentation run as they are, and its table of errors is complete."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from conftest import NODE, PACKAGES, ROOT, RunProgram
from scripted import ScriptedModel, call

from switchboard_mcp import _errors, _native

PAGE = (ROOT / "docs/python.md").read_text()
README = (ROOT / "bindings/python/README.md").read_text()
PROGRAMS = re.findall(r"```python\n(.*?)```", PAGE + README, re.DOTALL)

#: Runs a program with `await` outside of functions, as a notebook does.
RUN = """
import ast, asyncio, inspect, os, sys
os.chdir({folder!r})
code = compile({source!r}, "docs/python.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
result = eval(code, {{"__name__": "__main__"}})
if inspect.iscoroutine(result):
    asyncio.run(result)
"""


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_programs(number: int, folder: Path, run_program: RunProgram) -> None:
    # In place of npx, which would need a network: the same server.
    npx = folder / "npx"
    npx.write_text(f'#!/bin/sh\nexec {NODE} {PACKAGES}/server-filesystem/dist/index.js "$3"\n')
    npx.chmod(0o755)
    source = PROGRAMS[number]
    calls = "filesystem" in source and "Agent" in source
    answers = [call("mcp__filesystem__list_allowed_directories")] if calls else []
    with ScriptedModel(*answers, "I can read one folder.") as model:
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        ended = run_program(RUN.format(folder=str(folder), source=source), PATH=path, **model.environment())
    assert (ended.returncode, ended.stderr) == (0, "")
    if calls:
        assert ended.stdout == "14 tools\nI can read one folder.\n"
        assert str(folder) in str(model.requests[1])
    elif "list_directory" in source:
        assert "[FILE] one.txt" in ended.stdout
    elif "on_after_call" in source:
        assert ended.stdout == "mcp__local__run {'command': 'ls'}\n"
    elif "convert" in source:
        assert ended.stdout == "3000.0\n"


def test_every_error_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
    documented = {(name, code, meaning) for name, code, meaning in rows}
    meanings = dict(_native.CODES)
    assert documented == {(error.__name__, code, meanings[code]) for code, error in _errors.BY_CODE.items()}
