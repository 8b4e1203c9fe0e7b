"""Output parser of chat models with `<think>` reasoning and Hermes tool calls."""

from __future__ import annotations

from collections.abc import Callable, Collection

from responses_app.dialects.chat.scanner import END_THINK, THINK, ChatScanner, ScannerMode
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Delta


class ChatParser:
    """Feeds text to the scanner token by token, so the grouping of tokens in chunks has no effect.

    A stop token ends the open item; other special tokens produce no text. With `one_call` everything after the first complete
    call is dropped.
    """

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        stops: Collection[int],
        allows: Callable[[str], bool],
        *,
        thinking: bool,
        one_call: bool = False,
    ) -> None:
        self.reasoning_tokens = 0
        self._vocabulary = vocabulary
        self._stops = stops
        self._deltas = DeltaBuffer()
        self._decoder = vocabulary.decoder()
        self._scanner = ChatScanner(self._deltas, allows, thinking=thinking, one_call=one_call)

    @property
    def done(self) -> bool:
        """True after the only allowed call."""
        return self._scanner.done

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Return the deltas completed by `chunk`."""
        for index, token in enumerate(chunk.tokens):
            if self._scanner.done:
                break
            self._feed_token(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        return self._deltas.take()

    def finish(self) -> list[Delta]:
        """Return the text held back, without an incomplete character."""
        self._scanner.cut()
        return self._deltas.take()

    def _feed_token(self, token: int, logprob: Logprob | None) -> None:
        if token in self._stops:
            self._scanner.feed(self._decoder.flush())
            self._scanner.end()
            return
        text = self._decoder.feed(token)
        if self._scanner.mode is ScannerMode.THINKING and text not in (THINK, END_THINK):
            self.reasoning_tokens += 1
        if logprob is not None:
            self._scanner.mark(to_wire(logprob, self._vocabulary.token_bytes))
        if text:
            self._scanner.feed(text)
