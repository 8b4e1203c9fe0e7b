"""Tells reasoning, text and calls apart in the text of a chat model: `<think>` blocks and Hermes calls, in any order."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from enum import Enum, auto
from typing import ClassVar

from responses_app.dialects.call_json import CallJson
from responses_app.dialects.spacing import WHITE, Spacing
from responses_app.dialects.speech import ARGUMENTS, MESSAGE, REASONING, Speech
from responses_app.grammar.pieces import Call, Json

THINK, END_THINK, CALL, END_CALL = "<think>", "</think>", "<tool_call>", "</tool_call>"
MARKERS = (THINK, END_THINK, CALL, END_CALL)
_MARKER = re.compile("|".join(MARKERS))
_CALL_MARKER = re.compile(f"{END_CALL}|{CALL}")
# Between the object of a call and </tool_call>: small models close one brace too many.
_CLUTTER = WHITE + "}],"


class Mode(Enum):
    """What the text that comes next is."""

    TEXT = auto()
    THINKING = auto()
    CALL = auto()
    AFTER_CALL = auto()
    SPILL = auto()  # inside <tool_call>, but no call: text, up to </tool_call>


_PROSE = frozenset({Mode.TEXT, Mode.THINKING, Mode.SPILL})


class ChatScanner:
    """Text in, pieces into `speech`; what may be the beginning of a marker is held back, whatever the grouping.

    White space at the borders of items is a separator and dies: before the first word behind a marker, and before a marker.
    A call that is made while reasoning is a call, and reasoning goes on behind it (F3). What stands between the marks of a
    call but is no call, by its JSON or because `allows` says no to its name, is said as a message of its own, without the
    marks (F1). Marks that close nothing are dropped.
    """

    def __init__(
        self, speech: Speech, allows: Callable[[str], bool], *, thinking: bool = False, one_call: bool = False
    ) -> None:
        self.mode = Mode.THINKING if thinking else Mode.TEXT
        self.done = False  # the only call was made: what follows is hidden
        self._one_call = one_call
        self._speech = speech
        self._allows = allows
        self._outer = self.mode  # where a call goes back to
        self._held = ""
        self._spacing = Spacing(bare=thinking)
        self._walk = CallJson()
        self._body = ""  # what the call said before it was known to be one
        self._speaking = False  # the call is known to be one
        self._at = 0  # characters that left `_held` so far
        self._marks: deque[tuple[int, Json]] = deque()

    def hear(self, text: str) -> None:
        """More text."""
        if not self._held and "<" not in text and self.mode in _PROSE:
            self._at += len(text)
            self._utter(text)
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
        white = self._spacing.rest()
        if self.mode is not Mode.THINKING:  # behind text it is no separator
            self._speech.say(MESSAGE, white)
        self._speaking = False

    # Reasoning and text

    def _prose(self) -> bool:
        match = _MARKER.search(self._held)
        if match is None:
            self._utter(self._drop(len(self._held) - _partial(self._held)))
            return False
        self._utter(self._drop(match.start()))
        self._drop(len(match[0]))
        enter = self._ENTER.get((self.mode, match[0]))
        if enter is not None:
            enter(self)
        return True

    def _utter(self, text: str) -> None:
        """Say text, but keep white space at its end until something follows."""
        said = self._spacing.let(text)
        if self.mode is Mode.THINKING:
            self._speech.say(REASONING, said)
        else:
            self._speech.say(MESSAGE, said, self._logprobs(len(said)) if self._marks else ())

    def _drop(self, count: int) -> str:
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
        self._spacing.next()
        while self._marks and self._marks[0][0] < self._at:
            self._marks.popleft()

    def _to_text(self) -> None:
        self._end_item()
        self.mode = self._outer = Mode.TEXT

    def _to_thinking(self) -> None:
        self._end_item()
        self.mode = self._outer = Mode.THINKING

    def _to_outer(self) -> None:
        self._end_item()
        self.mode = self._outer

    def _to_call(self) -> None:
        self._end_item()
        self._walk, self._body, self.mode = CallJson(), "", Mode.CALL

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
        return self.mode is not Mode.CALL

    def _advance(self, count: int) -> None:
        """The walk has read so far: say what it found."""
        text, walk = self._drop(count), self._walk
        if not self._speaking:
            self._body += text
            if walk.called and self._allows(walk.name):
                self._speech.add(Call(walk.name))
                self._speaking = True
            elif walk.called or walk.broken:
                self._spill()
                return
        self._speech.say(ARGUMENTS, walk.take())
        if walk.over:
            self._complete()

    def _complete(self) -> None:
        self._end_item()
        self._speaking = False
        self.mode = Mode.AFTER_CALL
        self.done = self._one_call

    def _stop_early(self) -> None:
        """A mark stands where the object should go on."""
        if self._speaking:
            self._complete()
        elif self.mode is Mode.CALL:
            self._spill()

    def _spill(self) -> None:
        """What was read as a call is text."""
        self._at -= len(self._body)
        self._held, self._body = self._body + self._held, ""
        self.mode = Mode.SPILL

    def _after_call(self) -> bool:
        self._drop(len(self._held) - len(self._held.lstrip(_CLUTTER)))
        if not self._held or _begins_marker(self._held):
            return False
        match = _CALL_MARKER.match(self._held)
        if match is not None:
            self._drop(len(match[0]))
            (self._to_call if match[0] == CALL else self._to_outer)()
        elif self._held[0] == "{":
            self._to_call()
        else:
            self.mode = Mode.SPILL
        return True

    # The end

    def _flush(self, *, cut: bool) -> None:
        """What is held back is no marker, unless it begins one where no text can be."""
        if self.mode is Mode.AFTER_CALL:
            self._held = ""
        elif self._speaking:
            marker = not self._walk.quoted and self._held.startswith("<")
            self._speech.say(ARGUMENTS, "" if marker else self._held)
            self._held = ""
        elif self.mode is Mode.CALL:
            self._unfinished(cut=cut)
        elif cut and self._held:  # half a marker: one more token would have told, and white space before it is no text
            self._held = ""
            self._spacing.next()
        self._utter(self._drop(len(self._held)))

    def _unfinished(self, *, cut: bool) -> None:
        """A call that has not said enough: cut off it is a call if its name is known, else nothing; ended it is text."""
        walk = self._walk
        if cut and walk.name and self._allows(walk.name):
            self._speech.add(Call(walk.name))
            self._held = ""
            return
        self._body += self._drop(len(self._held))
        self._spill()
        if cut and not walk.waiting:
            self._held = ""

    _SCAN: ClassVar[dict[Mode, Callable[[ChatScanner], bool]]] = {
        Mode.TEXT: _prose,
        Mode.THINKING: _prose,
        Mode.SPILL: _prose,
        Mode.CALL: _call,
        Mode.AFTER_CALL: _after_call,
    }
    # Marks that are missing here close nothing and are dropped.
    _ENTER: ClassVar[dict[tuple[Mode, str], Callable[[ChatScanner], None]]] = {
        (Mode.TEXT, THINK): _to_thinking,
        (Mode.TEXT, CALL): _to_call,
        (Mode.THINKING, END_THINK): _to_text,
        (Mode.THINKING, CALL): _to_call,
        (Mode.SPILL, THINK): _to_thinking,
        (Mode.SPILL, END_THINK): _to_text,
        (Mode.SPILL, CALL): _to_call,
        (Mode.SPILL, END_CALL): _to_outer,
    }


def _begins_marker(text: str) -> bool:
    """Whether text may grow into a marker."""
    return any(len(text) < len(marker) and marker.startswith(text) for marker in MARKERS)


def _partial(text: str) -> int:
    """The length of what may be the beginning of a marker at the end of a text."""
    at = text.rfind("<")
    return len(text) - at if at >= 0 and _begins_marker(text[at:]) else 0
