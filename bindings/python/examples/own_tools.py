"""A function of this program as a tool."""

import asyncio

from switchboard_mcp import Host

host = Host()


@host.tool
async def add(a: int, b: int = 1) -> int:
    """Adds two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


async def main() -> None:
    async with host:
        print(await host.openai_tools())
        print(await host.call("local/add", {"a": 2, "b": 3}))


asyncio.run(main())
