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
LISTED = {"tools": [{"name": "tool", "inputSchema": {"type": "object"}}]}
# Answers the handshake; `CALL` is the code for calls of tools.
PROGRAM = f"""
import json, os, signal, sys
def reply(message, result):
    print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        reply(message, {json.dumps(INITIALIZED)})
    elif message["method"] == "tools/list":
        reply(message, {json.dumps(LISTED)})
    elif message["method"] == "tools/call":
        CALL
    elif "id" in message:
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "error": {{"code": -32601, "message": "no"}}}}), flush=True)
"""


def raw_program(call: str) -> tuple[str, ...]:
    """Return the command of a server with the tool `tool`, which runs the code `call` at calls."""
    return sys.executable, "-c", PROGRAM.replace("CALL", call)


def reply_text(expression: str) -> str:
    """Return the code for calls that answer with the text of the Python expression `expression`."""
    return f'reply(message, {{"content": [{{"type": "text", "text": str({expression})}}]}})'


def is_running(pid: int) -> bool:
    """Return whether the process runs, zombies excluded."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
