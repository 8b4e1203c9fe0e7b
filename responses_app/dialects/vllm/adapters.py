"""Adapters of vLLM's output parsers, fed one token at a time, for formats without a scanner of our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from responses_app.dialects.base import UnsupportedInput
from responses_app.dialects.chat.prompt import template_tool
from responses_app.dialects.constraints.structural_tag import Format
from responses_app.dialects.tools.selection import Tool
from responses_app.dialects.vllm.whole_output import WholeOutput

Delta = Any
"""A DeltaMessage of vLLM with optional `reasoning`, `content` and `tool_calls`."""
ITEM_END: Final = None


class VllmToolParser(Protocol):
    """Converts text and tokens of a generation to deltas; yields ITEM_END where an item is known to be complete."""

    @property
    def reasoning_tokens(self) -> int:
        """Number of reasoning tokens so far."""
        ...

    def feed(self, text: str, token: int) -> Iterator[Delta]:
        """Yield the deltas completed by `token`; `text` are the characters completed by `token`."""
        ...

    def finish(self, *, cut: bool) -> Iterator[Delta]:
        """Yield the deltas held back. `cut` means that the model was not finished."""
        ...


class EngineParser:
    """Adapter of a declarative parser. Events are converted singly, to preserve the order."""

    def __init__(self, engine: Any, prompt: Sequence[int]) -> None:
        from vllm.parser.engine.parser_engine_config import ParserState

        closed = engine.is_reasoning_end(list(prompt))
        engine.initialize_streaming(initial_state=ParserState.CONTENT if closed else None)
        engine.adjust_initial_state_from_prompt(prompt)
        self._engine = engine

    @property
    def reasoning_tokens(self) -> int:
        """Number of reasoning tokens so far."""
        return int(self._engine.count_reasoning_tokens(()))

    def feed(self, text: str, token: int) -> Iterator[Delta]:
        """Yield the deltas completed by `token`."""
        for event in self._engine._feed(text, [token]):
            yield from self._convert(event, finished=False)

    def finish(self, *, cut: bool) -> Iterator[Delta]:
        """Yield the deltas held back. The engine ends names and arguments that were cut, so these are no calls."""
        for event in self._engine._engine.finish():
            for delta in self._convert(event, finished=True):
                yield _without_calls(delta) if cut and delta is not ITEM_END else delta

    def _convert(self, event: Any, *, finished: bool) -> Iterator[Delta]:
        delta = self._engine._strip_trailing_reasoning(self._engine._events_to_delta([event], finished=finished))
        if delta is not None:
            yield delta
        if event.type.name in ("REASONING_END", "TOOL_CALL_END"):
            yield ITEM_END


class LegacyParser:
    """Adapter of a pair of older parsers. Each token is delayed until the next: the parsers must know the last token.

    Some parsers do not stream. So the whole output is parsed again at the end, and the part that is missing is added.
    """

    def __init__(self, make_parser: Callable[[], Any], request: Any, prompt: Sequence[int]) -> None:
        self._make_parser = make_parser
        self._parser = make_parser()
        self._request = request
        self._prompt = list(prompt)
        self._tokens: list[int] = []
        self._waiting: tuple[str, list[int]] | None = None
        self._whole = WholeOutput()

    @property
    def reasoning_tokens(self) -> int:
        """Number of reasoning tokens so far."""
        return int(self._parser.count_reasoning_tokens(self._tokens))

    def feed(self, text: str, token: int) -> Iterator[Delta]:
        """Yield the deltas completed by the token before `token`."""
        waiting, self._waiting = self._waiting, (text, [token])
        self._tokens.append(token)
        self._whole.text += text
        if waiting is not None:
            yield from self._parse(*waiting, finished=False)

    def finish(self, *, cut: bool) -> Iterator[Delta]:
        """Yield the deltas of the last token, and what only a parser of the whole output finds."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            yield from self._parse(*waiting, finished=not cut)
        if not cut:
            yield from self._whole.missing(self._make_parser(), self._request, self._prompt)

    def _parse(self, text: str, tokens: list[int], *, finished: bool) -> Iterator[Delta]:
        delta = self._parser.parse_delta(text, tokens, self._request, self._prompt, finished=finished)
        if delta is not None:
            self._whole.add(delta)
            yield delta


class ParserRegistry:
    """Parsers of a model, by names of vLLM. Raises ValueError for unknown names."""

    def __init__(self, tokenizer: Any, reasoning_parser: str | None, tool_parser: str | None) -> None:
        from vllm.parser.parser_manager import ParserManager

        try:
            self._pair = ParserManager.get_parser(
                tool_parser_name=tool_parser,
                reasoning_parser_name=reasoning_parser,
                enable_auto_tools=True,
                tokenizer=tokenizer,
            )
        except TypeError as error:
            raise ValueError(str(error)) from error
        self._tokenizer = tokenizer
        self._engine = self._common_engine()

    def parser(self, tools: Sequence[Tool], prompt: Sequence[int], *, thinking: bool) -> VllmToolParser:
        """Create a parser for a generation."""
        params = _tools(tools)
        kwargs = {"chat_template_kwargs": {"enable_thinking": thinking, "thinking": thinking}}
        if self._engine is not None:
            return EngineParser(self._engine(self._tokenizer, params, **kwargs), prompt)
        return LegacyParser(lambda: self._pair(self._tokenizer, params, **kwargs), _request(params), prompt)

    @property
    def marks(self) -> tuple[str, str] | None:
        """Markers of the beginning and end of reasoning, None if unknown."""
        parser = self._pair(self._tokenizer).reasoning_parser
        start = getattr(parser, "reasoning_start_str", None)
        end = getattr(parser, "reasoning_end_str", None)
        return (str(start), str(end)) if start and end else None

    def calls(self, tools: Sequence[Tool], *, only_one: bool) -> Format:
        """Return the format of a call, repeatable unless `only_one`. Raises UnsupportedInput without a grammar in vLLM."""
        from vllm.tool_parsers.structural_tag_registry import get_model_structural_tag, limit_to_single_tool_call

        model = getattr(self._pair.tool_parser_cls, "structural_tag_model", None)
        try:
            tag = model and get_model_structural_tag(model, _tools(tools), "required", reasoning=False)
        except ValueError:
            tag = None
        if not tag:
            raise UnsupportedInput("A tool call cannot be required of this model.", "tool_choice", "unsupported_value")
        return dict((limit_to_single_tool_call(tag) if only_one else tag).model_dump(mode="json")["format"])

    def _common_engine(self) -> Callable[..., Any] | None:
        """Return the declarative engine shared by both parsers, if any."""
        classes = [each for each in (self._pair.reasoning_parser_cls, self._pair.tool_parser_cls) if each is not None]
        engines = {getattr(each, "_parser_engine_cls", None) for each in classes}
        return engines.pop() if len(engines) == 1 else None


def _without_calls(delta: Delta) -> Delta:
    """Return `delta` with the names of calls as text."""
    names = "".join(call.function.name or "" for call in delta.tool_calls or ())
    return delta.model_copy(update={"content": (delta.content or "") + names or None, "tool_calls": []})


def _tools(tools: Sequence[Tool]) -> list[Any]:
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam

    return [ChatCompletionToolsParam.model_validate(template_tool(tool)) for tool in tools]


def _request(tools: Sequence[Any]) -> Any:
    """Build the request for older parsers. Tool choice `auto` makes them parse the model's own call format."""
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

    more: Mapping[str, Any] = {"tools": list(tools), "tool_choice": "auto"} if tools else {}
    return ChatCompletionRequest(messages=[{"role": "user", "content": ""}], **more)
