"""Results of MCP calls: texts, structured values, other parts, limits."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from responses_app.tools.mcp.sessions import McpOutcome, cut, outcome

TEXT = {"type": "text", "text": "seen"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
LARGE = {"type": "image", "data": "A" * 2000, "mimeType": "image/png"}


@pytest.mark.parametrize(
    ("content", "structured", "output"),
    [
        pytest.param([], None, "", id="nothing"),
        pytest.param([TEXT, TEXT], None, "seen\nseen", id="texts"),
        pytest.param([TEXT], {"a": 1}, "seen", id="text beside a structured value"),
        pytest.param([], {"a": [1, "é"]}, '{"a":[1,"é"]}', id="structured value"),
        pytest.param([], {"a": 10**30}, '{"a":' + "1" + "0" * 30 + "}", id="integer beyond 64 bits"),
    ],
)
def test_output_is_text(content: list[Any], structured: Any, output: str) -> None:
    assert outcome(content, structured, 1000, is_error=False) == McpOutcome(output)


def test_output_with_other_parts_is_the_list_of_parts() -> None:
    assert json.loads(outcome([TEXT, IMAGE], None, 1000, is_error=False).output or "") == [TEXT, IMAGE]


def test_image_beyond_the_limit_is_replaced_by_a_sentence() -> None:
    parts = json.loads(outcome([LARGE, TEXT, IMAGE], None, 1000, is_error=False).output or "")
    notice = "[A part was left out because the result is too long: image image/png, 2,049 bytes]"
    assert parts == [{"type": "text", "text": notice}, TEXT, IMAGE]


def test_failure_of_a_tool_keeps_its_parts_within_the_limit() -> None:
    result = outcome([{"type": "text", "text": "x" * 2000}], None, 1000, is_error=True)
    assert result.output is None
    assert result.error == {
        "type": "mcp_tool_execution_error",
        "content": [{"type": "text", "text": "x" * 1000 + "\n[… 1,000 more characters were cut]"}],
    }


@pytest.mark.parametrize("size", [10**30, -(10**30)])
def test_failure_with_an_integer_that_events_cannot_have_is_text(size: int) -> None:
    link = {"type": "resource_link", "name": "n", "uri": "http://a/", "size": size}
    error = outcome([link, TEXT], None, 1000, is_error=True).error or {}
    shown, text = error["content"]
    assert (json.loads(shown["text"]), text) == (link, TEXT)
    orjson.dumps(error)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("é" * 5, "é" * 5, id="at the limit"),
        pytest.param("é" * 6, "é" * 5 + "\n[… 1 more characters were cut]", id="above"),
        pytest.param("x" + "é" * 5, "x" + "é" * 4 + "\n[… 1 more characters were cut]", id="within a character"),
    ],
)
def test_text_is_cut_between_characters(text: str, shown: str) -> None:
    assert cut(text, 10) == shown
