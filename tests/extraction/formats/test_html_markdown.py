"""HTML as Markdown: headings, lists, tables, links, the main part, and pages that are cut."""

from __future__ import annotations

import pytest

from responses_app.extraction.formats.html_markdown import FEED_CHARS, html_to_markdown

URL = "https://docs.example.com/guide/start"


def text(source: str) -> str:
    return html_to_markdown(source, URL)[1]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("<h1>Tea</h1>Green<h3>Black</h3>", "# Tea\n\nGreen\n\n### Black"),
        ("a<h1></h1>b", "a\n\nb"),
        ("<ul><li>one<li>two</ul>after", "* one\n* two\n\nafter"),
        ("<ol><li>one</li><li><p>two</p></li></ol>", "1. one\n2. two"),
        ("<ol start=3><li>three<li value=7>seven<li>eight</ol>", "3. three\n7. seven\n8. eight"),
        ("<ol start=x><li value>one</ol>", "1. one"),
        ("<ol><li>one<ul><li>a<ol><li>deep</ol></ul><li>two</ol>", "1. one\n  * a\n    1. deep\n2. two"),
        ("<ol><li></li><li>two</ol>", "2. two"),
        ("<ul><li></ul>after", "after"),
        ("<li>loose", "* loose"),
        ("<table><tr><th>a<th>b<tr><td><td>2</table>", "a | b\n| 2"),
        ("<dl><dt>term<dd>text</dl>", "term\ntext"),
        ("a<br>b<br><br>c", "a\nb\n\nc"),
        ("<p>Green   tea\n is <b> steamed</b> .</p>", "Green tea is steamed ."),
        ("<pre>x  =  1\n  y</pre>z", "x  =  1\n  y\n\nz"),
        ("<a href='../black'>black [tea]</a>", "[black (tea)](https://docs.example.com/black)"),
        ("<h2><a href='/x_(y)'>Tea</a></h2>", "## [Tea](https://docs.example.com/x_%28y%29)"),
        ("<a href='/x'><h3>Card</h3><p>text</p></a> end", "[Card text](https://docs.example.com/x) end"),
        ("<a href='#top'>top</a> <a href='mailto:a@b.c'>mail</a> <a href='http://[::'>broken</a>", "top mail broken"),
    ],
)
def test_element_becomes_markdown(source: str, expected: str) -> None:
    assert text(source) == expected


def test_links_are_texts_without_an_address() -> None:
    assert html_to_markdown("<title>T</title><a href='https://a.example/'>tea</a>") == ("T", "tea")


def test_file_keeps_its_navigation_and_a_page_does_not() -> None:
    source = "<nav>Home</nav><svg>Icon</svg><p>Tea</p><script>no</script>"
    assert html_to_markdown(source)[1] == "Home\n\nIcon\n\nTea"
    assert html_to_markdown(source, main_only=True)[1] == "Tea"


def test_text_ends_behind_the_limit() -> None:
    assert len(html_to_markdown("<p>tea" * FEED_CHARS, max_chars=100)[1]) < 2 * FEED_CHARS
