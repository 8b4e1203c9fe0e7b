"""Scanner of generated text by a declared format: separates reasoning, text and calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial

from responses_app.dialects.formats.base import OutputFormat, Schemas, Syntax
from responses_app.dialects.formats.calls import CallWriter, NotACall
from responses_app.dialects.formats.reader import EndOfText, Markers, Reader, Steps
from responses_app.dialects.text.delta_buffer import MESSAGE, REASONING, DeltaBuffer
from responses_app.dialects.text.whitespace import WhitespaceBuffer
from responses_app.protocol.deltas import Arguments, Delta, Json, ReasoningDelta, TextDelta
from responses_app.protocol.output_problems import (
    TEXT_IN_CALL,
    UNEXPECTED_MARKER,
    UNFINISHED_CALL,
    UNFINISHED_MARKER,
)


class FormatScanner:
    """Scanner: text in, deltas into the buffer. The grouping of the text has no effect.

    White space at the borders of items is dropped. After a call inside of reasoning the reasoning continues. Text behind a call
    marker that is no call becomes text without the marker, and closing markers without an opening marker are dropped; a format with
    `keeps_markers` keeps both. The buffer gets a problem for each of these, and for text that a cut drops. An output that begins with the
    closing marker of reasoning has none: so some models write that they do not reason. With `plain_text` the text has
    no markers behind its first character, except those around the answer: the strings of JSON may contain markers.
    """

    def __init__(
        self,
        deltas: DeltaBuffer,
        format: OutputFormat,
        allows: Callable[[str], bool],
        schemas: Schemas,
        *,
        thinking: bool = False,
        one_call: bool = False,
        plain_text: bool = False,
    ) -> None:
        self.is_thinking = thinking
        self._deltas = deltas
        self._format = format
        self._leads, self._call_ends = (format.calls.leads, format.calls.ends) if format.calls else ((), ())
        self._has_plain_text = plain_text
        self.is_in_text = False  # True from the first character of a text to its end
        self._has_begun = False  # True behind the first text or marker
        self._is_behind_calls = False  # True in text behind calls, which a closing marker ends
        self._reader = Reader()
        has_entities = format.calls is not None and format.calls.has_entities
        self._calls = CallWriter(
            self._reader, deltas, allows, schemas, self._end_item, one_call=one_call, has_entities=has_entities
        )
        self._white_space = WhitespaceBuffer(bare=thinking)
        self._logprobs_held: deque[tuple[int, Json]] = deque()
        self._text_markers, self._reasoning_markers = _markers(format)
        self._prose: Markers | None = None  # markers of the reasoning or text that is being read
        self._steps = self._read()
        next(self._steps)

    @property
    def done(self) -> bool:
        """True after the only allowed call; later text is dropped."""
        return self._calls.done

    def feed(self, text: str) -> None:
        """Scan more text."""
        if self.done or not text:
            return
        self._reader.append(text)
        next(self._steps, None)

    @property
    def plain_markers(self) -> frozenset[str] | None:
        """Characters that the scanner must see in the open reasoning, text or string of arguments; None where it must see all text."""
        if self._logprobs_held or self._reader.unread or self._reader.closed:
            return None
        if self._calls.is_open:
            return self._reader.string_ends
        return self._prose.first_chars if self._prose is not None and self._has_open_prose else None

    @property
    def _has_open_prose(self) -> bool:
        return self._deltas.has_open_item and (self.is_thinking or self.is_in_text)

    def append(self, text: str) -> Delta | None:
        """Append text without any of `plain_markers` to the open item; return the delta, None for white space that is held back."""
        self._reader.skip(len(text))
        if self._calls.is_open:
            return Arguments(text)
        visible = self._white_space.feed(text)
        if not visible:
            return None
        return ReasoningDelta(visible) if self.is_thinking else TextDelta(visible)

    def mark(self, logprob: Json) -> None:
        """Record the log-probability of a token before the text of the token."""
        self._logprobs_held.append((self._reader.position + len(self._reader.unread), logprob))

    def end(self) -> None:
        """End the turn: text held back is emitted, the open item is complete, and further text begins anew."""
        self._finish(cut=False)
        self._end_item()
        self.is_thinking = False
        self._reader.closed = self._has_begun = False
        self._steps = self._read()
        next(self._steps)

    def cut(self) -> None:
        """End a generation cut off in the middle: the open item stays open, a partial marker or call is dropped."""
        self._finish(cut=True)

    def _finish(self, *, cut: bool) -> None:
        if self.done:
            return
        self._reader.closed, self._reader.cut, self._prose = True, cut, None
        next(self._steps, None)
        if self._reader.unread:  # a partial marker or call, with the white space before
            self._deltas.report(UNFINISHED_MARKER, self._reader.take(len(self._reader.unread)).strip())
            self._white_space.reset()
        white_space = self._white_space.flush()
        if white_space and not self.is_thinking:  # white space behind text is part of the text
            self._deltas.append(MESSAGE, white_space, self._logprobs(len(white_space), 0))

    def _read(self) -> Steps[None]:
        """Read the whole output."""
        yield
        try:
            yield from self._skip_title()
            while not self.done:
                yield from self._read_prose()
        except EndOfText:
            return

    def _skip_title(self) -> Steps[None]:
        """Skip the title at the start of reasoning. An empty reasoning may have a title without a line break."""
        reasoning = self._format.reasoning
        if reasoning is None or not reasoning.title or not self.is_thinking:
            return
        word = reasoning.title.rstrip()
        empty = [word + end for end in reasoning.ends]
        accepted = yield from self._reader.accept(reasoning.title, *empty)
        if accepted in empty:
            self._reader.at -= len(accepted) - len(word)

    def _read_prose(self) -> Steps[None]:
        """Read reasoning or text up to a marker, and follow the marker."""
        markers = self._reasoning_markers if self.is_thinking else self._text_markers
        self._prose = markers
        marker = yield from self._reader.pass_until(markers, self._emit)
        self._prose = None
        if self._has_plain_text and self.is_in_text and marker not in self._format.ignored:
            self._emit_marker(marker)
        else:
            yield from self._follow(marker)

    def _emit_marker(self, marker: str) -> None:
        """Append a marker that has been read as text."""
        self._reader.at -= len(marker)
        self._emit(marker)
        self._reader.at += len(marker)

    def _follow(self, marker: str) -> Steps[None]:
        """Begin or end reasoning or calls, as the marker says."""
        reasoning, calls = self._format.reasoning, self._format.calls
        is_first, self._has_begun = not self._has_begun, True
        if reasoning is not None and marker in reasoning.begins:
            if not self.is_thinking:
                self._end_item()
                self.is_thinking = True
            yield from self._skip_title()
        elif reasoning is not None and marker in reasoning.ends and self.is_thinking:
            self._end_item()
            self.is_thinking = False
        elif calls is not None and marker in calls.ends and self._is_behind_calls:
            if self._deltas.has_open_item:
                self._deltas.report(TEXT_IN_CALL)
            self._end_item()
            self._is_behind_calls = False
        elif calls is not None and marker in calls.begins:
            self._end_item()
            yield from self._read_calls(calls.syntax, marker)
        elif calls is not None and marker in calls.leads:
            yield from self._read_lead(calls.syntax, marker)
        elif self._may_be_text(marker):
            self._emit_marker(marker)
        elif marker not in self._format.ignored and not (is_first and reasoning is not None and marker in reasoning.ends):
            # A closing marker without an opening marker.
            self._deltas.report(UNEXPECTED_MARKER, marker)

    def _may_be_text(self, marker: str) -> bool:
        """Return True if a closing marker without an opening marker is text."""
        reasoning = self._format.reasoning
        if marker in self._call_ends and self._format.keeps_markers:
            return True
        may_be_text = reasoning is not None and marker in reasoning.ends and reasoning.keeps_ends
        return may_be_text and (self.is_in_text or not any(map(str.isalnum, marker)))

    def _read_calls(self, syntax: Syntax, marker: str) -> Steps[None]:
        self._reader.mark()
        self._reader.unfinished = ""
        is_section, start = marker not in self._leads, self._reader.position
        try:
            yield from syntax.read(self._reader, self._calls, marker)
        except NotACall as error:
            self._reader.rewind()
            if is_section:
                self._deltas.report(error.problem)
        except EndOfText:
            self._end_in_calls(is_section=is_section)
        is_text = is_section and self._format.keeps_markers and self._reader.position == start
        if is_text:
            self._emit_marker(marker)
        self._is_behind_calls = not is_text
        self._reader.release()

    def _read_lead(self, syntax: Syntax, marker: str) -> Steps[None]:
        """Read calls that begin without a marker, or the first character as text."""
        before = self._reader.position - len(marker)
        self._reader.at -= len(marker)
        yield from self._read_calls(syntax, marker)
        if self._reader.position == before:
            self._reader.at += len(marker)
            self._emit_marker(marker)

    def _end_in_calls(self, *, is_section: bool) -> None:
        """Handle the end of the generation in a call: an open call is complete unless cut off, other text is read as text.

        A call that was cut off before its name was complete is dropped. The reported problem has the text.
        """
        if self.done:
            return
        if self._reader.cut:
            self._cut_in_calls()
        elif self._calls.is_open:
            self._deltas.report(UNFINISHED_CALL)
            self._calls.add_misplaced(self._reader.unfinished + self._reader.take(len(self._reader.unread)))
            self._calls.close()
        else:
            self._reader.rewind()
            if is_section and self._reader.unread.strip():
                self._deltas.report(UNFINISHED_CALL)

    def _cut_in_calls(self) -> None:
        reader = self._reader
        text = (
            f"{self._calls.misplaced}{reader.unfinished}{reader.unread}" if self._calls.is_open else reader.since_mark
        ).strip()
        reader.at = len(reader.text)
        self._white_space.reset()
        if self._calls.is_open or text:
            is_marker = not self._calls.is_open and any(end.startswith(text) for end in self._call_ends)
            self._deltas.report(UNFINISHED_MARKER if is_marker else UNFINISHED_CALL, text)

    def _emit(self, text: str) -> None:
        """Append text without trailing white space."""
        visible = self._white_space.feed(text)
        if self.is_thinking:
            self._deltas.append(REASONING, visible)
        elif visible:
            self.is_in_text = self._has_begun = True
            self._deltas.append(MESSAGE, visible, self._logprobs(len(visible), len(text)) if self._logprobs_held else ())

    def _logprobs(self, count: int, size: int) -> list[Json]:
        """Return the log-probabilities of tokens with text or bytes in the last `count` characters before the white space."""
        end = self._reader.position + size - self._white_space.held
        begin = end - count
        logprobs = []
        while self._logprobs_held and self._logprobs_held[0][0] < end:
            at, logprob = self._logprobs_held.popleft()
            next_at = self._logprobs_held[0][0] if self._logprobs_held else end
            # A token may begin with white space that is dropped, and end with a part of a character.
            if at >= begin or next_at > begin or logprob["token"].endswith("\ufffd"):
                logprobs.append(logprob)
        return logprobs

    def _end_item(self) -> None:
        self.is_in_text = False
        self._deltas.end()
        self._white_space.reset()
        while self._logprobs_held and self._logprobs_held[0][0] < self._reader.position:
            self._logprobs_held.popleft()


def _markers(format: OutputFormat) -> tuple[Markers, Markers]:
    """Return the markers to search for in text and in reasoning."""
    reasoning, calls = format.reasoning, format.calls
    begins, ends, leads = (calls.begins, calls.ends, calls.leads) if calls else ((), (), ())
    text = [*begins, *ends, *leads, *format.ignored]
    if reasoning is None:
        return _prose_markers(*text), _prose_markers()
    both, inside = (*reasoning.begins, *reasoning.ends), (*begins, *ends) if reasoning.has_calls else ()
    return _prose_markers(*both, *text), _prose_markers(*both, *inside)


# Every response of a model searches for the same markers.
_prose_markers = lru_cache(maxsize=64)(partial(Markers, may_overlap=True))
