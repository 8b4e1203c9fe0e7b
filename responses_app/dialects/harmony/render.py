"""Messages to harmony token ids: the frame of a message by the harmony library, its text by tiktoken."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from openai_harmony import Author, DeveloperContent, HarmonyEncoding, Message, RenderOptions, Role

from responses_app.dialects.harmony.prompt import DeveloperMessage, HarmonyMessage, Head, TextMessage, described
from responses_app.dialects.harmony.text import SPACES, harmony_text
from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.token_cache import TokenCache

# Stand for a text while the library renders the rest. From the private use area.
_INSTRUCTIONS = "\ue0f4"
# The quotation mark shows whether the library writes a string as JSON, which puts a backslash before it.
_RUN = '\ue0f5{}"\ue0f6'
_RUN_NUMBER = re.compile('\ue0f5([0-9]{1,9})(\\\\?)"\ue0f6')
# The library takes quadratic time for longer runs.
_LONGEST_RUN = 512
_LONG_RUN = re.compile(rf"[^\r\n{SPACES}]{{{_LONGEST_RUN},}}+|[{SPACES}]{{{_LONGEST_RUN},}}+")


class HarmonyRenderer:
    """Renders message by message. `functions` says whether any message offers functions."""

    def __init__(self, encoding: HarmonyEncoding) -> None:
        self._encoding = encoding
        self._text = harmony_text(encoding)
        self._frame = lru_cache(maxsize=4096)(self._render_frame)

    def tokens(
        self, message: HarmonyMessage, *, functions: bool, memo: TokenCache | None = None, budget: Budget | None = None
    ) -> list[int]:
        """The token ids of one message, which the memo may know. Raises ValueError, TooLong, Stopped."""
        before = 0 if budget is None else budget.spent
        if memo is None:
            tokens = self._made(message, functions, budget)
        else:
            tokens = list(memo.tokens(f"{functions} {_key(message)}", lambda: self._made(message, functions, budget)))
        if budget is not None:
            # The long texts among them are counted already.
            budget.spend(before + len(tokens) - budget.spent)
        return tokens

    def encode(self, text: str) -> list[int]:
        """The token ids of a text in which special tokens are written as they are."""
        ids: list[int] = self._encoding.encode(text, allowed_special="all")
        return ids

    def _made(self, message: HarmonyMessage, functions: bool, budget: Budget | None) -> list[int]:
        if isinstance(message, Message):
            return self._library(message, functions)
        head, text = (
            (message.head, message.text)
            if isinstance(message, TextMessage)
            else (Head(Role.DEVELOPER), self._developer(message))
        )
        first, last = self._frame(head)
        return [*first, *self._text.encode(text, budget), *last]

    def _render_frame(self, head: Head) -> tuple[list[int], list[int]]:
        """What stands before and behind the text of a message."""
        said = Message.from_author_and_content(Author(role=head.role, name=head.name), "")
        said.channel, said.recipient, said.content_type = head.channel, head.recipient, head.content_type
        tokens = self._library(said, False)
        return tokens[:-1], tokens[-1:]

    def _developer(self, message: DeveloperMessage) -> str:
        """The text of a developer message, as the library writes it."""
        runs = _Runs()
        content = DeveloperContent.new()
        if message.instructions:
            content = content.with_instructions(_INSTRUCTIONS)
        if message.tools:
            content = content.with_function_tools([described(runs.without(tool)) for tool in message.tools])
        first, last = self._frame(Head(Role.DEVELOPER))
        tokens = self._library(Message.from_role_and_content(Role.DEVELOPER, content), False)
        text = self._encoding.decode_utf8(tokens[len(first) : len(tokens) - len(last)])
        return runs.put_back(text.replace(_INSTRUCTIONS, message.instructions, 1) if message.instructions else text)

    def _library(self, message: Message, functions: bool) -> list[int]:
        tokens: list[int] = self._encoding.render(message, RenderOptions(conversation_has_function_tools=functions))
        return tokens


class _Runs:
    """Long runs of characters, taken out of the strings of tools and put back into their rendering."""

    def __init__(self) -> None:
        self._found: dict[int, str] = {}

    def without(self, value: Any) -> Any:
        """The value with a mark in place of each run, also in the names of its properties."""
        if isinstance(value, str):
            return _LONG_RUN.sub(self._taken, value) if len(value) >= _LONGEST_RUN else value
        if isinstance(value, dict):
            return {self.without(key): self.without(one) for key, one in value.items()}
        return [self.without(one) for one in value] if isinstance(value, list) else value

    def put_back(self, text: str) -> str:
        """The text with the runs, each of them once: a mark may also be the client's own text."""
        left = dict(self._found)

        def run(mark: re.Match[str]) -> str:
            found = left.pop(int(mark[1]), None)
            if found is None:
                return mark[0]
            return json.dumps(found, ensure_ascii=False)[1:-1] if mark[2] else found

        return _RUN_NUMBER.sub(run, text) if left else text

    def _taken(self, run: re.Match[str]) -> str:
        number = len(self._found)
        self._found[number] = run[0]
        return _RUN.format(number)


def _key(message: HarmonyMessage) -> str:
    return message.to_json() if isinstance(message, Message) else json.dumps(message, ensure_ascii=False)
