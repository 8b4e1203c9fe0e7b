"""Output parser of chat models: feeds the text of tokens to a scanner."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from typing import Final

from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.text.decoder import PlainTokens
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Delta
from responses_app.protocol.output_problems import INVALID_UTF8

# Longest repeated sequence in tokens.
MAX_PERIOD: Final = 16


class RepetitionCounter:
    """Counter: `feed` tokens, and `count` is how often the last few tokens stand in a row, at least 1."""

    def __init__(self) -> None:
        self._tail: deque[int] = deque(maxlen=MAX_PERIOD)
        # For each period from 1 on, the number of tokens in a row that equal the token one period before.
        self._runs = [0] * MAX_PERIOD
        self._has_runs = False

    @property
    def count(self) -> int:
        """Return the largest number of repetitions over all periods."""
        return 1 if not self._has_runs else max(run // period + 1 for period, run in enumerate(self._runs, 1))

    def feed(self, token: int) -> None:
        """Append a token."""
        if token in self._tail:
            for at, earlier in enumerate(reversed(self._tail)):
                self._runs[at] = self._runs[at] + 1 if token == earlier else 0
            self._has_runs = True
        elif self._has_runs:
            self._clear_runs()
        self._tail.append(token)

    def clear(self) -> None:
        """Forget all tokens."""
        self._tail.clear()
        self._clear_runs()

    def _clear_runs(self) -> None:
        self._runs, self._has_runs = [0] * MAX_PERIOD, False


class ChatParser:
    """Feeds text to the scanner token by token, so the grouping of tokens in chunks has no effect.

    Chunks of plain tokens inside of a text or reasoning take a shorter way: their text is appended to the open item.

    A stop token ends the open item; other special tokens produce no text. Everything after the only allowed call is dropped,
    and everything after a text that repeats the same few tokens `max_repetitions` times in a row.
    """

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        stops: Collection[int],
        deltas: DeltaBuffer,
        scanner: FormatScanner,
        max_repetitions: int | None = None,
    ) -> None:
        self.reasoning_tokens, self.unread_tokens, self.stop_sequence = 0, 0, None
        self._vocabulary = vocabulary
        self._stops = frozenset(stops)
        self._deltas = deltas
        self._decoder = vocabulary.decoder()
        self._scanner = scanner
        self._max_repetitions = max_repetitions
        self._repetitions = RepetitionCounter()
        self._is_stuck = False
        self._plain: PlainTokens | None = None  # tokens that need no scanner, inside of a text or reasoning

    @property
    def done(self) -> bool:
        """True after the only allowed call, and after too many repetitions."""
        return self._is_stuck or self._scanner.done

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`."""
        if self._plain is not None and not chunk.logprobs and (text := self._plain.text(chunk.tokens)):
            return self._append(text, chunk.tokens)
        for index, token in enumerate(chunk.tokens):
            if self.done:
                self.unread_tokens = len(chunk.tokens) - index
                break
            self._feed_token(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        self._plain = self._plain_tokens()
        return self._deltas.take()

    def finish(self) -> list[Delta]:
        """Return the text held back, without an incomplete character."""
        if self._decoder.has_rest:
            self._deltas.report(INVALID_UTF8)
        self._scanner.cut()
        return self._deltas.take_rest()

    def _plain_tokens(self) -> PlainTokens | None:
        """Return the table of tokens that need no scanner at this point; None if the next token has to be scanned."""
        markers = self._scanner.plain_markers if self._decoder.is_between_chars and not self.done else None
        return None if markers is None else self._vocabulary.plain_tokens(markers, self._stops)

    def _append(self, text: str, tokens: Sequence[int]) -> list[Delta]:
        """Append the text of plain tokens to the open item."""
        if self._scanner.is_thinking:
            self.reasoning_tokens += len(tokens)
        elif self._max_repetitions is not None and self._scanner.is_in_text:
            text = self._text_until_stuck(text, tokens, self._max_repetitions)
        delta = self._scanner.append(text)
        deltas = [] if delta is None else [delta]
        if not self._is_stuck:
            return deltas
        self._scanner.end()
        return [*deltas, *self._deltas.take()]

    def _text_until_stuck(self, text: str, tokens: Sequence[int], most: int) -> str:
        """Count repetitions in the plain `tokens` of `text`. Return the text up to repetition number `most`."""
        for count, token in enumerate(tokens, 1):
            self._repetitions.feed(token)
            if self._repetitions.count >= most and self._plain is not None:
                text, self._is_stuck, self._plain = self._plain.text(tokens[:count]), True, None
                self.unread_tokens = len(tokens) - count
                break
        return text

    def _feed_token(self, token: int, logprob: Logprob | None) -> None:
        if token in self._stops:
            self._feed_text(self._decoder.flush())
            self._scanner.end()
            return
        text = self._decoder.feed(token)
        was_thinking = self._scanner.is_thinking
        if logprob is not None:
            self._scanner.mark(to_wire(logprob, self._vocabulary.token_bytes))
        self._feed_text(text)
        # A token that begins or ends the reasoning is a marker.
        self.reasoning_tokens += was_thinking and self._scanner.is_thinking
        if self._max_repetitions is not None:
            self._count_repetitions(token, self._max_repetitions)

    def _feed_text(self, text: str) -> None:
        if text:
            self._scanner.feed(text)
        if self._decoder.take_error() and not self._scanner.done:
            self._deltas.report(INVALID_UTF8)

    def _count_repetitions(self, token: int, most: int) -> None:
        """End the text at the repetition number `most`."""
        if not self._scanner.is_in_text:
            self._repetitions.clear()
            return
        self._repetitions.feed(token)
        if self._repetitions.count >= most:
            self._scanner.end()
            self._is_stuck = True
