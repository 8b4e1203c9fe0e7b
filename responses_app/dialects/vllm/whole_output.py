"""Comparison of the deltas of a vLLM parser with the result of the same parser for the whole output."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

Delta = Any
"""A DeltaMessage of vLLM."""

logger = logging.getLogger(__name__)


class WholeOutput:
    """Output of a generation: the text, and the reasoning, the content and the calls that the deltas had."""

    def __init__(self) -> None:
        self.text = ""
        self._reasoning = ""
        self._content = ""
        self._arguments: dict[int, str] = {}

    def add(self, delta: Delta) -> None:
        """Record a delta."""
        self._reasoning += getattr(delta, "reasoning", None) or ""
        self._content += delta.content or ""
        for call in delta.tool_calls or ():
            self._arguments[call.index] = self._arguments.get(call.index, "") + (call.function.arguments or "")

    def missing(self, parser: Any, request: Any, prompt: Sequence[int]) -> Iterator[Delta]:
        """Yield deltas of what `parser` finds in the whole text and no delta had. A failure of the parser is logged."""
        try:
            reasoning, content, calls = _parse(parser, self.text, request, prompt)
        except Exception:
            logger.exception("a parser of vLLM failed for the whole output")
            return
        yield from self._missing(reasoning, content, calls)

    def _missing(self, reasoning: str, content: str, calls: Sequence[Any]) -> Iterator[Delta]:
        from vllm.entrypoints.generate.base.protocol import DeltaFunctionCall, DeltaMessage, DeltaToolCall

        # Where the two disagree about the kind of a text, the deltas are right.
        if reasoning.startswith(self._reasoning) and content.startswith(self._content):
            for field, rest in (("reasoning", _rest(self._reasoning, reasoning)), ("content", _rest(self._content, content))):
                if rest.strip():
                    yield DeltaMessage(**{field: rest})
        for index, call in enumerate(calls):
            had = self._arguments.get(index)
            rest = _rest(had or "", call.arguments or "")
            name = call.name if had is None else None
            if name or rest:
                function = DeltaFunctionCall(name=name, arguments=rest)
                yield DeltaMessage(tool_calls=[DeltaToolCall(index=index, function=function)])


def _parse(parser: Any, text: str, request: Any, prompt: Sequence[int]) -> tuple[str, str, Sequence[Any]]:
    """Parse the whole text to reasoning, content and calls. Reasoning that the prompt has closed is not searched for."""
    if not hasattr(parser, "extract_tool_calls"):
        parser.set_prompt_token_ids(list(prompt))
        reasoning, content, calls = parser.parse(text, request, enable_auto_tools=True)
        return reasoning or "", content or "", calls or []
    is_closed = parser.reasoning_parser is None or parser.is_reasoning_end(list(prompt))
    reasoning, content = (None, text) if is_closed else parser.extract_reasoning(text, request)
    if parser.tool_parser is None or not request.tools:
        return reasoning or "", content or "", []
    found = parser.extract_tool_calls(content or "", request)
    return reasoning or "", found.content or "", [call.function for call in found.tool_calls]


def _rest(had: str, found: str) -> str:
    """Return the part of `found` behind `had`; nothing if `found` does not begin with `had`."""
    return found[len(had) :] if found.startswith(had) else ""
