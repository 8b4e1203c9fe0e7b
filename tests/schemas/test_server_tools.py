"""Server tools: the form that the response repeats, tool choices, and errors that name the field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from responses_app.errors import InvalidRequest
from responses_app.schemas.parsing import tools
from responses_app.schemas.tool_choice import parse_tool_choice
from responses_app.tools.web_search.declaration import WEB_SEARCH

US = {"type": "approximate", "city": None, "country": "US", "region": None, "timezone": None}
SEARCH = {"search_content_types": ["text"], "search_context_size": "medium", "user_location": US}
WEB = {**SEARCH, "filters": None, "return_token_budget": "default"}
RANKING = {"ranker": "auto", "score_threshold": 0.0}
FILES = {"type": "file_search", "vector_store_ids": ["vs_1"]}
FILES_ECHO = {**FILES, "max_num_results": 20, "filters": None, "ranking_options": RANKING}
EQUAL = {"type": "eq", "key": "year", "value": 2026}


@pytest.fixture(autouse=True)
def active_tools() -> Iterator[None]:
    with override_settings(RESPONSES_SANDBOX_URL="http://sandbox", RESPONSES_WEB_SEARCH={"backend": "folder"}):
        yield


@pytest.mark.parametrize(
    ("raw", "repeated"),
    [
        ({"type": "code_interpreter", "container": "cntr_1"}, {"container": "cntr_1"}),
        (
            {"type": "code_interpreter", "container": {"type": "auto"}, "allowed_callers": ["direct"]},
            {"container": {"type": "auto"}},
        ),
        (
            {
                "type": "code_interpreter",
                "container": {
                    "type": "auto",
                    "file_ids": ["file-1"],
                    "memory_limit": "4g",
                    "network_policy": {"type": "disabled"},
                },
            },
            {
                "container": {
                    "type": "auto",
                    "file_ids": ["file-1"],
                    "memory_limit": "4g",
                    "network_policy": {"type": "disabled"},
                }
            },
        ),
        ({"type": "web_search"}, WEB),
        (
            {"type": "web_search_2025_08_26", "filters": {}, "external_web_access": True},
            {**WEB, "filters": {}, "external_web_access": True},
        ),
        (
            {"type": "web_search", "filters": {"blocked_domains": ["a.example", "b.example/blog/*"]}},
            {**WEB, "filters": {"blocked_domains": ["a.example", "b.example/blog/*"]}},
        ),
        (
            {"type": "web_search", "filters": {"allowed_domains": ["pubmed.ncbi.nlm.nih.gov"]}, "search_context_size": "low"},
            {**WEB, "filters": {"allowed_domains": ["pubmed.ncbi.nlm.nih.gov"]}, "search_context_size": "low"},
        ),
        (
            {"type": "web_search_preview", "user_location": {"type": "approximate", "country": "NO", "city": None}},
            {**SEARCH, "user_location": {**US, "country": "NO"}},
        ),
        (
            {"type": "web_search_preview_2025_03_11", "user_location": {"type": "approximate"}},
            {**SEARCH, "user_location": {**US, "country": None}},
        ),
        (FILES, FILES_ECHO),
        (
            {
                **FILES,
                "max_num_results": 5,
                "ranking_options": {"score_threshold": 0.5},
                "filters": {"type": "and", "filters": [EQUAL, {"type": "in", "key": "kind", "value": ["a", 1, True]}]},
            },
            {
                **FILES_ECHO,
                "max_num_results": 5,
                "ranking_options": {**RANKING, "score_threshold": 0.5},
                "filters": {"type": "and", "filters": [EQUAL, {"type": "in", "key": "kind", "value": ["a", 1, True]}]},
            },
        ),
    ],
)
def test_declaration_is_repeated_with_defaults(raw: dict[str, Any], repeated: dict[str, Any]) -> None:
    assert tools.read([raw]) == [{"type": raw["type"], **repeated}]


DEEP: dict[str, Any] = EQUAL
for _ in range(8):
    DEEP = {"type": "or", "filters": [DEEP]}


@pytest.mark.parametrize(
    ("raw", "code", "param"),
    [
        ({"type": "code_interpreter"}, "missing_required_parameter", "tools[0].container"),
        ({"type": "code_interpreter", "container": 1}, "invalid_type", "tools[0].container"),
        ({"type": "code_interpreter", "container": "abc"}, "invalid_value", "tools[0].container"),
        ({"type": "code_interpreter", "container": {"type": "own"}}, "invalid_value", "tools[0].container.type"),
        (
            {"type": "code_interpreter", "container": {"type": "auto", "memory_limit": "2g"}},
            "invalid_value",
            "tools[0].container.memory_limit",
        ),
        ({"type": "code_interpreter", "container": {"type": "auto", "x": 1}}, "unknown_parameter", "tools[0].container.x"),
        (
            {"type": "code_interpreter", "container": {"type": "auto", "file_ids": ["f"] * 51}},
            "array_above_max_length",
            "tools[0].container.file_ids",
        ),
        (
            {
                "type": "code_interpreter",
                "container": {"type": "auto", "network_policy": {"type": "allowlist", "allowed_domains": ["a.b"]}},
            },
            "unsupported_value",
            "tools[0].container.network_policy.type",
        ),
        ({"type": "web_search", "search_context_size": "huge"}, "invalid_value", "tools[0].search_context_size"),
        ({"type": "web_search", "search_content_types": ["image"]}, "invalid_value", "tools[0].search_content_types[0]"),
        ({"type": "web_search", "user_location": {"country": "Norway"}}, "invalid_value", "tools[0].user_location.country"),
        (
            {"type": "web_search", "filters": {"allowed_domains": ["https://a.b"]}},
            "invalid_value",
            "tools[0].filters.allowed_domains[0]",
        ),
        (
            {"type": "web_search", "filters": {"blocked_domains": ["a.example", "a.example/*/*"]}},
            "invalid_value",
            "tools[0].filters.blocked_domains[1]",
        ),
        ({"type": "web_search_preview", "filters": {}}, "unknown_parameter", "tools[0].filters"),
        ({"type": "file_search"}, "missing_required_parameter", "tools[0].vector_store_ids"),
        ({**FILES, "vector_store_ids": []}, "array_below_min_length", "tools[0].vector_store_ids"),
        ({**FILES, "max_num_results": 51}, "integer_above_max_value", "tools[0].max_num_results"),
        (
            {**FILES, "ranking_options": {"score_threshold": 2}},
            "decimal_above_max_value",
            "tools[0].ranking_options.score_threshold",
        ),
        ({**FILES, "ranking_options": {"ranker": "best"}}, "invalid_value", "tools[0].ranking_options.ranker"),
        ({**FILES, "filters": {"type": "like", "key": "a", "value": "b"}}, "invalid_value", "tools[0].filters.type"),
        ({**FILES, "filters": {"type": "eq", "key": "a", "value": ["b"]}}, "invalid_type", "tools[0].filters.value"),
        ({**FILES, "filters": {"type": "in", "key": "a", "value": "b"}}, "invalid_type", "tools[0].filters.value"),
        (
            {**FILES, "filters": {"type": "or", "filters": [EQUAL, {}]}},
            "missing_required_parameter",
            "tools[0].filters.filters[1].type",
        ),
        ({**FILES, "filters": DEEP}, "invalid_value", "tools[0].filters" + ".filters[0]" * 8),
    ],
)
def test_invalid_declaration_is_refused_by_path(raw: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        tools.read([raw])
    assert (caught.value.code, caught.value.param) == (code, param)


def test_tool_that_is_declared_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="declared twice") as caught:
        tools.read([{"type": "web_search"}, FILES, {"type": "web_search_preview"}])
    assert caught.value.param == "tools[2].type"


def test_input_items_declare_no_tool_that_the_server_runs() -> None:
    with pytest.raises(InvalidRequest, match="in 'tools' of the request only"):
        tools.read([FILES], in_item=True)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "file_search"}, {"type": "file_search"}),
        ({"type": "web_search_preview"}, {"type": "web_search_preview"}),
        (
            {"type": "allowed_tools", "tools": [{"type": "web_search"}]},
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "web_search"}]},
        ),
    ],
)
def test_tool_choice_names_a_declared_tool(choice: dict[str, Any], expected: dict[str, Any]) -> None:
    assert parse_tool_choice(choice, tools.read([{"type": "web_search"}, FILES])) == expected


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"type": "code_interpreter"}, "'code_interpreter' not found in 'tools'"),
        ({"type": "file_search", "name": "x"}, "Unknown parameter: 'tool_choice.name'"),
        ({"type": "web_search"}, "has no access to the web"),
    ],
)
def test_tool_choice_of_another_tool_is_refused(choice: dict[str, Any], message: str) -> None:
    declared = tools.read([{"type": "web_search", "external_web_access": False}, FILES])
    with pytest.raises(InvalidRequest, match=message):
        parse_tool_choice(choice, declared)


def test_search_without_access_to_the_web_is_repeated_and_inactive() -> None:
    raw = {"type": "web_search", "external_web_access": False}
    assert tools.read([raw]) == [raw]
    assert tools.inactive_types([raw]) == ["web_search"]
    assert WEB_SEARCH.find([raw]) is None


def test_declared_tool_is_the_active_one() -> None:
    declared = [{"type": "function", "name": "f"}, {"type": "web_search_preview"}]
    assert WEB_SEARCH.find(declared) == {"type": "web_search_preview"}
    with override_settings(RESPONSES_INACTIVE_TOOLS=frozenset({"web_search_preview"})):
        assert WEB_SEARCH.find(declared) is None
