"""API formats of the measured requests: path, body, and the bytes by which a client counts a stream without parsing it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ApiStream:
    """API format: `body` translates the fields of a request to Responses.

    `event` begins an event, each of `deltas` is once in an event with more output, and each of `texts` once in an event with more
    text outside the reasoning. `terminal` matches the end and how it came, `tokens` the number of generated tokens.
    """

    path: str
    body: Callable[[Fields], Fields]
    event: bytes
    deltas: Sequence[bytes]
    texts: Sequence[bytes]
    terminal: re.Pattern[bytes]
    tokens: re.Pattern[bytes]


def _chat_body(fields: Fields) -> Fields:
    return {**_message_body(fields), "stream_options": {"include_usage": True}}


def _message_body(fields: Fields) -> Fields:
    same = {name: value for name, value in fields.items() if name not in ("input", "max_output_tokens", "store")}
    return {**same, "messages": [{"role": "user", "content": fields["input"]}], "max_tokens": fields["max_output_tokens"]}


_OUTPUT_TOKENS = re.compile(rb'"output_tokens":\s*(\d+)')
RESPONSES: Final = ApiStream(
    "/v1/responses",
    lambda fields: fields,
    b"event: ",
    (b".delta\n",),
    (b"event: response.output_text.delta\n",),
    re.compile(rb"event: response\.(completed|incomplete|failed)\r?\n"),
    _OUTPUT_TOKENS,
)
# The first chunk has a role; the reasoning has the name of DeepSeek's API or the newer one of vLLM.
_CHAT_TEXT: Final = b'"delta":{"content":'
CHAT_COMPLETIONS: Final = ApiStream(
    "/v1/chat/completions",
    _chat_body,
    b"data: {",
    (_CHAT_TEXT, b'"delta":{"reasoning'),
    (_CHAT_TEXT,),
    re.compile(rb'"finish_reason":"(\w+)"'),
    re.compile(rb'"completion_tokens":\s*(\d+)'),
)
MESSAGES: Final = ApiStream(
    "/v1/messages",
    _message_body,
    b"event: ",
    (b'"delta":{"type":"',),
    (b'"delta":{"type":"text_delta"',),
    re.compile(rb"event: (message_stop)\n"),
    _OUTPUT_TOKENS,
)
