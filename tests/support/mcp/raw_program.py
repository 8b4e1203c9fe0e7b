"""MCP server of the tests that is a program without a library, which starts in a few milliseconds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "raw", "version": "1"},
}
TOOLS = [{"name": "tool", "inputSchema": {"type": "object"}}]
# Answers the handshake. `TOOLS` is the expression of the listed tools, `CALL` the code for calls, `CANCELLED` that for cancellations.
PROGRAM = f"""
import json, os, signal, sys
def reply(message, result):
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        reply(message, {json.dumps(INITIALIZED)})
    elif message["method"] == "tools/list":
        reply(message, {{"tools": TOOLS}})
    elif message["method"] == "tools/call":
        CALL
    elif message["method"] == "notifications/cancelled":
        CANCELLED
    elif "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "error": {{"code": -32601, "message": "no"}}}}), flush=True)
"""


def raw_program(call: str, *, tools: str = repr(TOOLS), cancelled: str = "pass") -> tuple[str, ...]:
    """Return the command of a server with the tool `tool`, or the tools of the Python expression `tools`.

    It runs the code `call` at calls, and `cancelled` at cancellations of calls.
    """
    code = PROGRAM.replace("TOOLS", tools).replace("CANCELLED", cancelled).replace("CALL", call)
    return sys.executable, "-c", code


def reply_text(expression: str) -> str:
    """Return the code for calls that answer with the text of the Python expression `expression`."""
    return f'reply(message, {{"content": [{{"type": "text", "text": str({expression})}}]}})'


def is_running(pid: int) -> bool:
    """Return whether the process runs, zombies excluded."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
