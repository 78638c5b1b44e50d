"""An ordinary MCP server, made with the SDK: by stdio, or over HTTP on the socket that it is given."""

import sys

import uvicorn
from mcp.server import MCPServer

server = MCPServer("good")


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("as asked")


@server.resource("docs://readme")
def readme() -> str:
    """What there is to know."""
    return "read me"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvicorn.run(server.streamable_http_app(), fd=int(sys.argv[1]))
    else:
        server.run()
