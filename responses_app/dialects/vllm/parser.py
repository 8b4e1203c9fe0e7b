"""Hears the tokens of one generation through a parser of vLLM."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable

from responses_app.dialects.text.delta_buffer import ARGUMENTS, MESSAGE, REASONING, DeltaBuffer, TextChannel
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.text.whitespace import WhitespaceBuffer
from responses_app.dialects.vllm.adapters import ITEM_END, Delta, VllmToolParser
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Call, Json
from responses_app.protocol.deltas import Delta as Delta_

logger = logging.getLogger(__name__)


# What a parser holds back at a cut because it may become `<tool_call>`, `</think>`, `[TOOL_CALLS]` and the like.
_HALF = re.compile(r"\s*(?:<[/|]?[\w|=]*|\[[A-Z_]*)")


def _half_a_marker(delta: Delta) -> bool:
    """Whether these are the first characters of a marker and nothing else: it was cut off, and is no text (E4)."""
    said = [getattr(delta, "reasoning", None), getattr(delta, "content", None)]
    return not getattr(delta, "tool_calls", None) and any(said) and all(not one or _HALF.fullmatch(one) for one in said)


class VllmOutputParser:
    """Deltas to pieces, in their order. A parser that fails is left: what follows is text (F4).

    Log-probabilities go with the first text that leaves at or after their token.
    """

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        stops: Collection[int],
        parser: VllmToolParser,
        allows: Callable[[str], bool],
        *,
        one_call: bool = False,
    ) -> None:
        self.done = False
        self._vocabulary = vocabulary
        self._stops = stops
        self._parser: VllmToolParser | None = parser
        self._counted = parser
        self._allows = allows
        self._one_call = one_call
        self._speech = DeltaBuffer()
        self._decoder = vocabulary.decoder()
        self._spacing = WhitespaceBuffer()
        self._voice: TextChannel | None = None  # of the open item
        self._index = -1  # of the open call
        self._logprobs: list[Json] = []

    @property
    def reasoning_tokens(self) -> int:
        """How many tokens were spent on reasoning, as the parser counts."""
        return self._counted.reasoning_tokens

    def feed(self, chunk: Chunk) -> list[Delta_]:
        """Pieces that these tokens complete."""
        for index, token in enumerate(chunk.tokens):
            if self.done:
                break
            self._hear(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
        return self._speech.take()

    def finish(self) -> list[Delta_]:
        """Whatever was held back. The open item stays open."""
        if not self.done:
            self._finish(cut=True)
        return self._speech.take()

    def _hear(self, token: int, logprob: Logprob | None) -> None:
        if token in self._stops:
            self._finish(cut=False)
            self._end_item()
            return
        text = self._decoder.feed(token)
        if logprob is not None:
            self._logprobs.append(to_wire(logprob, self._vocabulary.spell))
        if self._parser is None:
            self._say(MESSAGE, text)
            return
        try:
            self._tell(self._parser.feed(text, token))
        except Exception:
            logger.exception("a parser of vLLM failed; what follows is taken as text")
            self._parser = None
            self._say(MESSAGE, text)

    def _finish(self, *, cut: bool) -> None:
        parser, self._parser = self._parser, None
        if parser is not None:
            self._tell_rest(parser, cut=cut)
        if not cut and not self.done:
            self._say(self._voice or MESSAGE, self._decoder.flush())
        if self._voice is MESSAGE:
            self._speech.say(MESSAGE, self._spacing.flush())

    def _tell_rest(self, parser: VllmToolParser, *, cut: bool) -> None:
        try:
            self._tell(delta for delta in parser.finish() if not (cut and (delta is ITEM_END or _half_a_marker(delta))))
        except Exception:
            logger.exception("a parser of vLLM failed at the end; what it held back is lost")

    def _tell(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if self.done:
                return
            if delta is ITEM_END:
                self._end_item()
                continue
            self._say(REASONING, getattr(delta, "reasoning", None) or "")
            self._say(MESSAGE, delta.content or "")
            for call in delta.tool_calls or ():
                self._call(call)

    def _say(self, voice: TextChannel, text: str) -> None:
        if not text:
            return
        if voice is not self._voice:
            self._end_item()
            self._voice = voice
            if voice is REASONING:  # it stands behind a marker, whether or not the parser told
                self._spacing.reset()
        said = self._spacing.feed(text)
        logprobs = self._logprobs if said and voice is MESSAGE else []
        self._speech.say(voice, said, logprobs)
        if said:
            self._logprobs = []

    def _call(self, call: Delta) -> None:
        """A call begins or goes on; one without a name, or that is not allowed, is text."""
        name, arguments = call.function.name, call.function.arguments or ""
        if call.index != self._index:
            self._end_item()
            self._index = call.index
            allowed = bool(name) and self._allows(name)
            self._voice = ARGUMENTS if allowed else MESSAGE
            if allowed:
                self._speech.add(Call(name))
        self._speech.say(self._voice or MESSAGE, arguments)

    def _end_item(self) -> None:
        self._speech.end()
        self.done = self._one_call and self._voice is ARGUMENTS
        if self._voice is not None:
            self._spacing.reset()
        self._voice, self._index = None, -1
