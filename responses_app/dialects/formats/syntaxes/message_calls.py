"""Calls in messages of their own: the head of a message, and calls of another syntax."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from responses_app.dialects.constraints.structural_tag import Format
from responses_app.dialects.formats.base import Syntax, Tool
from responses_app.dialects.formats.calls import CallWriter, NotACall
from responses_app.dialects.formats.reader import Markers, Reader, Steps


@dataclass(frozen=True, slots=True)
class MessageCalls:
    """Messages that begin with `start` and a head, which may name a tool behind `recipient`; `head_end` ends the head.

    `call_begins` are the markers with which calls of the syntax `calls` begin. `others` begin messages of other kinds.
    """

    start: str
    calls: Syntax
    call_begins: tuple[str, ...]
    others: tuple[str, ...]
    recipient: str = ""
    head_end: str = ""

    def read(self, reader: Reader, calls: CallWriter, begin: str) -> Steps[None]:
        """Read the head of a message, and calls if the message has calls. Raises NotACall, EndOfText."""
        if begin == self.start:
            has_head = yield from self._head(reader, calls)
            if not has_head:
                return
            begin = has_head
        yield from self.calls.read(reader, calls, begin)

    @property
    def markers(self) -> tuple[str, ...]:
        """Markers inside of calls."""
        return (self.start, *self.call_begins, *self.others, self.head_end, *self.calls.markers)

    @property
    def trigger(self) -> str:
        """Text with which calls begin in the grammar."""
        return self.calls.trigger

    @property
    def separator(self) -> str:
        """Text between two sections."""
        return self.calls.separator

    def tags(self, tools: Sequence[Tool], *, only_one: bool) -> list[Format]:
        """Return the tags of the calls, without heads of messages."""
        return self.calls.tags(tools, only_one=only_one)

    def _head(self, reader: Reader, calls: CallWriter) -> Steps[str]:
        """Read the head of a message; return the marker of calls, or an empty string if the message has no calls."""
        head, stop = yield from reader.read_until(Markers(*self.call_begins, *self.others, self.head_end))
        name = head.strip().removeprefix(self.recipient)
        if stop in self.others or (stop == self.head_end and not name):
            reader.at -= len(stop)
        if name and not (calls.is_declared(name) and stop not in self.others):
            raise NotACall
        if stop in self.others or (stop == self.head_end and not name):
            return ""
        if stop != self.head_end:
            return stop
        yield from reader.skip_space()
        if (call_begin := (yield from reader.accept(*self.call_begins))) is None:
            raise NotACall
        return call_begin
