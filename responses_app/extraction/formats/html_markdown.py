"""HTML to Markdown: the title and the text of a page with headings, lists, numbers of lists, table cells and links."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

from responses_app.extraction.formats.plain import decode
from responses_app.extraction.text_buffer import TextBuffer

# The main part of a page counts if its text has this many characters.
MIN_MAIN_LENGTH: Final = 200
# Characters that the parser gets at a time, so that a long page ends at the limit of its text.
FEED_CHARS: Final = 1024 * 1024
_HIDDEN: Final = frozenset({"script", "style", "template", "noscript"})
# Elements around the text of a page.
_BOILERPLATE: Final = frozenset({"nav", "footer", "aside", "dialog", "svg", "select", "button", "iframe", "math"})
_MAIN: Final = frozenset({"main", "article"})
_HEADINGS: Final = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_BLOCK_NAMES: Final = (
    "address article blockquote body div dl fieldset figure footer form header main nav ol p pre section table ul"
)
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_LINES: Final = frozenset({"br", "caption", "dd", "dt", "figcaption", "hr", "li", "option", "summary", "tr"})
_LISTS: Final = frozenset({"ol", "ul", "menu"})
_INDENT: Final = "  "
_SPACE: Final = re.compile(r"\s+")
_BLANK_LINES: Final = re.compile(r"\n{3,}")
_NO_BRACKETS: Final = str.maketrans("[]", "()")


def read_html(data: bytes, out: TextBuffer) -> None:
    """Add the title and the text of an HTML file. Raises ExtractionError if the bytes are no text, TextLimitReached."""
    title, text = html_to_markdown(decode(data), "", max_chars=out.left)
    out.add("\n\n".join(part for part in (title, text) if part))


def html_to_markdown(
    source: str, base_url: str | None = None, *, main_only: bool = False, max_chars: int | None = None
) -> tuple[str, str]:
    """Return the title and the text of a page.

    Links are absolute, relative to `base_url`; without `base_url` only their texts are kept. With `main_only` the text is that of
    the main part, without navigation and controls. The text ends some time behind `max_chars` characters.
    """
    parser = _parse(source, base_url, _HIDDEN | _BOILERPLATE if main_only else _HIDDEN, max_chars)
    text = parser.text()
    if main_only and not text:
        # A navigation without an end would hide the whole page.
        text = _parse(source, base_url, _HIDDEN, max_chars).text()
    main = parser.text(main=True) if main_only else ""
    return " ".join("".join(parser.title).split()), main if len(main) >= MIN_MAIN_LENGTH else text


def _parse(source: str, base_url: str | None, hidden: frozenset[str], max_chars: int | None) -> _MarkdownParser:
    parser = _MarkdownParser(base_url, hidden)
    start = 0
    while start < len(source) and (max_chars is None or parser.length <= max_chars):
        # The parser reads an element without an end from its beginning again, so such an element gets longer pieces.
        end = start + max(FEED_CHARS, len(parser.rawdata))
        parser.feed(source[start:end])
        start = end
    parser.close()
    return parser


class _MarkdownParser(HTMLParser):
    """Parser of a page without the elements `hidden`. `length` is the number of characters so far."""

    def __init__(self, base_url: str | None, hidden: frozenset[str]) -> None:
        super().__init__()
        self.title: list[str] = []
        self.length = 0
        # Pieces of text, and whether each belongs to the main part.
        self._pieces: list[tuple[str, bool]] = []
        self._base_url, self._hidden_tags = base_url, hidden
        self._hidden = self._in_main = self._in_pre = 0
        self._in_title = False
        # Whether the row of a table has a cell.
        self._in_row = False
        # Line breaks and the mark of a heading or of a list item, which the next text begins with.
        self._breaks, self._mark = 0, ""
        # Next number of each open list, None for a list without numbers.
        self._lists: list[int | None] = []
        self._link: tuple[str, list[str]] | None = None

    def text(self, *, main: bool = False) -> str:
        """Return the text of the whole page, or of the main part."""
        pieces = (piece for piece, in_main in self._pieces if in_main or not main)
        lines = "\n".join(line.rstrip() for line in "".join(pieces).split("\n"))
        return _BLANK_LINES.sub("\n\n", lines).strip()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin an element."""
        self._in_title = tag == "title" and not self.title
        self._hidden += tag in self._hidden_tags
        self._in_main += tag in _MAIN
        self._in_pre += tag == "pre"
        if tag == "a":
            self._end_link()
            self._begin_link(dict(attrs).get("href"))
        elif tag == "br":
            self._break_line(self._breaks + 1)
        elif tag in ("td", "th"):
            self._begin_cell()
        else:
            self._begin_block(tag, dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        """End an element."""
        self._in_title = False
        if tag == "a":
            self._end_link()
        elif tag in _LISTS and self._lists:
            self._lists.pop()
        self._end_block(tag)
        self._hidden = max(0, self._hidden - (tag in self._hidden_tags))
        self._in_main = max(0, self._in_main - (tag in _MAIN))
        self._in_pre = max(0, self._in_pre - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        """Write text."""
        if self._in_title:
            self.title.append(data)
        elif not self._hidden:
            self._write(data if self._in_pre else _SPACE.sub(" ", data))

    def close(self) -> None:
        """End the page. A tag or a comment without an end is dropped, as browsers do.

        The method of the library looks for the end of each of the unclosed tags in the whole rest of the page.
        """
        if not self.rawdata.startswith("<"):
            super().close()
        self._end_link()

    def _begin_block(self, tag: str, attrs: dict[str, str | None]) -> None:
        self._in_row &= tag != "tr"
        if tag in _LISTS:
            self._break_line(1 if self._lists else 2)
            self._lists.append(_number(attrs.get("start"), 1) if tag == "ol" else None)
        elif tag == "li":
            self._break_line(1)
            self._mark = self._list_mark(attrs)
        elif tag in _HEADINGS:
            self._break_line(2)
            self._mark += _HEADINGS[tag]
        elif tag in _BLOCKS or tag in _LINES:
            self._break_line(2 if tag in _BLOCKS else 1)

    def _end_block(self, tag: str) -> None:
        if tag == "li" or tag in _LISTS or tag in _HEADINGS:
            # The mark of an empty list item or heading.
            self._mark = ""
        if tag in _LISTS or tag == "li":
            self._break_line(1 if self._lists else 2)
        elif tag in _BLOCKS or tag in _HEADINGS:
            self._break_line(2)
        elif tag in _LINES and tag != "br":
            self._break_line(1)

    def _list_mark(self, attrs: dict[str, str | None]) -> str:
        indent = _INDENT * min(len(self._lists) - 1, 20)
        number = self._lists[-1] if self._lists else None
        if number is None:
            return f"{indent}* "
        number = _number(attrs.get("value"), number)
        self._lists[-1] = number + 1
        return f"{indent}{number}. "

    def _begin_cell(self) -> None:
        if self._in_row:
            self._write(" | ")
        self._in_row = True

    def _begin_link(self, href: str | None) -> None:
        if self._base_url is None or not href or href.startswith("#"):
            return
        try:
            target = urljoin(self._base_url, href.strip())
        except ValueError:
            return
        if target.startswith(("http://", "https://")) and not _SPACE.search(target):
            self._link = (target.replace("(", "%28").replace(")", "%29"), [])

    def _end_link(self) -> None:
        """Write the link whose text is complete; nothing in the case of a link without words."""
        link, self._link = self._link, None
        text = "" if link is None else " ".join("".join(link[1]).translate(_NO_BRACKETS).split())
        if link is not None and text:
            self._write(f"[{text}]({link[0]})")

    def _break_line(self, lines: int) -> None:
        """Let the next text begin behind `lines` line breaks, at most two; a link stays on the line."""
        if self._link is not None:
            self._link[1].append(" ")
        elif not self._hidden and not self._mark:
            self._breaks = max(self._breaks, min(lines, 2))

    def _write(self, text: str) -> None:
        if self._hidden:
            return
        if self._link is not None:
            self._link[1].append(text)
            return
        begins_line = self._breaks or self._mark or not self._pieces
        if not self._in_pre and (begins_line or self._pieces[-1][0].endswith(" ")):
            text = text.lstrip(" ")
        if not text:
            return
        breaks = "\n" * self._breaks if self._pieces else ""
        self._pieces.append((f"{breaks}{self._mark}{text}", bool(self._in_main)))
        self.length += len(self._pieces[-1][0])
        self._breaks, self._mark = 0, ""


def _number(text: str | None, default: int) -> int:
    """Return the number of an attribute; `default` if the attribute is absent or no number."""
    return int(text) if text and re.fullmatch(r"\s*-?[0-9]{1,9}\s*", text) else default
