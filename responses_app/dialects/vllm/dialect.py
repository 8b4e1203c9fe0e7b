"""Chat dialect with the model's chat template and vLLM's output parsers."""

from __future__ import annotations

from collections.abc import Sequence

from responses_app.dialects.base import Turn
from responses_app.dialects.chat.dialect import QUIET, ChatDialect
from responses_app.dialects.chat.prompt import ImagePlaceholder
from responses_app.dialects.chat.structural_tags import reasoning_formats
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.constraints.structural_tag import constraint, sequence, text_format
from responses_app.dialects.formats.base import OutputFormat, ReasoningFormat
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.tools.selection import toolset
from responses_app.dialects.vllm.adapters import ParserRegistry
from responses_app.dialects.vllm.parser import VllmOutputParser
from responses_app.engine_interface import Constraint


class VllmDialect(ChatDialect):
    """Dialect of chat models whose format is not declared in `formats.table`."""

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        template: ChatTemplate,
        stop_token_ids: Sequence[int],
        registry: ParserRegistry,
        *,
        supports_images: bool = False,
        image_placeholder: ImagePlaceholder | None = None,
    ) -> None:
        marks = registry.marks
        super().__init__(
            vocabulary,
            template,
            stop_token_ids,
            OutputFormat(ReasoningFormat((marks[0],), (marks[1],)) if marks else None),
            may_think=marks is not None,
            supports_images=supports_images,
            image_placeholder=image_placeholder,
        )
        self._registry = registry

    def constrain(self, turn: Turn) -> Constraint | None:
        """Return a structural tag over the whole output. A text format excludes tool calls."""
        tools, content = toolset(turn), text_format(turn)
        if tools.forced:
            only_one = len(tools.forced) == 1 or not turn.parallel_tool_calls
            content = self._registry.calls(tools.forced, only_one=only_one)
        if content is None:
            return None
        return constraint(sequence(*reasoning_formats(self._reasoning_start(turn), self._output), content))

    def parser_for(self, turn: Turn) -> VllmOutputParser:
        """Create an output parser. With `parallel_tool_calls: false` the parser ends after the first call."""
        allows = toolset(turn).allows
        # The parser gets every tool, so that it also finds calls of tools that are not allowed.
        parser = self._registry.parser(turn.tools, self._opening(turn), thinking=turn.effort not in QUIET)
        return VllmOutputParser(self.vocabulary, self.stop_token_ids, parser, allows, one_call=not turn.parallel_tool_calls)

    def _opening(self, turn: Turn) -> list[int]:
        """Return the prompt after the last completed turn: earlier reasoning markers do not concern the output."""
        prompt = self.render(turn)
        turn_ends = (at for at in reversed(range(len(prompt))) if prompt[at] in self.stop_token_ids)
        return prompt[next(turn_ends, -1) + 1 :]
