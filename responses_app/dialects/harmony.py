"""Talks harmony, the language of gpt-oss models."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from openai_harmony import Conversation, Message, RenderConversationConfig, Role, load_harmony_encoding

from responses_app.dialects import harmony_tags
from responses_app.dialects.base import BadTurn, Turn
from responses_app.dialects.harmony_listener import CALL, END_OF_TEXT, RETURN, HarmonyListener, bytes_of
from responses_app.dialects.harmony_prompt import messages
from responses_app.dialects.memo import Memo
from responses_app.dialects.toolset import toolset
from responses_app.engines.border import Constraint

# Which reasoning the prompt keeps is decided in harmony_prompt: the library's rule looks at the first final answer only.
_NEXT = "<|start|>assistant"
_KEEP_ANALYSIS = RenderConversationConfig(auto_drop_analysis=False)


class Harmony:
    """The harmony dialect; the vocabulary is that of the harmony library."""

    stop_token_ids: Sequence[int] = (RETURN, CALL, END_OF_TEXT)
    sees = False

    def __init__(self) -> None:
        self.encoding = load_harmony_encoding("HarmonyGptOss")

    def render(self, turn: Turn) -> list[int]:
        """Prompt token ids, up to `<|start|>assistant`. Raises BadTurn."""
        tools = toolset(turn)
        said = messages(turn, tools)
        try:
            if turn.memo is not None:
                return self._known(said, turn.memo, functions=bool(tools.offered))
            whole = Conversation.from_messages(said)
            tokens: list[int] = self.encoding.render_conversation_for_completion(whole, Role.ASSISTANT, _KEEP_ANALYSIS)
        except ValueError as error:  # text that is not Unicode: lone surrogates
            raise BadTurn(f"The input cannot be rendered: {error}", "input", "invalid_value") from error
        return tokens

    def _known(self, said: Sequence[Message], memo: Memo, *, functions: bool) -> list[int]:
        """As the library renders a conversation: message by message, each told whether there are functions, and the next one's head."""
        how = {"conversation_has_function_tools": functions}
        tokens: list[int] = []
        for text in (message.to_json() for message in said):
            # Past the library's own wrapper, which would write the same JSON again.
            tokens += memo.tokens(f"{functions} {text}", partial(self.encoding._inner.render, message_json=text, render_options=how))
        return [*tokens, *memo.tokens(_NEXT, partial(self.encoding.encode, _NEXT, allowed_special="all"))]

    def constrain(self, turn: Turn) -> Constraint | None:
        """A structural tag over the whole answer, reasoning included. Raises BadTurn."""
        return harmony_tags.constrain(turn, toolset(turn))

    def spell(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones as they are written."""
        return b"".join(bytes_of(self.encoding, token) for token in tokens).decode(errors="replace")

    def listen(self, turn: Turn) -> HarmonyListener:
        """A fresh listener. With `parallel_tool_calls: false` it hides what follows the first call (§3.9)."""
        bound = turn.format.get("type", "text") != "text"
        return HarmonyListener(self.encoding, toolset(turn), one_call=not turn.parallel_tool_calls, bound=bound)
