"""The program `switchboard`, which the package brings along."""

from __future__ import annotations

import os
import sys

#: Names another program than the package's own, as in a source tree.
VARIABLE = "SWITCHBOARD_PROGRAM"


def find() -> str | None:
    """The program, which also supervises servers. `None` in a source tree without the variable."""
    named = os.environ.get(VARIABLE)
    if named:
        return named
    name = "switchboard.exe" if sys.platform == "win32" else "switchboard"
    program = os.path.join(os.path.dirname(__file__), "_bin", name)
    return program if os.path.isfile(program) else None


def main() -> int:
    """Runs the program in place of this one."""
    program = find()
    if program is None:
        print(f"switchboard-mcp: the program is missing; set {VARIABLE}", file=sys.stderr)
        return 1
    command = [program, *sys.argv[1:]]
    if sys.platform == "win32":
        import subprocess

        return subprocess.run(command, check=False).returncode
    os.execv(program, command)
