"""Schemas of searches in vector stores: refused values with code and path."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.errors import InvalidRequest
from responses_app.schemas.parsing.vector_stores import (
    CreateVectorStore,
    UpdateVectorStore,
    parse_batch,
    parse_new_file,
    parse_search,
)
from responses_app.schemas.parsing.webhook_endpoints import UpdateEndpoint
from responses_app.validation.base import StrictModel, validate

COMPARISON = {"type": "eq", "key": "a", "value": 1}
DEEP: dict[str, Any] = COMPARISON
for _ in range(9):
    DEEP = {"type": "and", "filters": [DEEP]}

WIDE = {"type": "and", "filters": [{"type": "or", "filters": [COMPARISON] * 60}] * 5}


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({}, "missing_required_parameter", "query"),
        ({"query": ""}, "invalid_value", "query"),
        ({"query": []}, "invalid_value", "query"),
        ({"query": ["a", 1]}, "invalid_type", "query[1]"),
        ({"query": "a", "max_num_results": 0}, "integer_below_min_value", "max_num_results"),
        ({"query": "a", "max_num_results": 51}, "integer_above_max_value", "max_num_results"),
        (
            {"query": "a", "ranking_options": {"score_threshold": 2}},
            "decimal_above_max_value",
            "ranking_options.score_threshold",
        ),
        ({"query": "a", "ranking_options": {"ranker": "best"}}, "invalid_value", "ranking_options.ranker"),
        ({"query": "a", "limit": 1}, "unknown_parameter", "limit"),
        ({"query": "a", "filters": []}, "invalid_type", "filters"),
        ({"query": "a", "filters": {}}, "missing_required_parameter", "filters.type"),
        ({"query": "a", "filters": {"type": "like", "key": "a", "value": 1}}, "invalid_value", "filters.type"),
        ({"query": "a", "filters": {"type": "eq", "value": 1}}, "missing_required_parameter", "filters.key"),
        ({"query": "a", "filters": {"type": "eq", "key": "a"}}, "missing_required_parameter", "filters.value"),
        ({"query": "a", "filters": {"type": "eq", "key": "a", "value": []}}, "invalid_type", "filters.value"),
        ({"query": "a", "filters": {"type": "in", "key": "a", "value": 1}}, "invalid_type", "filters.value"),
        ({"query": "a", "filters": {"type": "in", "key": "a", "value": [{}]}}, "invalid_type", "filters.value[0]"),
        ({"query": "a", "filters": {"type": "or", "filters": [COMPARISON, 1]}}, "invalid_type", "filters.filters[1]"),
        ({"query": "a", "filters": {"type": "or", "filters": [COMPARISON] * 65}}, "array_above_max_length", "filters.filters"),
        ({"query": "a", "filters": WIDE}, "invalid_value", "filters"),
        ({"query": "a", "filters": DEEP}, "invalid_value", "filters" + ".filters[0]" * 8),
    ],
    ids=str,
)
def test_invalid_search_is_refused(body: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_search(body)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize("number", [2.0**64, 1e300, -1e19])
def test_attribute_that_an_answer_could_not_repeat_is_refused(number: float) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse_new_file({"file_id": "file-1", "attributes": {"a": number}})
    assert (caught.value.code, caught.value.param) == ("invalid_value", "attributes.a")
    assert parse_new_file({"file_id": "file-1", "attributes": {"a": 2**64 - 1}}).attributes == {"a": 2**64 - 1}


@pytest.mark.parametrize("attributes", [{"a\0": 1}, {"a": "\0"}])
def test_attribute_with_nul_is_refused(attributes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest, match="has the character NUL") as caught:
        parse_new_file({"file_id": "file-1", "attributes": attributes})
    assert caught.value.param == ("attributes.a" if "a" in attributes else "attributes")


@pytest.mark.parametrize(
    ("model", "field"),
    [
        (CreateVectorStore, "name"),
        (CreateVectorStore, "description"),
        (UpdateVectorStore, "name"),
        (UpdateVectorStore, "description"),
        (UpdateEndpoint, "name"),
    ],
)
def test_name_with_nul_is_refused(model: type[StrictModel], field: str) -> None:
    with pytest.raises(InvalidRequest, match=f"Invalid '{field}': .* has the character NUL") as caught:
        validate(model, {field: "a\0b"})
    assert (caught.value.code, caught.value.param) == ("invalid_value", field)


def test_file_ids_have_characters_of_ids_alone() -> None:
    for body, param in (({"files": [{"file_id": "\0"}]}, "files[0].file_id"), ({"file_ids": ["\0"]}, "file_ids[0]")):
        with pytest.raises(InvalidRequest) as caught:
            parse_batch(body)
        assert (caught.value.code, caught.value.param) == ("invalid_value", param)
