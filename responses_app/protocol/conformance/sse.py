"""Captured bytes of a server-sent event stream, read without forgiveness."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from responses_app.protocol.conformance.violation import Findings


@dataclass(slots=True)
class SseBlock:
    """One block of an SSE stream: its event name ("" if there is none), its data, and the fields that have no business there."""

    name: str = ""
    data: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    returns: bool = False

    @property
    def done(self) -> bool:
        """Whether this is the end mark of the stream."""
        return self.data == ["[DONE]"]

    @property
    def idle(self) -> bool:
        """Whether the block held comments alone."""
        return not (self.name or self.data or self.strange)

    def event(self) -> object:
        """The decoded data; None if it is not JSON."""
        try:
            return json.loads("\n".join(self.data), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None

    def breaches(self) -> Findings:
        """What is wrong with the framing (§2.1): rules S1 and S7."""
        if self.returns:
            yield "S1", "lines end with CR LF"
        if len(self.data) > 1:
            yield "S1", "more than one data line"
        for name in self.strange:
            yield "S7", f"a field {name!r}"

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self.name = value
        elif name == "data":
            self.data.append(value)
        elif name:  # A line that begins with a colon is a comment.
            self.strange.append(name)


def _refuse(constant: str) -> object:
    """Python reads NaN and Infinity; JSON has no such words."""
    raise ValueError(constant)


def frames(chunks: Iterable[bytes]) -> Iterator[SseBlock]:
    """The blocks of a stream that was captured in any chunks. A last block without its blank line counts too.

    Raises UnicodeDecodeError if this is not UTF-8.
    """
    frame = SseBlock()
    for line in _lines(chunks):
        text = line.decode()
        frame.returns |= text.endswith("\r")
        text = text.rstrip("\r")
        if text:
            frame._take(text)
            continue
        if not frame.idle:
            yield frame
        frame = SseBlock()
    if not frame.idle:
        yield frame


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest
