"""MCP server of the tests, made with the official SDK: `python -m tests.support.mcp.program stdio|http|sse [PORT]`."""

from __future__ import annotations

import asyncio
import sys
import time
from base64 import b64decode
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Context, Image
from mcp_types import (
    Annotations,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel

from tests.support.waiting import eventually

server = MCPServer("tests")
# PNG of one pixel.
RED_PIXEL = b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
READ_ONLY = ToolAnnotations(read_only_hint=True)


@server.tool(annotations=READ_ONLY)
def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


@server.tool(annotations=READ_ONLY)
def weather(city: str) -> str:
    """Get the weather of a city."""
    return f"It is warm in {city}."


@server.tool()
def delete(path: str) -> str:
    """Delete a file of the server."""
    return f"deleted {path}"


@server.tool()
def fail(reason: str) -> str:
    """Fail."""
    raise ValueError(reason)


@server.tool()
async def wait(entered: str, gate: str) -> str:
    """Create the file `entered`, and wait for the file `gate`."""
    Path(entered).touch()  # noqa: ASYNC240 - the files are the subject
    await eventually(Path(gate).exists)
    return "done"


@server.tool()
async def hold(folder: str) -> str:
    """Create the file `entered` in `folder`, wait for ever, and create the file `cancelled` at a cancellation."""
    Path(folder, "entered").touch()  # noqa: ASYNC240 - the files are the subject
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        Path(folder, "cancelled").touch()  # noqa: ASYNC240
        raise
    return "done"


@server.tool()
async def stamp(path: str, gate: str) -> str:
    """Append the time to the file `path`, wait for the file `gate`, and append the time again."""
    for waits in (True, False):
        with Path(path).open("a") as file:  # noqa: ASYNC230 - a short write
            file.write(f"{time.time()}\n")
        if waits:
            await eventually(Path(gate).exists, limit_s=60, poll_s=0.002)
    return "stamped"


@server.tool()
async def work(steps: int, seconds: float, ctx: Context) -> str:
    """Work in `steps` steps of `seconds` seconds, and report the progress after each."""
    for step in range(steps):
        await asyncio.sleep(seconds)
        await ctx.report_progress(step + 1, steps)
    return "done"


@server.tool()
def count(path: str) -> str:
    """Append a line to the file `path`."""
    with Path(path).open("a") as file:
        file.write("run\n")
    return "counted"


@server.tool(annotations=READ_ONLY)
def picture() -> Image:
    """Return a picture."""
    return Image(data=RED_PIXEL, format="png")


@server.tool(annotations=READ_ONLY)
def structured(name: str) -> dict[str, str]:
    """Return a structured value."""
    return {"name": name}


@server.tool(annotations=READ_ONLY)
def long(size: int) -> str:
    """Return a long text."""
    return "x" * size


@server.tool(annotations=READ_ONLY)
def sound() -> Audio:
    """Return a sound."""
    return Audio(data=b"RIFF", format="wav")


@server.tool(annotations=READ_ONLY)
def document(binary: bool) -> EmbeddedResource:
    """Return a document as an embedded resource."""
    if binary:
        content = BlobResourceContents(uri="demo://blob", mime_type="application/gzip", blob="H4sI")
        return EmbeddedResource(type="resource", resource=content)
    return EmbeddedResource(
        type="resource", resource=TextResourceContents(uri="demo://text", mime_type="text/plain", text="Buy milk.")
    )


@server.tool(annotations=READ_ONLY)
def link() -> ResourceLink:
    """Return a link to a resource."""
    return ResourceLink(type="resource_link", uri="demo://report", name="report", description="Sales of May")


@server.tool(annotations=READ_ONLY)
def annotated() -> CallToolResult:
    """Return a text and a picture with annotations."""
    everyone = Annotations(audience=["user", "assistant"], priority=1.0)
    picture = ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png", annotations=everyone)
    return CallToolResult(content=[TextContent(type="text", text="Failed", annotations=everyone), picture])


@server.tool(annotations=READ_ONLY)
def both() -> CallToolResult:
    """Return a text for people beside a structured value."""
    return CallToolResult(content=[TextContent(type="text", text="two")], structured_content={"values": [1, 2]})


class Consent(BaseModel):
    """Input of the user that `ask` requests."""

    agreed: bool


@server.tool()
async def ask(question: str, ctx: Context) -> str:
    """Request input of the user during the call."""
    return str(await ctx.elicit(question, Consent))


@server.tool()
def die() -> str:
    """End the process of the server."""
    import os

    os._exit(1)


def main() -> None:
    kind = sys.argv[1]
    if kind == "stdio":
        server.run("stdio")
    else:
        server.run("sse" if kind == "sse" else "streamable-http", host="127.0.0.1", port=int(sys.argv[2]))


if __name__ == "__main__":
    main()
