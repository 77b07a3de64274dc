"""The Python SDK's client against a stdio server: `python python_client.py CALLS SERVER [ARGUMENT...]`.

Prints one line of JSON with times in nanoseconds, as the other clients of this folder do:
  connect     from start to a finished handshake
  sequential  CALLS calls, one after the other: the median
  concurrent  CALLS calls, 64 in flight, per call
  list        one list of all tools, and how many there were
  memory      the peak of this process, in bytes
"""

import json
import os
import resource
import sys
from statistics import median
from time import perf_counter_ns as now

import anyio
from mcp import ClientSession, StdioServerParameters, stdio_client

IN_FLIGHT = 64


async def main(count: int, command: str, arguments: list[str]) -> None:
    connecting = now()
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        connect = now() - connecting

        async def call() -> None:
            await session.call_tool("echo_0", {"text": "hello"})

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
        async with anyio.create_task_group() as group:
            for _ in range(IN_FLIGHT):
                group.start_soon(worker)
        concurrent = (now() - start) / count

        start = now()
        tools = (await session.list_tools()).tools
        listed = now() - start

    print(
        json.dumps(
            {
                "client": "python",
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
    anyio.run(main, int(sys.argv[1]), sys.argv[2], sys.argv[3:])
