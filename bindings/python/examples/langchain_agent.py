"""A LangChain agent with the tools of a host."""
# pyright: basic

import asyncio
import sys

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI

from switchboard_mcp import Host


async def main(command: str, *args: str) -> None:
    async with Host.from_servers({"files": {"command": command, "args": list(args)}}) as host:
        agent = create_agent(ChatOpenAI(model="gpt-5"), await host.langchain_tools())
        answer = await agent.ainvoke({"messages": [HumanMessage("Which folders can you read?")]})
        print(answer["messages"][-1].content)


asyncio.run(main(*sys.argv[1:]))
