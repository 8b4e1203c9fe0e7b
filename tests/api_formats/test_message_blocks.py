"""Content blocks of Messages."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson
import pytest

from responses_app.api_formats.messages.blocks import INVALID_JSON, blocks


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ('{"days": 3}', {"days": 3}),
        ("", {}),
        ('{"days": 100000000000000000000}', {"days": 10**20}),
        ('{"days": 1' + "0" * 400 + "}", {"days": 10**400}),
        ('{"days": 1e400}', {"days": math.inf}),
        ('{"days": NaN}', {INVALID_JSON: '{"days": NaN}'}),
        (r'{"city": "\ud800"}', {INVALID_JSON: r'{"city": "\ud800"}'}),
        ("[1]", {INVALID_JSON: "[1]"}),
        ('{"city": ', {INVALID_JSON: '{"city": '}),
        ('{"a":' * 9000 + "1" + "}" * 9000, {INVALID_JSON: '{"a":' * 9000 + "1" + "}" * 9000}),
        ('{"a":' * 5000, {INVALID_JSON: '{"a":' * 5000}),
    ],
)
def test_arguments_of_any_text_make_an_answer(arguments: str, shown: dict[str, Any]) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "forecast", "arguments": arguments}
    (block,) = blocks(call, shows_thinking=True)
    assert json.loads(orjson.dumps(block))["input"] == shown


@pytest.mark.parametrize("number", ["1e400", "-1e400", "-0", "-0.0", "1" + "0" * 400, "18446744073709551616", "1.10", "1E5"])
def test_numbers_are_those_of_the_stream(number: str) -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "forecast", "arguments": f'{{"days":{number}}}'}
    (block,) = blocks(call, shows_thinking=True)
    assert f'"input":{call["arguments"]}' in orjson.dumps(block).decode()
