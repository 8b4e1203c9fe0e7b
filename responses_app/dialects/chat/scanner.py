"""Scanner of generated chat text: separates reasoning, text and Hermes tool calls, in any order."""

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
# Text between the object of a call and </tool_call>: small models write extra closing brackets.
_EXTRA_BRACKETS = WHITE + "}],"


class ScannerMode(Enum):
    """Meaning of the next text."""

    TEXT = auto()
    THINKING = auto()
    CALL = auto()
    AFTER_CALL = auto()
    NOT_A_CALL = auto()  # inside <tool_call>, but not a call: text up to </tool_call>


_PROSE = frozenset({ScannerMode.TEXT, ScannerMode.THINKING, ScannerMode.NOT_A_CALL})


class ChatScanner:
    """Scanner: text in, deltas into the buffer. Possible beginnings of markers are held back, so the grouping of text has no effect.

    White space at the borders of items is dropped: before the first word after a marker, and before a marker. After a call
    inside reasoning the reasoning continues. Text between call markers that is no valid call, or a call that `allows` rejects,
    becomes a separate message without the markers. Closing markers without an opening marker are dropped.
    """

    def __init__(
        self, deltas: DeltaBuffer, allows: Callable[[str], bool], *, thinking: bool = False, one_call: bool = False
    ) -> None:
        self.mode = ScannerMode.THINKING if thinking else ScannerMode.TEXT
        self.done = False  # True after the only allowed call; later text is dropped
        self._one_call = one_call
        self._deltas = deltas
        self._allows = allows
        self._mode_after_call = self.mode  # the mode after a call
        self._held = ""
        self._white_space = WhitespaceBuffer(bare=thinking)
        self._parser = ToolCallJsonParser()
        self._body = ""  # text of the call before it was recognized
        self._is_call = False  # True once the call was recognized
        self._consumed = 0  # number of characters consumed from `_held`
        self._logprobs_held: deque[tuple[int, Json]] = deque()

    @property
    def is_thinking(self) -> bool:
        """True inside of reasoning."""
        return self.mode is ScannerMode.THINKING

    def feed(self, text: str) -> None:
        """Scan more text."""
        if not self._held and "<" not in text and self.mode in _PROSE:
            self._consumed += len(text)
            self._emit(text)
            return
        self._held += text
        while self._held and not self.done and self._SCANNERS[self.mode](self):
            pass

    def mark(self, logprob: Json) -> None:
        """Record the log-probability of a token before the text of the token."""
        self._logprobs_held.append((self._consumed + len(self._held), logprob))

    def end(self) -> None:
        """End the turn: text held back is emitted, the open item is complete."""
        self._finish(cut=False)
        self._to_text()

    def cut(self) -> None:
        """End a generation cut off in the middle: the open item stays open, a partial marker or call is dropped."""
        self._finish(cut=True)

    def _finish(self, *, cut: bool) -> None:
        if self.done:
            return
        self._flush(cut=cut)
        white_space = self._white_space.flush()
        if self.mode is not ScannerMode.THINKING:  # white space after text is part of the text
            self._deltas.append(MESSAGE, white_space)
        self._is_call = False

    # Reasoning and text

    def _prose(self) -> bool:
        match = _MARKER.search(self._held)
        if match is None:
            self._emit(self._consume(len(self._held) - _partial(self._held)))
            return False
        self._emit(self._consume(match.start()))
        self._consume(len(match[0]))
        transition = self._TRANSITIONS.get((self.mode, match[0]))
        if transition is not None:
            transition(self)
        return True

    def _emit(self, text: str) -> None:
        """Append text without trailing white space."""
        visible = self._white_space.feed(text)
        if self.mode is ScannerMode.THINKING:
            self._deltas.append(REASONING, visible)
        else:
            self._deltas.append(MESSAGE, visible, self._logprobs(len(visible)) if self._logprobs_held else ())

    def _consume(self, count: int) -> str:
        text, self._held = self._held[:count], self._held[count:]
        self._consumed += count
        return text

    def _logprobs(self, count: int) -> list[Json]:
        """Return the log-probabilities of tokens beginning in the last `count` characters before the white space."""
        end = self._consumed - self._white_space.held
        logprobs = []
        while self._logprobs_held and self._logprobs_held[0][0] < end:
            at, logprob = self._logprobs_held.popleft()
            if at >= end - count:
                logprobs.append(logprob)
        return logprobs

    def _end_item(self) -> None:
        self._deltas.end()
        self._white_space.reset()
        while self._logprobs_held and self._logprobs_held[0][0] < self._consumed:
            self._logprobs_held.popleft()

    def _to_text(self) -> None:
        self._end_item()
        self.mode = self._mode_after_call = ScannerMode.TEXT

    def _to_thinking(self) -> None:
        self._end_item()
        self.mode = self._mode_after_call = ScannerMode.THINKING

    def _to_outer(self) -> None:
        self._end_item()
        self.mode = self._mode_after_call

    def _to_call(self) -> None:
        self._end_item()
        self._parser, self._body, self.mode = ToolCallJsonParser(), "", ScannerMode.CALL

    # Calls

    def _call(self) -> bool:
        """Parse the object of a call as far as certain. Return True if other text follows."""
        at = self._parser.feed(self._held, 0)
        while at < len(self._held) and not self._parser.over:
            if self._held[at] != "<" or _begins_marker(self._held[at:]):
                break
            if _CALL_MARKER.match(self._held, at):
                self._advance(at)
                self._stop_early()
                return True
            at = self._parser.feed(self._held, at, literal=True)
        self._advance(at)
        return self.mode is not ScannerMode.CALL

    def _advance(self, count: int) -> None:
        """Consume `count` characters read by the parser, and emit the result."""
        text, parser = self._consume(count), self._parser
        if not self._is_call:
            self._body += text
            if parser.called and self._allows(parser.name):
                self._deltas.add(Call(parser.name))
                self._is_call = True
            elif parser.called or parser.broken:
                self._treat_as_text()
                return
        self._deltas.append(ARGUMENTS, parser.take())
        if parser.over:
            self._complete()

    def _complete(self) -> None:
        self._end_item()
        self._is_call = False
        self.mode = ScannerMode.AFTER_CALL
        self.done = self._one_call

    def _stop_early(self) -> None:
        """Handle a marker inside the object of a call."""
        if self._is_call:
            self._complete()
        elif self.mode is ScannerMode.CALL:
            self._treat_as_text()

    def _treat_as_text(self) -> None:
        """Scan the text of the call again as message text."""
        self._consumed -= len(self._body)
        self._held, self._body = self._body + self._held, ""
        self.mode = ScannerMode.NOT_A_CALL

    def _after_call(self) -> bool:
        self._consume(len(self._held) - len(self._held.lstrip(_EXTRA_BRACKETS)))
        if not self._held or _begins_marker(self._held):
            return False
        match = _CALL_MARKER.match(self._held)
        if match is not None:
            self._consume(len(match[0]))
            (self._to_call if match[0] == CALL else self._to_outer)()
        elif self._held[0] == "{":
            self._to_call()
        else:
            self.mode = ScannerMode.NOT_A_CALL
        return True

    # The end

    def _flush(self, *, cut: bool) -> None:
        """Emit the text held back, unless it begins a marker where no text is allowed."""
        if self.mode is ScannerMode.AFTER_CALL:
            self._held = ""
        elif self._is_call:
            marker = not self._parser.quoted and self._held.startswith("<")
            self._deltas.append(ARGUMENTS, "" if marker else self._held)
            self._held = ""
        elif self.mode is ScannerMode.CALL:
            self._unfinished(cut=cut)
        elif cut and self._held:  # a partial marker, with the white space before it
            self._held = ""
            self._white_space.reset()
        self._emit(self._consume(len(self._held)))

    def _unfinished(self, *, cut: bool) -> None:
        """Handle an incomplete call: if cut with a known name a call, if ended by the model text."""
        parser = self._parser
        if cut and parser.name and self._allows(parser.name):
            self._deltas.add(Call(parser.name))
            self._held = ""
            return
        self._body += self._consume(len(self._held))
        self._treat_as_text()
        if cut and not parser.waiting:
            self._held = ""

    _SCANNERS: ClassVar[dict[ScannerMode, Callable[[ChatScanner], bool]]] = {
        ScannerMode.TEXT: _prose,
        ScannerMode.THINKING: _prose,
        ScannerMode.NOT_A_CALL: _prose,
        ScannerMode.CALL: _call,
        ScannerMode.AFTER_CALL: _after_call,
    }
    # Markers missing in this table close nothing and are dropped.
    _TRANSITIONS: ClassVar[dict[tuple[ScannerMode, str], Callable[[ChatScanner], None]]] = {
        (ScannerMode.TEXT, THINK): _to_thinking,
        (ScannerMode.TEXT, CALL): _to_call,
        (ScannerMode.THINKING, END_THINK): _to_text,
        (ScannerMode.THINKING, CALL): _to_call,
        (ScannerMode.NOT_A_CALL, THINK): _to_thinking,
        (ScannerMode.NOT_A_CALL, END_THINK): _to_text,
        (ScannerMode.NOT_A_CALL, CALL): _to_call,
        (ScannerMode.NOT_A_CALL, END_CALL): _to_outer,
    }


def _begins_marker(text: str) -> bool:
    """Return True if `text` is a proper beginning of a marker."""
    return any(len(text) < len(marker) and marker.startswith(text) for marker in MARKERS)


def _partial(text: str) -> int:
    """Return the length of a possible beginning of a marker at the end of `text`."""
    at = text.rfind("<")
    return len(text) - at if at >= 0 and _begins_marker(text[at:]) else 0
