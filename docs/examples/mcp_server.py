"""Example MCP server with the official SDK: `bin/serve --demo-tools` starts the program and uses stdin and stdout."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("demo")
read_only = ToolAnnotations(read_only_hint=True)
notes: list[str] = []


@server.tool(annotations=read_only)
def get_weather(city: str) -> str:
    """Get current weather for a city."""
    return f'{{"weather": "sunny", "temperature": {10 + len(city)}}}'


@server.tool(annotations=read_only)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def remember(note: str) -> str:
    """Remember a note until the server ends."""
    notes.append(note)
    return f"Remembered {len(notes)} notes."


if __name__ == "__main__":
    server.run("stdio")
