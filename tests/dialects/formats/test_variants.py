"""Variants of declared formats by the added tokens of a tokenizer."""

from __future__ import annotations

import json

import pytest

from responses_app.dialects.chat.structural_tags import ReasoningStart, constrain
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.formats.table import output_format
from responses_app.dialects.formats.variants import fit_to_tokens
from responses_app.dialects.toolset import toolset
from tests.support.dialects.families.choices import ONE_CALL, choose_for
from tests.support.dialects.parser_driver import CHATML, WEATHER, turn


def fitted(parser: str, reasoning_parser: str | None, *added_tokens: str) -> OutputFormat:
    output = output_format(reasoning_parser, parser)
    assert output is not None
    return fit_to_tokens(output, added_tokens)


@pytest.mark.parametrize("parser", ["hy_v3", "hy_v4"])
def test_suffix_of_hunyuan_is_part_of_every_marker(parser: str) -> None:
    output = fitted(parser, parser, "<think:x1>", "<tool_calls:x1>", "<tool_call:x1>")
    assert output.markers
    assert all(marker.endswith(":x1>") for marker in output.markers)


@pytest.mark.parametrize("parser", ["hy_v3", "k2_horizon", "glm45"])
def test_markers_without_a_suffix_are_unchanged(parser: str) -> None:
    assert fitted(parser, parser, "<tool_call>", "<think>") == output_format(parser, parser)


@pytest.mark.parametrize(("tokens", "begin"), [((), "[TOOL_CALLS]["), (("[ARGS]",), "[TOOL_CALLS]get_weather[ARGS]")])
def test_calls_of_mistral_are_a_list_without_the_token_for_arguments(tokens: tuple[str, ...], begin: str) -> None:
    calls = fitted("mistral", None, *tokens).calls
    assert calls is not None
    assert write_calls(calls.syntax, [{"name": "get_weather", "arguments": {}}]).startswith(begin)


@pytest.mark.parametrize(
    ("tokens", "begin"),
    [((), "<|message_sep|>\n\nfunction call<|role_sep|>\n{"), (("<|function_call|>",), "<|function_call|>{")],
)
def test_calls_of_gigachat_are_messages_without_the_token_for_calls(tokens: tuple[str, ...], begin: str) -> None:
    calls = fitted("gigachat3", None, *tokens).calls
    assert calls is not None
    assert write_calls(calls.syntax, [{"name": "get_weather", "arguments": {}}]).startswith(begin)


@pytest.mark.parametrize("space", ["", "\n"])
def test_required_calls_have_the_line_breaks_of_the_template(space: str) -> None:
    call = f"'<tool_call>{space}' + call.function | tojson + '{space}</tool_call>'"
    output = choose_for(CHATML.replace(ONE_CALL, call), model_type="exaone4").output
    forced = turn(tools=(WEATHER,), tool_choice="required")
    constraint = constrain(forced, toolset(forced), output, ReasoningStart.NEVER)
    assert constraint is not None
    begin, end = (json.dumps(text)[1:-1] for text in (f'<tool_call>{space}{{"name": "get_weather", ', f"}}{space}</tool_call>"))
    assert begin in json.dumps(constraint.value)
    assert end in json.dumps(constraint.value)
    assert output.calls is not None
    written = write_calls(output.calls.syntax, [{"name": "get_weather", "arguments": {}}])
    assert written == f'<tool_call>{space}{{"name": "get_weather", "arguments": {{}}}}{space}</tool_call>'
