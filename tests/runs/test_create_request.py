"""A stored request has the fields that differ from the defaults, and is loaded with the same values."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from responses_app.runs.create_request import CreateRequest

PLAIN: dict[str, Any] = {"project": "p", "key": None, "model": "m", "include": []}


@pytest.mark.parametrize(
    ("values", "dumped"),
    [
        ({}, {}),
        ({"temperature": 0.0, "store": False, "tools": [{"type": "function"}]}, {}),
        ({"store": True, "format": {"type": "text"}, "max_output_tokens": None}, None),
        ({"tools": [], "stop": []}, None),
        # A field of the row of the response.
        ({"request_id": "req_1"}, None),
        # Equal to a default, but of another type.
        ({"presence_penalty": 0}, {"presence_penalty": 0}),
        ({"include": frozenset({"reasoning.encrypted_content"})}, {"include": ["reasoning.encrypted_content"]}),
    ],
)
def test_defaults_are_not_stored(values: dict[str, Any], dumped: dict[str, Any] | None) -> None:
    request = CreateRequest("p", None, "m", (), **values)
    stored = orjson.loads(request.dump())
    assert stored == {**PLAIN, **(dumped or ({} if dumped is None else values))}
    loaded = CreateRequest.load(request.dump(), ())
    assert loaded == replace(request, charges=[], tools=request.tools or (), stop=request.stop or (), request_id="")
    assert repr(loaded.presence_penalty) == repr(request.presence_penalty)
