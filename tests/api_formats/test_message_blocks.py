"""Content blocks of Messages."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from responses_app.api_formats.messages.blocks import INVALID_JSON, blocks


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"days": 3}', {"days": 3}),
        ("", {}),
        ('{"days": 100000000000000000000}', {"days": 1e20}),
        (r'{"city": "\ud800"}', {INVALID_JSON: r'{"city": "\ud800"}'}),
        ("[1]", {INVALID_JSON: "[1]"}),
        ('{"city": ', {INVALID_JSON: '{"city": '}),
        ('{"a":' * 5000, {INVALID_JSON: '{"a":' * 5000}),
    ],
)
def test_arguments_of_any_text_make_an_answer(arguments: str, shown: dict[str, Any]) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "forecast", "arguments": arguments}
    (block,) = blocks(call, shows_thinking=True)
    assert orjson.loads(orjson.dumps(block))["input"] == shown
