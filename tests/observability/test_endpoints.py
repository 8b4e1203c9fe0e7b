"""Endpoints: routes of the URL configuration as label values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import get_resolver

from responses_app.observability.endpoints import endpoint, pattern
from responses_app.observability.records import ObservedRequest

ROUTES = {
    r"^(?:openresponses/)?v1/responses/?$": "/v1/responses",
    r"^(?:openresponses/)?v1/responses/(?P<uid>[^/]+)/input_items/?$": "/v1/responses/{uid}/input_items",
    r"^(?:openresponses/)?v1/models/(?P<name>.+?)/?$": "/v1/models/{name}",
    r"^(?:openresponses/)?v1(?P<path>/[\s\S]*)?$": "/v1{path}",
    r"^health(?:/ready)?/?$": "/health",
    "responses/<str:uid>/items/<item>/": "/responses/{uid}/items/{item}/",
    "": "/",
}


@pytest.mark.parametrize("route", ROUTES)
def test_pattern_has_names_in_place_of_values(route: str) -> None:
    assert pattern(route) == ROUTES[route]


def all_routes(patterns: Any, prefix: str = "") -> Iterator[str]:
    for one in patterns:
        route = prefix + str(one.pattern)
        if hasattr(one, "url_patterns"):
            yield from all_routes(one.url_patterns, route)
        else:
            yield route


def test_patterns_of_all_routes_can_be_read() -> None:
    ours = [route for route in all_routes(get_resolver().url_patterns) if not route.startswith("admin/")]
    assert len(ours) > 50
    unreadable = [pattern(route) for route in ours if re.search(r"[\\^$()?*+|\[\]<>]", pattern(route))]
    assert unreadable == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/responses/resp_1", "/v1/responses/{uid}"),
        ("/static/web/base.css", "/static/{path}"),
        ("/no/such/page", "other"),
        ("", "other"),
        ("/v1/\0", "/v1{path}"),
    ],
)
def test_refused_request_has_the_endpoint_of_its_path(path: str, expected: str) -> None:
    assert endpoint(ObservedRequest("POST", path, 401)) == expected
