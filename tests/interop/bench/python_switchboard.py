"""Switchboard's Python package against a stdio server: `python python_switchboard.py CALLS SERVER [ARGUMENT...]`.

Prints one line of JSON, as the other clients of this folder do, and two figures more:
  import      the import of the package
  memory      the peak of this process, in bytes
"""

import asyncio
import json
import os
import resource
import sys
from statistics import median
from time import perf_counter_ns as now

importing = now()
from switchboard_mcp import Host  # noqa: E402

imported = now() - importing

IN_FLIGHT = 64


async def main(count: int, command: str, arguments: list[str]) -> None:
    connecting = now()
    entry = {"command": command, "args": arguments, "env": dict(os.environ)}
    async with Host.from_servers({"echo": entry}) as host:
        await host.list_tools("echo")
        connect = now() - connecting

        async def call() -> None:
            await host.call("echo/echo_0", {"text": "hello"})

        for _ in range(min(count, 200)):
            await call()

        times = []
        for _ in range(count):
            start = now()
            await call()
            times.append(now() - start)
        sequential = median(times)

        started = 0

        async def worker() -> None:
            nonlocal started
            while started < count:
                started += 1
                await call()

        start = now()
        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
        concurrent = (now() - start) / count

        start = now()
        tools = await host.list_tools()
        listed = now() - start

    print(
        json.dumps(
            {
                "client": "switchboard-python",
                "import": imported,
                "connect": connect,
                "sequential": sequential,
                "concurrent": concurrent,
                "list": listed,
                "tools": len(tools),
                "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            }
        )
    )


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
