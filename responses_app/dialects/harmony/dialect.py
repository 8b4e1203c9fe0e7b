"""Talks harmony, the language of gpt-oss models."""

from __future__ import annotations

from collections.abc import Sequence

from openai_harmony import load_harmony_encoding

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.harmony import structural_tags
from responses_app.dialects.harmony.parser import CALL, END_OF_TEXT, RETURN, HarmonyParser, bytes_of
from responses_app.dialects.harmony.prompt import messages
from responses_app.dialects.harmony.render import HarmonyRenderer
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.dialects.tools.selection import toolset
from responses_app.engine_interface import Constraint

# Which reasoning the prompt keeps is decided in harmony_prompt: the library's rule looks at the first final answer only.
_NEXT = "<|start|>assistant"


class HarmonyDialect:
    """The harmony dialect; the vocabulary is that of the harmony library."""

    stop_token_ids: Sequence[int] = (RETURN, CALL, END_OF_TEXT)
    supports_images = False

    def __init__(self) -> None:
        self.encoding = load_harmony_encoding("HarmonyGptOss")
        self._renderer = HarmonyRenderer(self.encoding)
        self._next = self._renderer.encode(_NEXT)

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        """Prompt token ids, up to `<|start|>assistant`. Raises BadTurn, TooLong, Stopped."""
        tools = toolset(turn)
        said = messages(turn, tools)
        tokens: list[int] = []
        try:
            for message in said:
                tokens += self._renderer.tokens(message, functions=bool(tools.offered), memo=turn.memo, budget=budget)
        except TooLong:
            raise
        except ValueError as error:  # text that is not Unicode: lone surrogates
            raise UnsupportedInput(f"The input cannot be rendered: {error}", "input", "invalid_value") from error
        if budget is not None:
            budget.spend(len(self._next))
        return [*tokens, *self._next]

    def constrain(self, turn: Turn) -> Constraint | None:
        """A structural tag over the whole answer, reasoning included. Raises BadTurn."""
        return structural_tags.constrain(turn, toolset(turn))

    def token_text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones as they are written."""
        return b"".join(bytes_of(self.encoding, token) for token in tokens).decode(errors="replace")

    def parser_for(self, turn: Turn) -> HarmonyParser:
        """A fresh listener. With `parallel_tool_calls: false` it hides what follows the first call (§3.9)."""
        bound = turn.format.get("type", "text") != "text"
        return HarmonyParser(self.encoding, toolset(turn), one_call=not turn.parallel_tool_calls, bound=bound)
