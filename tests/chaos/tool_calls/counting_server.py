"""MCP server whose tools count their runs: `python -m tests.chaos.tool_calls.counting_server FOLDER PORT`.

A run appends a line to the file of the tool in FOLDER, and then waits while the file `closed` is there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp_types import ToolAnnotations

from tests.support.waiting import eventually

OUTPUT = "the run was counted"
# The file that makes the tools wait, and names of tools. A tool with SAFE declares that it may be repeated.
CLOSED, UNSAFE, SAFE, IDEMPOTENT, GUARDED = "closed", "unsafe", "safe", "idempotent", "guarded"
READ_ONLY, REPEATABLE = ToolAnnotations(read_only_hint=True), ToolAnnotations(idempotent_hint=True)


def build(folder: Path) -> MCPServer:
    """Build the server with files in `folder`."""
    server = MCPServer("counting")

    async def run(name: str) -> str:
        with (folder / name).open("a") as file:
            file.write("run\n")
        gate = folder / CLOSED
        await eventually(lambda: not gate.exists(), limit_s=120, poll_s=0.005)
        return OUTPUT

    @server.tool(name=UNSAFE)
    async def unsafe() -> str:
        """Count a run that must not be repeated."""
        return await run(UNSAFE)

    @server.tool(name=SAFE, annotations=READ_ONLY)
    async def safe() -> str:
        """Count a run that changes nothing."""
        return await run(SAFE)

    @server.tool(name=IDEMPOTENT, annotations=REPEATABLE)
    async def idempotent() -> str:
        """Count a run that may be repeated."""
        return await run(IDEMPOTENT)

    @server.tool(name=GUARDED)
    async def guarded() -> str:
        """Count a run that needs an approval and must not be repeated."""
        return await run(GUARDED)

    return server


if __name__ == "__main__":
    build(Path(sys.argv[1])).run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
