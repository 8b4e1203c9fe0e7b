"""JSON answers as code blocks: indented, with the same characters."""

from __future__ import annotations

import pytest

from responses_app.web.render.block_parts import fenced_json


def test_object_is_an_indented_code_block() -> None:
    assert fenced_json('{"name":"Ada","ages":[36]}') == '```json\n{\n  "name": "Ada",\n  "ages": [\n    36\n  ]\n}\n```'


@pytest.mark.parametrize("text", ['{"a": 1e5}', '{"a": 1, "a": 2}', '{"a": "\\u00e9"}', '{"a": 1.50}'])
def test_json_that_indentation_would_change_keeps_its_characters(text: str) -> None:
    assert fenced_json(text) == f"```json\n{text}\n```"


@pytest.mark.parametrize("text", ["[a link](https://example.org)", '{"a": ', "Hello", "36", "", "[" * 100_000])
def test_text_that_is_no_object_or_array_stays(text: str) -> None:
    assert fenced_json(text) == text
