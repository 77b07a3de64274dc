"""Reads a file with a server, and lists what else the server can do."""

import asyncio
import sys

from switchboard_mcp import Host


async def main(command: str, *args: str) -> None:
    async with Host.from_servers({"files": {"command": command, "args": list(args)}}) as host:
        for tool in await host.list_tools():
            print(tool.name)
        print(await host.call("files/list_allowed_directories"))


if __name__ == "__main__":
    # For example: python quickstart.py npx -y @modelcontextprotocol/server-filesystem .
    asyncio.run(main(*sys.argv[1:]))
