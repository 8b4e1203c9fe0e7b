"""Harmony dialect: the chat format of gpt-oss models."""

from __future__ import annotations

from collections.abc import Sequence

from openai_harmony import load_harmony_encoding

from responses_app.dialects.base import Turn, UnsupportedInput
from responses_app.dialects.harmony import structural_tags
from responses_app.dialects.harmony.own_tools import functions_of
from responses_app.dialects.harmony.parser import HarmonyParser
from responses_app.dialects.harmony.prompt import messages
from responses_app.dialects.harmony.render import HarmonyRenderer
from responses_app.dialects.harmony.tokens import CALL, END_OF_TEXT, RETURN, VOCABULARY_SIZE, token_bytes
from responses_app.dialects.text.budget import Budget, TooLong
from responses_app.dialects.toolset import toolset
from responses_app.engine_interface import Constraint

# The reasoning in the prompt is selected in prompt.py: the library's rule considers the first final answer only.
_ANSWER_START = "<|start|>assistant"


class HarmonyDialect:
    """Dialect of gpt-oss; uses the tokenizer of the harmony library."""

    stop_token_ids: Sequence[int] = (RETURN, CALL, END_OF_TEXT)
    vocabulary_size = VOCABULARY_SIZE
    supports_images = False
    efforts: Sequence[str] = ("low", "medium", "high")

    def __init__(self) -> None:
        self.encoding = load_harmony_encoding("HarmonyGptOss")
        self._renderer = HarmonyRenderer(self.encoding)
        self._answer_start = self._renderer.encode(_ANSWER_START)

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        """Render the prompt token ids, up to `<|start|>assistant`. Raises UnsupportedInput, TooLong, Stopped."""
        tools = toolset(turn)
        rendered, functions = messages(turn, tools), functions_of(tools)
        tokens: list[int] = []
        try:
            for message in rendered:
                tokens += self._renderer.tokens(message, functions=bool(functions), token_cache=turn.token_cache, budget=budget)
        except TooLong:
            raise
        except ValueError as error:  # the text has lone surrogates
            raise UnsupportedInput(f"The input cannot be rendered: {error}", "input", "invalid_value") from error
        if budget is not None:
            budget.spend(len(self._answer_start))
        return [*tokens, *self._answer_start]

    def constrain(self, turn: Turn) -> Constraint | None:
        """Return a structural tag over the whole output, reasoning included. Raises UnsupportedInput."""
        return structural_tags.constrain(turn, toolset(turn))

    def token_text(self, tokens: Sequence[int]) -> str:
        """Decode tokens to text, special tokens included."""
        return b"".join(token_bytes(self.encoding, token) for token in tokens).decode(errors="replace")

    def parser_for(self, turn: Turn) -> HarmonyParser:
        """Create an output parser. With `parallel_tool_calls: false` the parser ends after the first call."""
        bound = turn.format.get("type", "text") != "text"
        return HarmonyParser(self.encoding, toolset(turn), one_call=not turn.parallel_tool_calls, bound=bound)
