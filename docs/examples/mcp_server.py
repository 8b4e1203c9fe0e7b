"""Example MCP server with the official SDK, for `bin/serve --demo-tools`. The demo model calls get_weather best as the last tool."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("demo")
read_only = ToolAnnotations(read_only_hint=True)
# Names of invented files. The program touches no file of the machine.
files = {"notes.txt", "plan.txt"}


@server.tool(annotations=read_only)
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool()
def delete_file(path: str) -> str:
    """Delete a file."""
    if path not in files:
        return f"There is no file {path}."
    files.remove(path)
    return "done"


@server.tool(annotations=read_only)
def get_weather(city: str) -> str:
    """Get the current weather in a given location."""
    return f'{{"weather": "sunny", "temperature": {10 + len(city)}}}'


if __name__ == "__main__":
    server.run("stdio")
