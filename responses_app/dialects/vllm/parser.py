"""Output parser on top of vLLM's parsers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Iterable

from responses_app.dialects.text.delta_buffer import ARGUMENTS, MESSAGE, REASONING, DeltaBuffer, TextChannel
from responses_app.dialects.text.logprobs import to_wire
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.text.whitespace import WhitespaceBuffer
from responses_app.dialects.vllm.adapters import ITEM_END, Delta, VllmToolParser
from responses_app.dialects.vllm.raw_text import RawText
from responses_app.engine_interface import Chunk, Logprob
from responses_app.protocol.deltas import Call, Json
from responses_app.protocol.deltas import Delta as ProtocolDelta
from responses_app.protocol.output_problems import CALL_WITHOUT_NAME, INVALID_UTF8, PARSER_FAILED, TOOL_NOT_ALLOWED

logger = logging.getLogger(__name__)


# Text held back by a parser as a possible `<tool_call>`, `</think>`, `[TOOL_CALLS]` or similar marker.
_PARTIAL_MARKER = re.compile(r"\s*(?:<[/|]?[\w|=]*|\[[A-Z_]*)")


def _is_partial_marker(delta: Delta) -> bool:
    """Return True if the delta is only the beginning of a marker, cut off at the end, and therefore no text."""
    visible = [getattr(delta, "reasoning", None), getattr(delta, "content", None)]
    return (
        not getattr(delta, "tool_calls", None)
        and any(visible)
        and all(not one or _PARTIAL_MARKER.fullmatch(one) for one in visible)
    )


class VllmOutputParser:
    """Converts deltas of vLLM to deltas of the protocol. After a failure of the parser the rest becomes text.

    Log-probabilities are attached to the first text emitted at or after their token.
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
        self._token_counter = parser
        self._allows = allows
        self._one_call = one_call
        self._deltas = DeltaBuffer()
        self._decoder = vocabulary.decoder()
        self._white_space = WhitespaceBuffer()
        self._channel: TextChannel | None = None  # text channel of the open item
        self._index = -1  # index of the open call
        self._logprobs: list[Json] = []
        self._raw = RawText()
        self._name = ""  # name of a call without arguments so far

    @property
    def reasoning_tokens(self) -> int:
        """Number of reasoning tokens, as counted by the parser."""
        return self._token_counter.reasoning_tokens

    def feed(self, chunk: Chunk) -> list[ProtocolDelta]:
        """Return the deltas completed by `chunk`."""
        for index, token in enumerate(chunk.tokens):
            if self.done:
                break
            self._feed_token(token, chunk.logprobs[index] if index < len(chunk.logprobs) else None)
            if self._decoder.take_error():
                self._deltas.report(INVALID_UTF8)
        return self._deltas.take()

    def finish(self) -> list[ProtocolDelta]:
        """Return the text held back. The open item stays open."""
        if not self.done:
            if self._decoder.has_rest:
                self._deltas.report(INVALID_UTF8)
            self._finish(cut=True)
        return self._deltas.take_rest()

    def _feed_token(self, token: int, logprob: Logprob | None) -> None:
        if token in self._stops:
            self._finish(cut=False)
            self._end_item()
            return
        text = self._decoder.feed(token)
        if logprob is not None:
            self._logprobs.append(to_wire(logprob, self._vocabulary.token_bytes))
        if self._parser is None:
            self._append(MESSAGE, text)
            return
        self._raw.add(text)
        try:
            self._emit(self._parser.feed(text, token))
        except Exception:
            logger.exception("a parser of vLLM failed; the rest is taken as text")
            self._parser = None
            self._deltas.report(PARSER_FAILED)
            self._append_rest()

    def _finish(self, *, cut: bool) -> None:
        parser, self._parser = self._parser, None
        if parser is not None:
            self._emit_rest(parser, cut=cut)
        if cut:
            self._end_cut_name()
        elif not self.done:
            self._append(self._channel or MESSAGE, self._decoder.flush())
        if self._channel is MESSAGE:
            self._deltas.append(MESSAGE, self._white_space.flush())

    def _emit_rest(self, parser: VllmToolParser, *, cut: bool) -> None:
        try:
            rest = parser.finish(cut=cut)
            self._emit(delta for delta in rest if not (cut and (delta is ITEM_END or _is_partial_marker(delta))))
        except Exception:
            logger.exception("a parser of vLLM failed at the end; the rest is taken as text")
            self._deltas.report(PARSER_FAILED)
            self._append_rest()

    def _append_rest(self) -> None:
        """Append the text that a failed parser holds back."""
        self._append(MESSAGE, self._raw.rest)

    def _end_cut_name(self) -> None:
        """Open a call without arguments; a name at the very end of a cut generation may be the beginning of a name, and is text."""
        name, self._name = self._name, ""
        if name and self._raw.rest.strip():
            self._deltas.add(Call(name))
        elif name:
            self._channel = None
            self._append(MESSAGE, name)

    def _emit(self, deltas: Iterable[Delta]) -> None:
        for delta in deltas:
            if self.done:
                return
            if delta is ITEM_END:
                self._end_item()
                continue
            self._pass_on(REASONING, getattr(delta, "reasoning", None) or "")
            self._pass_on(MESSAGE, delta.content or "")
            for call in delta.tool_calls or ():
                self._call(call)

    def _pass_on(self, channel: TextChannel, text: str) -> None:
        if text:
            self._raw.pass_on(text)
            self._append(channel, text)

    def _append(self, channel: TextChannel, text: str) -> None:
        if not text:
            return
        if channel is not self._channel:
            self._end_item()
            self._channel = channel
            if channel is REASONING:  # reasoning follows a marker, even if the parser reports none
                self._white_space.reset()
        visible = self._white_space.feed(text)
        logprobs = self._logprobs if visible and channel is MESSAGE else []
        self._deltas.append(channel, visible, logprobs)
        if visible:
            self._logprobs = []

    def _call(self, call: Delta) -> None:
        """Open or continue a call. A call without a name, or of a tool that is not allowed, becomes text."""
        name, arguments = call.function.name, call.function.arguments or ""
        if call.index != self._index:
            self._end_item()
            self._index = call.index
            allowed = bool(name) and self._allows(name)
            self._channel = ARGUMENTS if allowed else MESSAGE
            self._name = name if allowed else ""
            if not allowed:
                self._deltas.report(TOOL_NOT_ALLOWED if name else CALL_WITHOUT_NAME, name or "")
        for text in filter(None, (name, arguments)):
            self._raw.pass_on(text)
        if arguments:
            self._open_call()
        self._deltas.append(self._channel or MESSAGE, arguments)

    def _open_call(self) -> None:
        """Open a call at its first arguments or at its end: the name of a call that is cut may not be complete before."""
        name, self._name = self._name, ""
        if name:
            self._deltas.add(Call(name))

    def _end_item(self) -> None:
        self._open_call()
        self._deltas.end()
        self.done = self._one_call and self._channel is ARGUMENTS
        if self._channel is not None:
            self._white_space.reset()
        self._channel, self._index = None, -1
