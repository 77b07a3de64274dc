"""What `import switchboard_mcp` costs."""

from __future__ import annotations

import dataclasses
import typing

from conftest import RunProgram

import switchboard_mcp
from switchboard_mcp import _records  # pyright: ignore[reportPrivateUsage]

#: Modules of the standard library that take milliseconds, and that not every program needs.
HEAVY = (
    "asyncio",
    "ast",
    "concurrent.futures",
    "ctypes",
    "dataclasses",
    "datetime",
    "email",
    "http",
    "importlib.metadata",
    "inspect",
    "logging",
    "multiprocessing",
    "pathlib",
    "pydantic",
    "selectors",
    "socket",
    "ssl",
    "subprocess",
    "tempfile",
    "trio",
    "typing_extensions",
    "urllib",
    "uuid",
    "webbrowser",
)

IMPORTS = """
import sys
before = set(sys.modules)
import switchboard_mcp
print(*sorted(set(sys.modules) - before))
"""


def test_no_heavy_module_is_imported(run_program: RunProgram) -> None:
    ended = run_program(IMPORTS)
    imported = ended.stdout.split()
    assert "switchboard_mcp._native" in imported
    heavy = [name for name in imported if any(name == other or name.startswith(f"{other}.") for other in HEAVY)]
    assert heavy == []


def test_what_is_imported_on_first_use_is_public() -> None:
    for name in switchboard_mcp.__all__:
        assert getattr(switchboard_mcp, name) is not None
    assert dataclasses.is_dataclass(switchboard_mcp.Usage)
    assert switchboard_mcp.Usage(input=1, output=2).total == 3
    cost = '{"usd": 0.5, "as_of": "2026-10-16"}'
    usage = _records.usage(f'{{"input": 1, "output": 2, "cost": {cost}}}')
    assert usage.cost == switchboard_mcp.Cost(0.5, "2026-10-16")
    assert _records.usage('{"input": 1}').cost is None
    assert not hasattr(switchboard_mcp, "missing")


def test_types_can_be_resolved_at_run_time() -> None:
    for kind in (switchboard_mcp.HookCall, switchboard_mcp.HookAnswer, switchboard_mcp.ApprovalQuestion):
        assert typing.get_type_hints(kind)
