"""Whom an error of a dialect blames: the client's own item, counted as the client counts, or what came before."""

from __future__ import annotations

import pytest

from responses_app.runs.create_request import CreateRequest
from responses_app.runs.prepare.prompt_context import client_path


@pytest.mark.parametrize(
    ("param", "blamed"),
    [
        ("input[0].content", "previous_response_id"),
        # Of the request's three items the first was not told.
        ("input[1].type", "input[1].type"),
        ("input[2]", "input[2]"),
        ("tools[0].type", "tools[0].type"),
        (None, None),
    ],
)
def test_items_that_were_not_told_are_counted_all_the_same(param: str | None, blamed: str | None) -> None:
    items = [{"id": "old"}, {"id": "b"}, {"id": "c"}]
    order = CreateRequest(project="p", key=1, model="m", input=[])
    assert client_path(param, order, items, ["a", "b", "c"]) == blamed


def test_a_conversation_is_blamed_for_its_items() -> None:
    order = CreateRequest(project="p", key=1, model="m", input=[], conversation="conv_1")
    assert client_path("input[0]", order, [{"id": "old"}], []) == "conversation"
