"""MCP servers of the tests in processes of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

PROGRAM = (sys.executable, "-m", "tests.support.mcp.program")
STDIO = (*PROGRAM, "stdio")


@contextmanager
def mcp_server(kind: str = "http") -> Iterator[str]:
    """Run the server of the tests and yield its URL. `kind` is "http" or "sse"."""
    port = free_port()
    process = subprocess.Popen([*PROGRAM, kind, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: _accepts(port), limit_s=60)
        yield f"http://127.0.0.1:{port}/{'mcp' if kind == 'http' else 'sse'}"
    finally:
        process.kill()
        process.wait()


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
