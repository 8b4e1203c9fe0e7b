"""Talks to a chat model through its own template, and listens through vLLM's parser registry."""

from __future__ import annotations

from collections.abc import Sequence

from responses_app.dialects.base import Turn
from responses_app.dialects.chat.dialect import QUIET, ChatDialect
from responses_app.dialects.chat.prompt import ImagePlaceholder
from responses_app.dialects.chat.structural_tags import ReasoningStart, before
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.constraints.structural_tag import answer, constraint, sequence
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.tools.selection import toolset
from responses_app.dialects.vllm.adapters import ParserRegistry
from responses_app.dialects.vllm.parser import VllmOutputParser
from responses_app.engine_interface import Constraint


class VllmDialect(ChatDialect):
    """A chat model with other marks than `<think>` and Hermes calls."""

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        template: ChatTemplate,
        stop_token_ids: Sequence[int],
        registry: ParserRegistry,
        *,
        supports_images: bool = False,
        spell: ImagePlaceholder | None = None,
    ) -> None:
        marks = registry.marks
        super().__init__(vocabulary, template, stop_token_ids, marks=marks, supports_images=supports_images, token_text=spell)
        self._registry = registry
        self._reasons = marks is not None

    def constrain(self, turn: Turn) -> Constraint | None:
        """A structural tag over the whole answer. A format binds every answer: with one the model makes no calls."""
        tools, content = toolset(turn), answer(turn)
        if tools.forced:
            only_one = len(tools.forced) == 1 or not turn.parallel_tool_calls
            content = self._registry.calls(tools.forced, only_one=only_one)
        if content is None:
            return None
        thinking = self._thinking(turn) if self._reasons else ReasoningStart.NEVER
        return constraint(sequence(*before(thinking, self._marks), content))

    def parser_for(self, turn: Turn) -> VllmOutputParser:
        """A fresh listener. With `parallel_tool_calls: false` it hides what follows the first call (§3.9)."""
        allows = toolset(turn).allows
        # The parser knows every tool, so that it finds the marks of a call that is not allowed too.
        parser = self._registry.parser(turn.tools, self._opening(turn), thinking=turn.effort not in QUIET)
        return VllmOutputParser(self.vocabulary, self.stop_token_ids, parser, allows, one_call=not turn.parallel_tool_calls)

    def _opening(self, turn: Turn) -> list[int]:
        """The end of the prompt, behind the last turn that is over: marks of reasoning before it say nothing of the answer (F2)."""
        prompt = self.render(turn)
        over = (at for at in reversed(range(len(prompt))) if prompt[at] in self.stop_token_ids)
        return prompt[next(over, -1) + 1 :]
