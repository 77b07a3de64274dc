"""A server on fastmcp: tools, a resource, a template, a prompt, progress, logging and elicitation.

    python fastmcp_server.py              over stdio
    python fastmcp_server.py --http PORT  over Streamable HTTP, at http://127.0.0.1:PORT/mcp
"""

import sys

from fastmcp import Context, FastMCP

server = FastMCP("fastmcp-server", instructions="A server for tests.")


@server.tool
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool
async def count(to: int, context: Context) -> str:
    """Counts, tells how far it is, and logs its end."""
    for step in range(1, to + 1):
        await context.report_progress(step, to)
    await context.info("counted")
    return f"counted to {to}"


@server.tool
async def ask(context: Context) -> str:
    """Asks the user for a name."""
    answer = await context.elicit("Your name?", response_type=str)
    return f"{answer.action}: {getattr(answer, 'data', None)}"


@server.tool
def fail() -> str:
    """Goes wrong."""
    raise ValueError("this tool always goes wrong")


@server.resource("fastmcp://greeting")
def greeting() -> str:
    """A greeting."""
    return "Hello"


@server.resource("fastmcp://greeting/{name}")
def greeting_for(name: str) -> str:
    """A greeting for somebody."""
    return f"Hello, {name}"


@server.prompt
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Greet {name}"


if __name__ == "__main__":
    match sys.argv[1:]:
        case []:
            server.run(show_banner=False)
        case ["--http", port]:
            server.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False)
        case _:
            sys.exit(__doc__)
