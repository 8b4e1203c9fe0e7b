"""Blocks of a captured server-sent event stream, with framing errors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from responses_app.protocol.conformance.violation import Findings


@dataclass(slots=True)
class SseBlock:
    """Block of an SSE stream: the event name ("" without any), the data lines, and the names of fields that are not allowed."""

    name: str = ""
    data: list[str] = field(default_factory=list)
    other_fields: list[str] = field(default_factory=list)
    has_carriage_returns: bool = False

    @property
    def done(self) -> bool:
        """Return True if the block is the end mark of the stream."""
        return self.data == ["[DONE]"]

    @property
    def is_empty(self) -> bool:
        """Return True if the block has only comments."""
        return not (self.name or self.data or self.other_fields)

    def event(self) -> object:
        """Return the decoded data, or None if the data is no JSON."""
        try:
            return json.loads("\n".join(self.data), parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            return None

    def framing_problems(self) -> Findings:
        """Check the framing: rules S1 and S7."""
        if self.has_carriage_returns:
            yield "S1", "lines end with CR LF"
        if len(self.data) > 1:
            yield "S1", "more than one data line"
        for name in self.other_fields:
            yield "S7", f"a field {name!r}"

    def add_line(self, line: str) -> None:
        """Add a line of the block."""
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self.name = value
        elif name == "data":
            self.data.append(value)
        elif name:  # A line that begins with a colon is a comment.
            self.other_fields.append(name)


def _reject_constant(constant: str) -> object:
    """Reject NaN and Infinity, which Python accepts and JSON does not have."""
    raise ValueError(constant)


def blocks(chunks: Iterable[bytes]) -> Iterator[SseBlock]:
    """Yield the blocks of a stream that was captured in any chunks. The last block may lack the blank line.

    Raises UnicodeDecodeError if the stream is not UTF-8.
    """
    block = SseBlock()
    for line in _lines(chunks):
        text = line.decode()
        block.has_carriage_returns |= text.endswith("\r")
        text = text.rstrip("\r")
        if text:
            block.add_line(text)
            continue
        if not block.is_empty:
            yield block
        block = SseBlock()
    if not block.is_empty:
        yield block


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    incomplete_line = b""
    for chunk in chunks:
        *lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
        yield from lines
    if incomplete_line:
        yield incomplete_line
