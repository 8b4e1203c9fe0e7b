"""Displays of web search: results, pages and matches as the model reads them.

The form is that of the browser tool with which gpt-oss was trained: a number in brackets (the cursor), the title, the visible lines,
and links as `【number†text】`. The number of a link is the cursor of its display times LINKS_PER_DISPLAY, plus its index. So the number
alone names a link of any display.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from responses_app.tools.outputs.untrusted import wrap_untrusted
from responses_app.tools.web_search.backends.base import SearchResult
from responses_app.tools.web_search.domains import host_of
from responses_app.tools.web_search.pages.page import Page
from responses_app.tools.web_search.pages.text_job import LINE_WIDTH
from responses_app.utils.invisible import SHOWN_BY_NAME

LINKS_PER_DISPLAY = 1000
_MARKS = str.maketrans({"【": "〖", "】": "〗", "†": "‡"})
_LINK = re.compile(r"【(\d+)†")
_HEADER = re.compile(r"^<untrusted [0-9a-f]+>\n\[(\d+)\] (.*?)(?: \((https?://\S+)\))?$", re.MULTILINE)
_MATCHES = re.compile(r"^Matches of “[^”]*” in ")
_RESULT = re.compile(r"^L(\d+): 【(\d+)†(.*)†[^†\n]*】\nL\d+: (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class DisplayedResult:
    """Search result in a display: the number of its first line, its address and title."""

    line: int
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class BrowsingDisplay:
    """Display, as read from the text. `url` is None for search results, which have `results` by the number of the link.

    `title` is the title of the page; for search results the query.
    """

    cursor: int
    title: str
    url: str | None
    results: Mapping[int, DisplayedResult] = field(default_factory=dict)


def show_results(cursor: int, query: str, results: Sequence[SearchResult]) -> str:
    """Return the display of the results of a search."""
    lines: list[str] = []
    for index, result in enumerate(results):
        mark = f"【{cursor * LINKS_PER_DISPLAY + index}†{_one_line(result.title)}†{host_of(result.url)}】"
        dated = " ".join(filter(None, (result.published and f"({result.published})", result.snippet)))
        lines += [mark, _shown_url(result.url), *textwrap.wrap(_one_line(dated), LINE_WIDTH), ""]
    header = f"Search results for “{_one_line(query)}”"
    return _display(cursor, header, list(enumerate(lines[:-1] or ["No results."])), len(lines))


def show_page(cursor: int, page: Page, start: int, count: int) -> str:
    """Return the display of up to `count` lines of a page from the line `start` on."""
    shown = [(number, _with_cursor(line, cursor)) for number, line in page.window(start, count)]
    return _display(cursor, f"{_one_line(page.title)} ({_shown_url(page.url)})", shown, len(page.lines))


def show_matches(cursor: int, page: Page, pattern: str) -> str:
    """Return the display of the places of `pattern` in a page, with the numbers of the page's lines."""
    places = list(page.find(pattern))
    header = f"Matches of “{_one_line(pattern).replace('”', '’')}” in {_one_line(page.title)} ({_shown_url(page.url)})"
    texts = ["\n".join([f"# Match at L{place[0][0]}", *_numbered(place, cursor)]) for place in places]
    return wrap_untrusted(f"[{cursor}] {header}\n**{len(places)} places**\n\n" + "\n\n".join(texts))


def parse_display(text: str) -> BrowsingDisplay | None:
    """Read the cursor, the title, the address and the results of a display; None for other texts, such as failures."""
    header = _HEADER.search(text)
    if header is None:
        return None
    results = {} if header[3] else {int(one[2]): DisplayedResult(int(one[1]), one[4], one[3]) for one in _RESULT.finditer(text)}
    return BrowsingDisplay(int(header[1]), _MATCHES.sub("", header[2]), header[3], results)


def _display(cursor: int, header: str, lines: Sequence[tuple[int, str]], total: int) -> str:
    first, last = (lines[0][0], lines[-1][0]) if lines else (0, 0)
    bar = f"**viewing lines [{first} - {last}] of {max(total - 1, 0)}**"
    body = "\n".join(f"L{number}: {line}" for number, line in lines)
    return wrap_untrusted(f"[{cursor}] {header}\n{bar}\n\n{body}")


def _numbered(lines: Sequence[tuple[int, str]], cursor: int) -> list[str]:
    return [f"L{number}: {_with_cursor(line, cursor)}" for number, line in lines]


def _with_cursor(line: str, cursor: int) -> str:
    """Return a line of a page with the numbers of its links in the display `cursor`."""
    return _LINK.sub(lambda match: f"【{cursor * LINKS_PER_DISPLAY + int(match[1])}†", line)


def _shown_url(url: str) -> str:
    return _one_line(url).replace(" ", "%20")


def _one_line(text: str) -> str:
    return " ".join(SHOWN_BY_NAME.sub("", text.translate(_MARKS)).split())
