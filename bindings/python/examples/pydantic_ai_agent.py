"""An agent of pydantic-ai with the tools of a host."""

import asyncio
import sys
from typing import Any

import pydantic_ai

from switchboard_mcp import Host, Tool


def as_tool(host: Host, tool: Tool) -> pydantic_ai.Tool[object]:
    async def call(**arguments: Any) -> str:
        return (await host.call(tool.name, arguments)).text

    return pydantic_ai.Tool[object].from_schema(call, tool.name, tool.description, tool.input_schema)


async def main(command: str, *args: str) -> None:
    async with Host.from_servers({"files": {"command": command, "args": list(args)}}) as host:
        tools = [as_tool(host, tool) for tool in await host.list_tools()]
        agent = pydantic_ai.Agent("openai-chat:gpt-5", tools=tools)
        print((await agent.run("Which folders can you read?")).output)


asyncio.run(main(*sys.argv[1:]))
