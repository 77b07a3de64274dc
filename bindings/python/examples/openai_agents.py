"""An agent of openai-agents with the tools of a host."""

import asyncio
import json
import sys
from typing import Any

from agents import Agent, FunctionTool, Runner
from agents.tool_context import ToolContext

from switchboard_mcp import Host, Tool


def function_tool(host: Host, tool: Tool) -> FunctionTool:
    async def invoke(context: ToolContext[Any], arguments: str) -> str:
        return (await host.call(tool.name, json.loads(arguments))).text

    return FunctionTool(tool.name, tool.description, tool.input_schema, invoke, strict_json_schema=False)


async def main(command: str, *args: str) -> None:
    async with Host.from_servers({"files": {"command": command, "args": list(args)}}) as host:
        agent = Agent[None]("files", tools=[function_tool(host, tool) for tool in await host.list_tools()])
        print((await Runner.run(agent, "Which folders can you read?")).final_output)


asyncio.run(main(*sys.argv[1:]))
