"""A server on the Python SDK, over stdio: tools, a resource, a prompt."""

from mcp.server import MCPServer

server = MCPServer("python-sdk-server", instructions="A server for tests.")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.resource("sdk://greeting")
def greeting() -> str:
    """A greeting."""
    return "Hello"


@server.prompt()
def greet(name: str) -> str:
    """Greets somebody."""
    return f"Greet {name}"


if __name__ == "__main__":
    server.run("stdio")
