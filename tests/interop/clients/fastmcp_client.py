"""fastmcp's client against a server of ours, behind a gateway.

    python fastmcp_client.py http URL TOKEN
    python fastmcp_client.py stdio PROGRAM [ARGUMENT...]

Prints one line of JSON with what it saw. Names of tools and prompts begin with INTEROP_PREFIX.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport

PREFIX = os.environ.get("INTEROP_PREFIX", "")


async def answer(message, _response_type, _params, _context):
    return {"username": "ada", "email": message}


async def main(kind: str, rest: list[str]) -> None:
    if kind == "http":
        transport = StreamableHttpTransport(rest[0], headers={"Authorization": f"Bearer {rest[1]}"})
    else:
        transport = StdioTransport(command=rest[0], args=rest[1:], env=dict(os.environ))
    seen = {"progress": []}

    async def progressed(progress, _total, _message):
        seen["progress"].append(progress)

    async with Client(transport, elicitation_handler=answer) as client:

        async def call(name, arguments=None, **options):
            return (await client.call_tool(PREFIX + name, arguments or {}, **options)).content[0].text

        names = [tool.name for tool in await client.list_tools()]
        seen["tools"] = len([name for name in names if name.startswith(PREFIX)])
        seen["text"] = await call("test_simple_text")
        seen["resource"] = (await client.read_resource("test://static-text"))[0].text
        prompt = await client.get_prompt(PREFIX + "test_simple_prompt")
        seen["prompt"] = prompt.messages[0].content.text
        await call("test_tool_with_progress", progress_handler=progressed)
        seen["asked"] = await call("test_elicitation", {"message": "Who?"})
    print(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
