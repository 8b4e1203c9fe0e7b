"""HTML to Markdown: the text of a page with headings, lists, tables and links, without navigation and scripts."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from urllib.parse import urljoin

# The main part of a page counts if its text has this many characters.
MIN_MAIN_LENGTH = 200
_HIDDEN = frozenset({"script", "style", "template", "noscript", "svg", "select", "button", "iframe", "math"})
_BOILERPLATE = frozenset({"nav", "footer", "aside", "dialog"})
_MAIN = frozenset({"main", "article"})
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_BLOCKS = frozenset(
    {"p", "div", "section", "article", "main", "header", "ul", "ol", "table", "blockquote", "dl", "figure", "pre"}
)
_LINES = frozenset({"br", "tr", "dt", "dd", "option", "hr", "caption", "figcaption", "summary"})
_BLANK_LINES = re.compile(r"\n\s*\n\s*")


def html_to_markdown(source: str, url: str) -> tuple[str, str]:
    """Return the title and the text of a page with the address `url`."""
    parser = _parse(source, url, _HIDDEN | _BOILERPLATE)
    text, main = _tidy("".join(parser.texts)), _tidy("".join(parser.main))
    if not text:
        # A navigation without an end would hide the whole page.
        text = _tidy("".join(_parse(source, url, _HIDDEN).texts))
    return " ".join("".join(parser.title).split()), main if len(main) >= MIN_MAIN_LENGTH else text


def _parse(source: str, url: str, hidden: frozenset[str]) -> _MarkdownParser:
    parser = _MarkdownParser(url, hidden)
    parser.feed(source)
    parser.close()
    return parser


def _tidy(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()


class _MarkdownParser(HTMLParser):
    """Parser of a page without the elements `hidden`. `texts` has the text of the whole page, `main` that of its main part."""

    def __init__(self, url: str, hidden: frozenset[str]) -> None:
        super().__init__()
        self.title: list[str] = []
        self.texts: list[str] = []
        self.main: list[str] = []
        self._url, self._hidden_tags = url, hidden
        self._hidden = self._in_main = self._in_pre = 0
        self._in_title = False
        self._link: tuple[str, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        self._in_title = tag == "title" and not self.title
        if tag in self._hidden_tags:
            self._hidden += 1
        self._in_main += tag in _MAIN
        self._in_pre += tag == "pre"
        if tag == "a":
            self._end_link()
            self._begin_link(dict(attrs).get("href"))
        elif tag in _HEADINGS:
            self._write(f"\n\n{_HEADINGS[tag]} ")
        elif tag == "li":
            self._write("\n* ")
        elif tag in ("td", "th"):
            self._write(" | ")
        elif tag in _BLOCKS or tag in _LINES:
            self._write("\n\n" if tag in _BLOCKS else "\n")

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        self._in_title = False
        if tag == "a":
            self._end_link()
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._write("\n\n")
        if tag in self._hidden_tags:
            self._hidden = max(0, self._hidden - 1)
        self._in_main = max(0, self._in_main - (tag in _MAIN))
        self._in_pre = max(0, self._in_pre - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        """Write text."""
        if self._in_title:
            self.title.append(data)
        else:
            self._write(data if self._in_pre else re.sub(r"\s+", " ", data))

    def close(self) -> None:
        """End the page."""
        super().close()
        self._end_link()

    def _begin_link(self, href: str | None) -> None:
        try:
            target = urljoin(self._url, (href or "").strip())
        except ValueError:
            return
        if href and not href.startswith("#") and target.startswith(("http://", "https://")) and not re.search(r"\s", target):
            self._link = (target.replace("(", "%28").replace(")", "%29"), [])

    def _end_link(self) -> None:
        """Write the link whose text is complete; the text alone in the case of a link without words."""
        link, self._link = self._link, None
        if link is not None:
            text = " ".join("".join(link[1]).translate(_NO_BRACKETS).split())
            self._write(f"[{text}]({link[0]})" if text else "")

    def _write(self, text: str) -> None:
        if self._hidden:
            return
        if self._link is not None:
            self._link[1].append(text)
            return
        if not self._in_pre and (not self.texts or self.texts[-1].endswith("\n")):
            text = text.lstrip(" ")
        if not text:
            return
        self.texts.append(text)
        if self._in_main:
            self.main.append(text)


_NO_BRACKETS = str.maketrans("[]", "()")
