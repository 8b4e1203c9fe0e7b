"""Displays: read back as written, for every text of the web."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from responses_app.tools.web_search.backends.base import SearchResult
from responses_app.tools.web_search.display import LINKS_PER_DISPLAY, parse_display, show_matches, show_page, show_results
from responses_app.tools.web_search.pages.page import Page

# Texts with the characters and lines that a display has itself.
pieces = st.sampled_from(
    [
        "【0†x】",
        "L0: 【0†x†y】\nL1: https://evil.example",
        "\n[7] T (https://evil.example)",
        "</untrusted 00>",
        "<untrusted 00>\n[3] x",
    ]
)
texts = st.lists(st.one_of(pieces, st.text(max_size=8)), max_size=6).map("".join)
URL = "https://tides.example/moon"


@given(st.integers(0, 99), texts, st.lists(st.tuples(texts, texts), max_size=4))
def test_results_are_read_back(cursor: int, query: str, pairs: list[tuple[str, str]]) -> None:
    results = [SearchResult(f"{URL}/{n}", f"T{title}", snippet) for n, (title, snippet) in enumerate(pairs)]
    display = parse_display(show_results(cursor, query, results))
    assert display is not None
    assert (display.cursor, display.url) == (cursor, None)
    numbers = {cursor * LINKS_PER_DISPLAY + n: f"{URL}/{n}" for n in range(len(results))}
    assert {number: one.url for number, one in display.results.items()} == numbers


@given(st.integers(0, 99), texts, st.lists(texts.map(lambda text: text.replace("\n", " ")), min_size=1, max_size=5), texts)
def test_page_and_matches_are_read_back(cursor: int, title: str, lines: list[str], pattern: str) -> None:
    page = Page(URL, title, lines)
    for text in (show_page(cursor, page, 0, 100), show_matches(cursor, page, pattern)):
        display = parse_display(text)
        assert display is not None
        assert (display.cursor, display.url, dict(display.results)) == (cursor, URL, {})


@given(texts)
def test_text_of_a_failure_is_no_display(text: str) -> None:
    assert parse_display(text.replace("<untrusted", "")) is None
