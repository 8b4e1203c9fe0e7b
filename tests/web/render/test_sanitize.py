"""Texts of a model and of a client on pages: queries of URLs are hidden."""

from __future__ import annotations

import pytest

from responses_app.web.render.sanitize import hide_url_queries


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"server_url":"https://a.example/mcp?key=1","x":"?"}', '{"server_url":"https://a.example/mcp?…","x":"?"}'),
        ('{"server_url": "https://a.example/mcp?a=\\"1"}', '{"server_url": "https://a.example/mcp?…"}'),
        ('{"server_url":"https://a.example/mcp"}', '{"server_url":"https://a.example/mcp"}'),
        ('{"url":"https://a.example/?key=1"}', '{"url":"https://a.example/?key=1"}'),
    ],
)
def test_queries_of_server_urls_are_hidden(text: str, shown: str) -> None:
    assert hide_url_queries(text) == shown
