"""The Python SDK's client against a server of ours: lists, calls, follows progress, cancels, answers a question.

    python python_client.py legacy|auto http URL TOKEN
    python python_client.py legacy|auto stdio PROGRAM [ARGUMENT...]

Prints one line of JSON with what it saw, as typescript_client.mjs does. Behind a gateway, names of tools and prompts
begin with INTEROP_PREFIX.
"""

import json
import os
import sys

import anyio
import mcp_types as types
from mcp import StdioServerParameters, stdio_client
from mcp.client.client import Client
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

PREFIX = os.environ.get("INTEROP_PREFIX", "")


async def answer(_context, params):
    return types.ElicitResult(action="accept", content={"username": "ada", "email": params.message})


async def main(mode: str, kind: str, rest: list[str]) -> None:
    if kind == "http":
        http = create_mcp_http_client(headers={"Authorization": f"Bearer {rest[1]}"})
        transport = streamable_http_client(rest[0], http_client=http)
    else:
        transport = stdio_client(
            StdioServerParameters(command=rest[0], args=rest[1:], env=dict(os.environ))
        )
    seen = {}
    async with Client(transport, mode=mode, elicitation_callback=answer) as client:

        async def call(name, arguments=None, **options):
            return (await client.call_tool(PREFIX + name, arguments or {}, **options)).content[0].text

        seen["version"] = client.protocol_version
        seen["tools"] = len((await client.list_tools()).tools)
        seen["text"] = await call("test_simple_text")
        seen["resource"] = (await client.read_resource("test://static-text")).contents[0].text
        seen["prompt"] = (await client.get_prompt(PREFIX + "test_simple_prompt")).messages[0].content.text

        seen["progress"] = []

        async def progressed(progress, _total, _message):
            seen["progress"].append(progress)

        await call("test_tool_with_progress", progress_callback=progressed)
        seen["asked"] = await call("test_elicitation", {"message": "Who?"})

        with anyio.CancelScope() as scope:

            async def give_up(*_):
                scope.cancel()

            await call("test_wait", progress_callback=give_up)
        seen["cancelled"] = scope.cancelled_caught
        # Answered only when no call waits at the server any longer.
        seen["ended"] = await call("test_all_ended")

        seen["order"] = []

        async def one(name, word):
            await call(name)
            seen["order"].append(word)

        async with anyio.create_task_group() as group:
            group.start_soon(one, "test_tool_with_progress", "slow")
            group.start_soon(one, "test_simple_text", "quick")
    print(json.dumps(seen))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
