"""Content parts of results on pages."""

from __future__ import annotations

import pytest

from responses_app.web.render.result_pictures import content_parts


@pytest.mark.parametrize("output", ["words", "{}", "[]", "[1]", "[" * 5000, "[" * 5000 + "]" * 5000])
def test_other_outputs_have_no_parts(output: str) -> None:
    assert content_parts(output) is None


def test_parts_of_a_list_are_returned() -> None:
    assert content_parts('[{"type": "text", "text": "a"}]') == [{"type": "text", "text": "a"}]
