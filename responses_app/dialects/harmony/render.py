"""Rendering of harmony messages: the harmony library encodes the frame, tiktoken the text."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from openai_harmony import Author, DeveloperContent, HarmonyEncoding, Message, RenderOptions, Role, SystemContent

from responses_app.dialects.harmony.own_tools import namespace_of
from responses_app.dialects.harmony.prompt import (
    DeveloperMessage,
    HarmonyMessage,
    Head,
    SystemMessage,
    TextMessage,
    tool_description,
)
from responses_app.dialects.harmony.text import LONG_RUN, MAX_RUN, harmony_text
from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.token_cache import TokenCache

# Placeholder of the instructions while the library renders the rest, from the private use area.
_INSTRUCTIONS = "\ue0f4"
# Placeholder of a long run. The library escapes the quotation mark where it writes a string as JSON.
_RUN_PLACEHOLDER = '\ue0f5{}"\ue0f6'
_RUN_NUMBER = re.compile('\ue0f5([0-9]{1,9})(\\\\?)"\ue0f6')


class HarmonyRenderer:
    """Renderer of messages. `functions` means that the conversation offers functions."""

    def __init__(self, encoding: HarmonyEncoding) -> None:
        self._encoding = encoding
        self._text = harmony_text(encoding)
        self._frame = lru_cache(maxsize=4096)(self._render_frame)
        # Few different system messages exist on a day, and the library takes 0.2 ms for each.
        self._system = lru_cache(maxsize=64)(self._render_system)

    def tokens(
        self, message: HarmonyMessage, *, functions: bool, token_cache: TokenCache | None = None, budget: Budget | None = None
    ) -> list[int]:
        """Return the token ids of a message, from `token_cache` if cached. Raises ValueError, TooLong, Stopped."""
        before = 0 if budget is None else budget.spent
        if token_cache is None:
            tokens = self._render(message, functions, budget)
        else:
            tokens = list(token_cache.tokens(f"{functions} {_key(message)}", lambda: self._render(message, functions, budget)))
        if budget is not None:
            # Long texts are counted already.
            budget.spend(before + len(tokens) - budget.spent)
        return tokens

    def encode(self, text: str) -> list[int]:
        """Encode a text with special tokens."""
        ids: list[int] = self._encoding.encode(text, allowed_special="all")
        return ids

    def _render(self, message: HarmonyMessage, functions: bool, budget: Budget | None) -> list[int]:
        if isinstance(message, SystemMessage):
            return list(self._system(message, functions))
        head, text = (
            (message.head, message.text)
            if isinstance(message, TextMessage)
            else (Head(Role.DEVELOPER), self._developer(message))
        )
        first, last = self._frame(head)
        return [*first, *self._text.encode(text, budget), *last]

    def _render_system(self, message: SystemMessage, functions: bool) -> list[int]:
        """Return the tokens of the system message, as written by the library."""
        content = SystemContent.new().with_reasoning_effort(message.effort)
        for name in message.own_tools:
            content = content.with_tools(namespace_of(name))
        content = content.with_conversation_start_date(message.today)
        return self._render_by_library(Message.from_role_and_content(Role.SYSTEM, content), functions)

    def _render_frame(self, head: Head) -> tuple[list[int], list[int]]:
        """Return the tokens before and after the text of a message."""
        empty = Message.from_author_and_content(Author(role=head.role, name=head.name), "")
        empty.channel, empty.recipient, empty.content_type = head.channel, head.recipient, head.content_type
        tokens = self._render_by_library(empty, False)
        return tokens[:-1], tokens[-1:]

    def _developer(self, message: DeveloperMessage) -> str:
        """Return the text of a developer message, as written by the library."""
        runs = _Runs()
        content = DeveloperContent.new()
        if message.instructions:
            content = content.with_instructions(_INSTRUCTIONS)
        if message.tools:
            content = content.with_function_tools([tool_description(runs.replace_in(tool)) for tool in message.tools])
        first, last = self._frame(Head(Role.DEVELOPER))
        tokens = self._render_by_library(Message.from_role_and_content(Role.DEVELOPER, content), False)
        text = self._encoding.decode_utf8(tokens[len(first) : len(tokens) - len(last)])
        return runs.restore_in(text.replace(_INSTRUCTIONS, message.instructions, 1) if message.instructions else text)

    def _render_by_library(self, message: Message, functions: bool) -> list[int]:
        tokens: list[int] = self._encoding.render(message, RenderOptions(conversation_has_function_tools=functions))
        return tokens


class _Runs:
    """Long runs of characters, replaced by placeholders in tools and restored in the rendered text."""

    def __init__(self) -> None:
        self._runs: dict[int, str] = {}

    def replace_in(self, value: Any) -> Any:
        """Replace each long run of a JSON value by a placeholder, in property names too."""
        if isinstance(value, str):
            return LONG_RUN.sub(self._replace, value) if len(value) >= MAX_RUN else value
        if isinstance(value, dict):
            return {self.replace_in(key): self.replace_in(entry) for key, entry in value.items()}
        return [self.replace_in(entry) for entry in value] if isinstance(value, list) else value

    def restore_in(self, text: str) -> str:
        """Restore each run once: text of the client may look like a placeholder."""
        left = dict(self._runs)

        def run(mark: re.Match[str]) -> str:
            run_tokens = left.pop(int(mark[1]), None)
            if run_tokens is None:
                return mark[0]
            return json.dumps(run_tokens, ensure_ascii=False)[1:-1] if mark[2] else run_tokens

        return _RUN_NUMBER.sub(run, text) if left else text

    def _replace(self, run: re.Match[str]) -> str:
        number = len(self._runs)
        self._runs[number] = run[0]
        return _RUN_PLACEHOLDER.format(number)


def _key(message: HarmonyMessage) -> str:
    return f"{type(message).__name__} {json.dumps(message, ensure_ascii=False)}"
