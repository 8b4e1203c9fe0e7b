"""Chat dialect with the model's chat template and a declared output format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from responses_app.dialects.base import OutputParser, Turn, UnsupportedInput
from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.parser import ChatParser
from responses_app.dialects.chat.prompt import ImagePlaceholder
from responses_app.dialects.chat.structural_tags import ReasoningStart, reasoning_formats
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.constraints.structural_tag import (
    Format,
    constraint,
    one_of,
    sequence,
    tags,
    text_format,
    triggered,
)
from responses_app.dialects.formats.base import OutputFormat, Syntax
from responses_app.dialects.formats.scanner import FormatScanner
from responses_app.dialects.text.delta_buffer import DeltaBuffer
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.tools.selection import Tool, Toolset, toolset
from responses_app.engine_interface import Constraint


class FormatDialect(ChatDialect):
    """Dialect of chat models whose output format is declared in `formats.table`."""

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        template: ChatTemplate,
        stop_token_ids: Sequence[int],
        output: OutputFormat,
        *,
        always_thinks: bool = False,
        supports_images: bool = False,
        image_placeholder: ImagePlaceholder | None = None,
    ) -> None:
        reasoning = output.reasoning
        super().__init__(
            vocabulary,
            template,
            stop_token_ids,
            always_thinks=always_thinks,
            marks=(reasoning.begins[0], reasoning.ends[0]) if reasoning else None,
            may_think=reasoning is not None,
            supports_images=supports_images,
            image_placeholder=image_placeholder,
        )
        self._output = output

    def constrain(self, turn: Turn) -> Constraint | None:
        """Return a structural tag over the whole output, None for free output. Raises UnsupportedInput.

        A named tool is called once; required tools at least once. A text format constrains the text, so with tools the model may
        call instead. Without both the text is free, and only calls of tools with `strict` are constrained.
        """
        tools, content = toolset(turn), text_format(turn)
        if not tools.offered and content is None:
            return None
        if tools.forced:
            only_one = len(tools.forced) == 1 or not turn.parallel_tool_calls
            content = _calls(self._syntax(), tools.forced, only_one=only_one)
        elif content is None:
            return self._free_with_calls(tools, only_one=not turn.parallel_tool_calls)
        elif tools.offered and self._output.calls is not None:
            content = one_of([content, _calls(self._syntax(), tools.offered, only_one=not turn.parallel_tool_calls)])
        return constraint(sequence(*self._reasoning_formats(turn), content))

    def parser_for(self, turn: Turn) -> OutputParser:
        """Create an output parser. With `parallel_tool_calls: false` the parser ends after the first call."""
        deltas = DeltaBuffer()
        scanner = FormatScanner(
            deltas,
            self._output,
            toolset(turn).allows,
            {str(tool["name"]): _parameters(tool) for tool in turn.tools if tool.get("type") == "function"},
            thinking=self._output.reasoning is not None and self._reasoning_start(turn) is ReasoningStart.OPEN,
            one_call=not turn.parallel_tool_calls,
        )
        return ChatParser(self.vocabulary, self.stop_token_ids, deltas, scanner)

    def _syntax(self) -> Syntax:
        if self._output.calls is None:
            raise UnsupportedInput("This model has no format for tool calls.", "tool_choice", "unsupported_value")
        return self._output.calls.syntax

    def _free_with_calls(self, tools: Toolset, *, only_one: bool) -> Constraint | None:
        if self._output.calls is None or not any(tool.get("strict") for tool in tools.offered):
            return None
        syntax = self._syntax()
        return constraint(triggered(syntax.trigger, syntax.tags(tools.offered, only_one=only_one), only_one=only_one))

    def _reasoning_formats(self, turn: Turn) -> list[Format]:
        if self._output.reasoning is None:
            return []
        return reasoning_formats(self._reasoning_start(turn), self._marks)


def _calls(syntax: Syntax, tools: Sequence[Tool], *, only_one: bool) -> Format:
    return tags(syntax.tags(tools, only_one=only_one), syntax.separator, only_one=only_one)


def _parameters(tool: Tool) -> Mapping[str, Any]:
    schema = tool.get("parameters")
    return schema if isinstance(schema, Mapping) else {}
