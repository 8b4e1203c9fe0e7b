"""Tells reasoning, text and calls apart in the text of a chat model: `<think>` blocks and Hermes calls, in any order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import ClassVar

from responses_app.dialects.chat.tool_call_json import ToolCallJsonParser
from responses_app.dialects.text.delta_buffer import ARGUMENTS, MESSAGE, REASONING, DeltaBuffer
from responses_app.dialects.text.whitespace import WHITE, WhitespaceBuffer
from responses_app.protocol.deltas import Call, Json

THINK, END_THINK, CALL, END_CALL = "<think>", "</think>", "<tool_call>", "</tool_call>"
MARKERS = (THINK, END_THINK, CALL, END_CALL)
_MARKER = re.compile("|".join(MARKERS))
_CALL_MARKER = re.compile(f"{END_CALL}|{CALL}")
# Between the object of a call and </tool_call>: small models close one brace too many.
_CLUTTER = WHITE + "}],"


class ScannerMode(Enum):
    """What the text that comes next is."""

    TEXT = auto()
    THINKING = auto()
    CALL = auto()
    AFTER_CALL = auto()
    SPILL = auto()  # inside <tool_call>, but no call: text, up to </tool_call>


_PROSE = frozenset({ScannerMode.TEXT, ScannerMode.THINKING, ScannerMode.SPILL})


class ChatScanner:
    """Text in, pieces into `speech`; what may be the beginning of a marker is held back, whatever the grouping.

    White space at the borders of items is a separator and dies: before the first word behind a marker, and before a marker.
    A call that is made while reasoning is a call, and reasoning goes on behind it (F3). What stands between the marks of a
    call but is no call, by its JSON or because `allows` says no to its name, is said as a message of its own, without the
    marks (F1). Marks that close nothing are dropped.
    """

    def __init__(
        self, speech: DeltaBuffer, allows: Callable[[str], bool], *, thinking: bool = False, one_call: bool = False
    ) -> None:
        self.mode = ScannerMode.THINKING if thinking else ScannerMode.TEXT
        self.done = False  # the only call was made: what follows is hidden
        self._one_call = one_call
        self._speech = speech
        self._allows = allows
        self._outer = self.mode  # where a call goes back to
        self._held = ""
        self._spacing = WhitespaceBuffer(bare=thinking)
        self._walk = ToolCallJsonParser()
        self._body = ""  # what the call said before it was known to be one
        self._speaking = False  # the call is known to be one
        self._at = 0  # characters that left `_held` so far
        self._marks: deque[tuple[int, Json]] = deque()

    def feed(self, text: str) -> None:
        """More text."""
        if not self._held and "<" not in text and self.mode in _PROSE:
            self._at += len(text)
            self._emit(text)
            return
        self._held += text
        while self._held and not self.done and self._SCAN[self.mode](self):
            pass

    def mark(self, logprob: Json) -> None:
        """The log-probability of the token whose text comes next."""
        self._marks.append((self._at + len(self._held), logprob))

    def end(self) -> None:
        """The model ended its turn: what is held back is text, the open item is complete."""
        self._finish(cut=False)
        self._to_text()

    def cut(self) -> None:
        """The generation ended in the middle: the open item stays open; a beginning of a marker or a call is left out."""
        self._finish(cut=True)

    def _finish(self, *, cut: bool) -> None:
        if self.done:
            return
        self._flush(cut=cut)
        white = self._spacing.flush()
        if self.mode is not ScannerMode.THINKING:  # behind text it is no separator
            self._speech.append(MESSAGE, white)
        self._speaking = False

    # Reasoning and text

    def _prose(self) -> bool:
        match = _MARKER.search(self._held)
        if match is None:
            self._emit(self._consume(len(self._held) - _partial(self._held)))
            return False
        self._emit(self._consume(match.start()))
        self._consume(len(match[0]))
        enter = self._ENTER.get((self.mode, match[0]))
        if enter is not None:
            enter(self)
        return True

    def _emit(self, text: str) -> None:
        """Say text, but keep white space at its end until something follows."""
        said = self._spacing.feed(text)
        if self.mode is ScannerMode.THINKING:
            self._speech.append(REASONING, said)
        else:
            self._speech.append(MESSAGE, said, self._logprobs(len(said)) if self._marks else ())

    def _consume(self, count: int) -> str:
        text, self._held = self._held[:count], self._held[count:]
        self._at += count
        return text

    def _logprobs(self, count: int) -> list[Json]:
        """Of the tokens that begin in the last `count` characters before the white space."""
        end = self._at - self._spacing.held
        found = []
        while self._marks and self._marks[0][0] < end:
            at, logprob = self._marks.popleft()
            if at >= end - count:
                found.append(logprob)
        return found

    def _end_item(self) -> None:
        self._speech.end()
        self._spacing.reset()
        while self._marks and self._marks[0][0] < self._at:
            self._marks.popleft()

    def _to_text(self) -> None:
        self._end_item()
        self.mode = self._outer = ScannerMode.TEXT

    def _to_thinking(self) -> None:
        self._end_item()
        self.mode = self._outer = ScannerMode.THINKING

    def _to_outer(self) -> None:
        self._end_item()
        self.mode = self._outer

    def _to_call(self) -> None:
        self._end_item()
        self._walk, self._body, self.mode = ToolCallJsonParser(), "", ScannerMode.CALL

    # Calls

    def _call(self) -> bool:
        """Read on in the object of a call, as far as it is certain. True if something else follows."""
        at = self._walk.feed(self._held, 0)
        while at < len(self._held) and not self._walk.over:
            if self._held[at] != "<" or _begins_marker(self._held[at:]):
                break
            if _CALL_MARKER.match(self._held, at):
                self._advance(at)
                self._stop_early()
                return True
            at = self._walk.feed(self._held, at, literal=True)
        self._advance(at)
        return self.mode is not ScannerMode.CALL

    def _advance(self, count: int) -> None:
        """The walk has read so far: say what it found."""
        text, walk = self._consume(count), self._walk
        if not self._speaking:
            self._body += text
            if walk.called and self._allows(walk.name):
                self._speech.add(Call(walk.name))
                self._speaking = True
            elif walk.called or walk.broken:
                self._treat_as_text()
                return
        self._speech.append(ARGUMENTS, walk.take())
        if walk.over:
            self._complete()

    def _complete(self) -> None:
        self._end_item()
        self._speaking = False
        self.mode = ScannerMode.AFTER_CALL
        self.done = self._one_call

    def _stop_early(self) -> None:
        """A mark stands where the object should go on."""
        if self._speaking:
            self._complete()
        elif self.mode is ScannerMode.CALL:
            self._treat_as_text()

    def _treat_as_text(self) -> None:
        """What was read as a call is text."""
        self._at -= len(self._body)
        self._held, self._body = self._body + self._held, ""
        self.mode = ScannerMode.SPILL

    def _after_call(self) -> bool:
        self._consume(len(self._held) - len(self._held.lstrip(_CLUTTER)))
        if not self._held or _begins_marker(self._held):
            return False
        match = _CALL_MARKER.match(self._held)
        if match is not None:
            self._consume(len(match[0]))
            (self._to_call if match[0] == CALL else self._to_outer)()
        elif self._held[0] == "{":
            self._to_call()
        else:
            self.mode = ScannerMode.SPILL
        return True

    # The end

    def _flush(self, *, cut: bool) -> None:
        """What is held back is no marker, unless it begins one where no text can be."""
        if self.mode is ScannerMode.AFTER_CALL:
            self._held = ""
        elif self._speaking:
            marker = not self._walk.quoted and self._held.startswith("<")
            self._speech.append(ARGUMENTS, "" if marker else self._held)
            self._held = ""
        elif self.mode is ScannerMode.CALL:
            self._unfinished(cut=cut)
        elif cut and self._held:  # half a marker: one more token would have told, and white space before it is no text
            self._held = ""
            self._spacing.reset()
        self._emit(self._consume(len(self._held)))

    def _unfinished(self, *, cut: bool) -> None:
        """A call that has not said enough: cut off it is a call if its name is known, else nothing; ended it is text."""
        walk = self._walk
        if cut and walk.name and self._allows(walk.name):
            self._speech.add(Call(walk.name))
            self._held = ""
            return
        self._body += self._consume(len(self._held))
        self._treat_as_text()
        if cut and not walk.waiting:
            self._held = ""

    _SCAN: ClassVar[dict[ScannerMode, Callable[[ChatScanner], bool]]] = {
        ScannerMode.TEXT: _prose,
        ScannerMode.THINKING: _prose,
        ScannerMode.SPILL: _prose,
        ScannerMode.CALL: _call,
        ScannerMode.AFTER_CALL: _after_call,
    }
    # Marks that are missing here close nothing and are dropped.
    _ENTER: ClassVar[dict[tuple[ScannerMode, str], Callable[[ChatScanner], None]]] = {
        (ScannerMode.TEXT, THINK): _to_thinking,
        (ScannerMode.TEXT, CALL): _to_call,
        (ScannerMode.THINKING, END_THINK): _to_text,
        (ScannerMode.THINKING, CALL): _to_call,
        (ScannerMode.SPILL, THINK): _to_thinking,
        (ScannerMode.SPILL, END_THINK): _to_text,
        (ScannerMode.SPILL, CALL): _to_call,
        (ScannerMode.SPILL, END_CALL): _to_outer,
    }


def _begins_marker(text: str) -> bool:
    """Whether text may grow into a marker."""
    return any(len(text) < len(marker) and marker.startswith(text) for marker in MARKERS)


def _partial(text: str) -> int:
    """The length of what may be the beginning of a marker at the end of a text."""
    at = text.rfind("<")
    return len(text) - at if at >= 0 and _begins_marker(text[at:]) else 0
