"""MCP servers of the tests in processes of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from responses_app.tools.mcp.setting import DEMO_PROGRAM
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

PROGRAM = (sys.executable, "-m", "tests.support.mcp.program")
STDIO = (*PROGRAM, "stdio")
RUN_DEMO = """import runpy, sys
server = runpy.run_path(sys.argv[1])["server"]
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))"""


@contextmanager
def mcp_server(kind: str = "http") -> Iterator[str]:
    """Run the server of the tests and yield its URL. `kind` is "http" or "sse"."""
    with _served(*PROGRAM, kind) as port:
        yield f"http://127.0.0.1:{port}/{'mcp' if kind == 'http' else 'sse'}"


@contextmanager
def demo_mcp_server() -> Iterator[str]:
    """Run the example server of `--demo-tools`, which the product starts as a program, and yield its URL."""
    with _served(sys.executable, "-c", RUN_DEMO, str(DEMO_PROGRAM)) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@contextmanager
def _served(*command: str) -> Iterator[int]:
    """Run a command, whose last argument is a port, while it accepts connections there."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _accepts(port), limit_s=60)
        yield port
    finally:
        process.kill()
        process.wait()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
