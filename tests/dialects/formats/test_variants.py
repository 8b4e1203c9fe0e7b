"""Variants of declared formats by the added tokens of a tokenizer."""

from __future__ import annotations

import pytest

from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.formats.table import output_format
from responses_app.dialects.formats.variants import fit_to_tokens


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
