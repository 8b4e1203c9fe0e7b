"""Paths of a request in two formats: renamed by whole steps; and words of messages that exist in the messages."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

import responses_app
from responses_app.api_formats.chat_completions import request as chat_completions
from responses_app.api_formats.messages import request as messages
from responses_app.api_formats.paths import RequestPaths
from responses_app.errors import InvalidRequest

FIELDS = {"input": "messages", "text.format": "response_format.json_schema"}
INSIDE = {".call_id": ".id", ".action.query": ".input.query", ".content": ""}
INSIDE_TOOLS = {".parameters": ".input_schema", ".filters": ""}


def make_paths() -> RequestPaths:
    paths = RequestPaths(FIELDS, INSIDE, INSIDE_TOOLS)
    paths.items = ["messages[0]", "messages[2].content"]
    paths.parts = {(1, 0): "messages[2].content[3]"}
    paths.tools = ["tools[4]"]
    return paths


@pytest.mark.parametrize(
    ("path", "translated"),
    [
        ("input", "messages"),
        ("input[7].call_id", "messages[7].call_id"),
        ("input[0]", "messages[0]"),
        ("input[0].call_id", "messages[0].id"),
        ("input[0].call_id_hint", "messages[0].call_id_hint"),
        ("input[0].action.query", "messages[0].input.query"),
        ("input[0].action.queries[1]", "messages[0].action.queries[1]"),
        ("input[0].action.query[1].call_id", "messages[0].input.query[1].id"),
        ("input[0].content[1].text", "messages[0][1].text"),
        ("input[1].content[0].text", "messages[2].content[3].text"),
        ("input[1].output[0].call_id", "messages[2].content[3].id"),
        ("input[1].summary[0].text", "messages[2].content.summary[0].text"),
        ("tools[0]", "tools[4]"),
        ("tools[0].parameters.properties.filters", "tools[4].input_schema.properties.filters"),
        ("tools[0].filters.type", "tools[4].type"),
        ("tools[1].parameters", "tools[1].parameters"),
        ("text.format.schema", "response_format.json_schema.schema"),
        ("text.formats", "text.formats"),
        ("inputs[0].call_id", "inputs[0].call_id"),
        ("model", "model"),
    ],
)
def test_paths_are_renamed_by_whole_steps(path: str, translated: str) -> None:
    assert make_paths().translate(path) == translated


def test_items_need_no_renamed_keys() -> None:
    paths = RequestPaths({}, {})
    paths.items = ["messages[0]"]
    assert paths.translate("input[0].call_id") == "messages[0].call_id"


def test_errors_name_the_renamed_path_in_the_message_too() -> None:
    with pytest.raises(InvalidRequest) as raised, make_paths().translated():
        raise InvalidRequest("Invalid 'input[0].call_id'.", param="input[0].call_id")
    assert (raised.value.param, raised.value.message) == ("messages[0].id", "Invalid 'messages[0].id'.")


def string_constants() -> str:
    """Return all texts of the package outside of the API formats; the parts of a text in several lines are joined."""
    package = Path(str(responses_app.__file__)).parent
    return "\n".join(
        node.value
        for file in package.rglob("*.py")
        if "api_formats" not in file.parts
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", [chat_completions.WORDS, messages.WORDS], ids=["chat_completions", "messages"])
def test_replaced_words_are_those_of_messages(words: Mapping[str, str]) -> None:
    texts = string_constants()
    assert [word for word in words if word.strip("'") not in texts] == []
