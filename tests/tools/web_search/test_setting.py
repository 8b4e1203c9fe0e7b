"""RESPONSES_WEB_SEARCH: forms that are read, and errors that name the key and show no value."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from responses_app.tools.web_search.backends.base import SearchContext
from responses_app.tools.web_search.executor import open_backend
from responses_app.tools.web_search.setting import DEMO_PAGES, parse_web_search


@pytest.mark.parametrize("value", ["", "  "])
def test_empty_value_means_no_search(value: str) -> None:
    assert parse_web_search(value) == {}


@pytest.mark.parametrize(
    "setting",
    [
        {"backend": "searxng", "url": "http://10.0.0.9:8080"},
        {"backend": "brave", "key": "s3cret"},
        {"backend": "tavily", "key": "s3cret", "url": "https://proxy.example/tavily"},
        {"backend": "exa", "key": "s3cret", "private_hosts": ["wiki.intern", "wiki.intern:8080"]},
    ],
)
def test_setting_is_read_from_text_and_from_a_file(setting: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "search.json"
    file.write_text(json.dumps(setting))
    assert parse_web_search(json.dumps(setting)) == parse_web_search(str(file)) == setting


def test_folder_is_read_from_a_url(tmp_path: Path) -> None:
    assert parse_web_search(f"folder://{tmp_path}") == {"backend": "folder", "url": f"folder://{tmp_path}"}


def test_demo_has_pages() -> None:
    results = asyncio.run(open_backend(DEMO_PAGES).search("moon tides", SearchContext()))
    assert [one.url for one in results] == ["https://tides.example/moon.html", "https://tides.example/spring.html"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("/nowhere/search.json", "No such file"),
        ("{", "not valid JSON (line 1, column 2)"),
        ("folder:///nowhere/pages", "the folder of 'url' does not exist"),
        ("folder://host/pages", "'url' must be a URL of the form folder:///path"),
        ('{"backend": "brave", "token": "s3cret"}', "unknown key 'token'"),
        ('{"backend": "s3cret"}', "'backend' must be one of searxng, brave, tavily, exa, folder"),
        ('{"backend": ["s3cret"]}', "'backend' must be one of"),
        ('{"backend": "searxng"}', "'url' is needed for the back end 'searxng'"),
        ('{"backend": "searxng", "url": "ftp://s3cret"}', "'url' must be an http or https URL"),
        ('{"backend": "searxng", "url": "https://s3cret:a@b.example"}', "'url' must be an http or https URL"),
        ('{"backend": "searxng", "url": "http://s3cret /search"}', "'url' must have no white space"),
        ('{"backend": "searxng", "url": "http://s3cret\\t"}', "'url' must have no white space and no invisible characters"),
        ('{"backend": "searxng", "url": 3}', "'url' must be a text"),
        ('{"backend": "tavily"}', "'key' is needed for the back end 'tavily'"),
        ('{"backend": "tavily", "key": "s3cret\\n"}', "'key': the value of a header"),
        ('{"backend": "exa", "key": "s3cret", "private_hosts": "a"}', "'private_hosts' must be a list"),
        ('{"backend": "exa", "key": "s3cret", "private_hosts": ["A.s3cret"]}', "'private_hosts' must be a list"),
        ('{"backend": "exa", "key": "s3cret", "private_hosts": ["http://a"]}', "'private_hosts' must be a list"),
        ('{"backend": "exa", "key": "s3cret", "private_hosts": ["*.a"]}', "'private_hosts' must be a list"),
    ],
)
def test_wrong_value_is_refused(value: str, message: str) -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        parse_web_search(value)
    assert message in str(caught.value)
    assert "RESPONSES_WEB_SEARCH" in str(caught.value)
    assert "s3cret" not in str(caught.value)
