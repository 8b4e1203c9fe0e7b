"""Hears the tokens of one generation of a chat model that thinks in `<think>` and calls in Hermes format."""

from __future__ import annotations

from collections.abc import Callable, Collection

from responses_app.dialects.chat.scanner import END_THINK, THINK, ChatScanner, ScannerMode
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Delta


class ChatParser:
    """Tokens to text to pieces, one token at a time, so that it does not matter how they are grouped (E1-E4).

    A stop token ends the open item; other special tokens say nothing. With `one_call` everything behind the first complete
    call is hidden.
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
        self._speech = DeltaBuffer()
        self._decoder = vocabulary.decoder()
        self._scanner = ChatScanner(self._speech, allows, thinking=thinking, one_call=one_call)

    @property
    def done(self) -> bool:
        """Whether the only call was made."""
        return self._scanner.done

    def feed(self, chunk: Chunk) -> list[Delta]:
        """Pieces that these tokens complete."""
        for index, token in enumerate(chunk.tokens):
            if self._scanner.done:
                break
            self._hear(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        return self._speech.take()

    def finish(self) -> list[Delta]:
        """Whatever was held back; half a character at the cut was never said."""
        self._scanner.cut()
        return self._speech.take()

    def _hear(self, token: int, logprob: Logprob | None) -> None:
        if token in self._stops:
            self._scanner.feed(self._decoder.flush())
            self._scanner.end()
            return
        text = self._decoder.feed(token)
        if self._scanner.mode is ScannerMode.THINKING and text not in (THINK, END_THINK):
            self.reasoning_tokens += 1
        if logprob is not None:
            self._scanner.mark(to_wire(logprob, self._vocabulary.spell))
        if text:
            self._scanner.feed(text)
