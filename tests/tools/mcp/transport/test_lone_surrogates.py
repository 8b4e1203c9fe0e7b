"""Replacement of lone surrogates in JSON, whatever the chunks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.tools.mcp.transport.lone_surrogates import SurrogateReplacer
from tests.support.mcp.raw_server import respond
from tests.support.mcp.raw_sessions import opened

TEXTS = st.lists(st.sampled_from(["\ud83d", "\ude00", "\U0001f600", "\\", "\\u", "d83d", "u", "\n", '"', "é", "a"])).map(
    "".join
)


@given(TEXTS, st.integers(1, 9))
def test_lone_surrogates_are_replaced_in_all_chunks(text: str, size: int) -> None:
    data, replacer = json.dumps(text).encode(), SurrogateReplacer()
    pieces = [replacer.replace(data[start : start + size]) for start in range(0, len(data), size)]
    result = b"".join([*pieces, replacer.end()])
    assert len(result) == len(data)
    expected = ("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in json.loads(data))
    assert json.loads(result) == "".join(expected)


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.parametrize("is_stream", [False, True])
async def test_answer_with_half_an_emoji_is_read(*, is_stream: bool) -> None:
    async def answer(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
        result = {"content": [{"type": "text", "text": "cut \ud83d"}]}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        if is_stream:
            await respond(writer, 200, b"data: " + body + b"\n\n", content_type="text/event-stream")
        else:
            await respond(writer, 200, body)

    async with opened(answer) as (sessions, _):
        assert (await sessions.call("raw", "tool", {})).output == "cut \ufffd"
