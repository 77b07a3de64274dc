"""The program `switchboard`, which the package brings along."""

from __future__ import annotations

import os
import sys
from pathlib import Path

#: Names another program than the package's own, as in a source tree.
VARIABLE = "SWITCHBOARD_PROGRAM"


def find() -> Path | None:
    """The program, which also supervises servers. `None` in a source tree without the variable."""
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named)
    name = "switchboard.exe" if sys.platform == "win32" else "switchboard"
    program = Path(__file__).parent / "_bin" / name
    return program if program.is_file() else None


def main() -> int:
    """Runs the program in place of this one."""
    program = find()
    if program is None:
        print(f"switchboard-mcp: the program is missing; set {VARIABLE}", file=sys.stderr)
        return 1
    command = [str(program), *sys.argv[1:]]
    if sys.platform == "win32":
        import subprocess

        return subprocess.run(command, check=False).returncode
    os.execv(program, command)
