"""Folder of pages: URLs, ranks, filters and reading."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from responses_app.tools.web_search.backends.base import PageMissing, SearchContext
from responses_app.tools.web_search.backends.folder import FolderBackend
from responses_app.tools.web_search.domains import DomainFilter

FILES = {
    "docs.example.com/index.html": "<title>Tea &amp;\n more</title><script>coffee()</script><p>All about tea.</p>",
    "docs.example.com/guide/green tea.MD": "# Green tea\nGreen tea is steamed. " + "Tea. " * 3,
    "blog.example.org/post.txt": "Coffee, and a little tea.",
    "loose.txt": "tea without a host",
    "docs.example.com/picture.png": "tea",
}


@pytest.fixture
def folder(tmp_path: Path) -> FolderBackend:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return FolderBackend(tmp_path)


def urls(folder: FolderBackend, query: str, context: SearchContext | None = None) -> list[str]:
    return [one.url for one in asyncio.run(folder.search(query, context or SearchContext()))]


def test_pages_are_ranked_by_words_and_titles(folder: FolderBackend) -> None:
    assert urls(folder, "green TEA?") == [
        "https://docs.example.com/guide/green%20tea.MD",
        "https://docs.example.com/",
        "https://blog.example.org/post.txt",
    ]


def test_scripts_are_not_searched(folder: FolderBackend) -> None:
    assert urls(folder, "coffee") == ["https://blog.example.org/post.txt"]


def test_query_without_matches_has_no_results(folder: FolderBackend) -> None:
    assert urls(folder, "wine") == urls(folder, "") == []


def test_domains_and_number_are_limited(folder: FolderBackend) -> None:
    assert urls(folder, "tea", SearchContext(domains=DomainFilter.of(["example.org"]))) == ["https://blog.example.org/post.txt"]
    assert len(urls(folder, "tea", SearchContext(max_results=1))) == 1


def test_result_has_title_and_snippet(folder: FolderBackend) -> None:
    (result,) = asyncio.run(folder.search("about", SearchContext()))
    assert (result.title, result.snippet) == ("Tea & more", "All about tea.")


def test_changed_file_is_read_again(folder: FolderBackend, tmp_path: Path) -> None:
    assert urls(folder, "wine") == []
    (tmp_path / "blog.example.org/post.txt").write_text("wine")
    assert urls(folder, "wine") == ["https://blog.example.org/post.txt"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://docs.example.com/", ("text/html", FILES["docs.example.com/index.html"])),
        ("https://docs.example.com", ("text/html", FILES["docs.example.com/index.html"])),
        (
            "https://docs.example.com/guide/green%20tea.MD#top",
            ("text/markdown", FILES["docs.example.com/guide/green tea.MD"]),
        ),
        ("http://blog.example.org/post.txt", ("text/plain", FILES["blog.example.org/post.txt"])),
    ],
)
def test_page_is_read_by_url(folder: FolderBackend, url: str, expected: tuple[str, str]) -> None:
    media_type, data = asyncio.run(folder.read_page(url))
    assert (media_type, data.decode()) == expected


@pytest.mark.parametrize(
    "url", ["https://docs.example.com/../loose.txt", "https://docs.example.com/picture.png", "https://../loose.txt", "folder"]
)
def test_other_file_is_not_read(folder: FolderBackend, url: str) -> None:
    with pytest.raises(PageMissing):
        asyncio.run(folder.read_page(url))
