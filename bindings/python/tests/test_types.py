"""Type checkers, and the stubs of the native module."""

from __future__ import annotations

import os
import subprocess
import sys

from conftest import ROOT

PACKAGE = ROOT / "bindings/python"
CHECKED = ["python/switchboard_mcp", "tests", "examples"]


def check(*command: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(PACKAGE / "python"),
        "MYPYPATH": "python",
        # The newest version is not asked for.
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
    }
    ran = subprocess.run(command, cwd=PACKAGE, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_mypy() -> None:
    # The libraries of the examples are large, so what mypy learnt about them is kept.
    cache = ROOT / "target/interop/python/mypy"
    check(sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(cache), *CHECKED)


def test_pyright() -> None:
    check(sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *CHECKED)


def test_stubs_match_the_native_module() -> None:
    check(sys.executable, "-m", "mypy.stubtest", "switchboard_mcp._native")
