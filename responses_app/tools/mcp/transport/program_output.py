"""Output of an MCP server that is a program: the message in a line, and the pace at which lines are read."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCMessage, jsonrpc_message_adapter

# Lines that a program may write at once, and in a second from then on. Longer lines count once for each LINE_BYTES.
BURST_LINES = 4000
LINES_PER_S = 2000
LINE_BYTES = 4096
# Beginning or end of an answer that cannot be parsed, where its id is.
END_BYTES = 100
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*[,}]')


def parse_line(line: bytes) -> JSONRPCMessage | None:
    """Return the message in a line; None for other text, such as a notice of the program.

    Lone surrogates, as of a text that was cut within an emoji, and bytes that are not UTF-8 are replaced. An answer that cannot be
    parsed even so becomes an error, for which its call does not wait until the limit of silence.
    """
    try:
        return _parse(line)
    except ValueError:
        if b'"jsonrpc"' not in line:
            return None
    value: Any = None
    try:
        value = json.loads(line.decode(errors="replace"))
        return _parse(json.dumps(value, ensure_ascii=False).encode(errors="replace"))
    except (ValueError, RecursionError):
        number = _answered_id(line, value)
    return None if number is None else JSONRPCError(jsonrpc="2.0", id=number, error=_UNREADABLE)


_UNREADABLE = ErrorData(code=PARSE_ERROR, message="Failed to parse the answer")


def _parse(line: bytes) -> JSONRPCMessage:
    message: JSONRPCMessage = jsonrpc_message_adapter.validate_json(line, by_name=False)
    return message


def _answered_id(line: bytes, value: Any) -> int | None:
    """Return the id of an answer, whose `value` is None if the line is no JSON; None for other messages."""
    if value is not None:
        is_answer = isinstance(value, dict) and "method" not in value
        return value["id"] if is_answer and isinstance(value.get("id"), int) else None
    ends = line[:END_BYTES] + b" " + line[-END_BYTES:]
    match = None if b'"method"' in ends else _ID.search(ends)
    return int(match[1]) if match else None


class Pace:
    """Limit on the lines that are read: a program that writes without end waits, and leaves the event loop to others."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lines, self._at_s = float(BURST_LINES), self._loop.time()

    async def wait(self, size: int) -> None:
        """Count a line of `size` bytes that was read, and wait until the next may be read."""
        now_s = self._loop.time()
        self._lines = min(self._lines + (now_s - self._at_s) * LINES_PER_S, BURST_LINES) - 1 - size // LINE_BYTES
        self._at_s = now_s
        if self._lines < 0:
            await asyncio.sleep(-self._lines / LINES_PER_S)
