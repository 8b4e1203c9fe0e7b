"""Scanner of a generated text for citations.

Three forms are citations, outside of code:

- A Markdown link to a known page: the text stays, and a `url_citation` covers the link.
- A marker of gpt-oss's browser, `【3†L1-L5】`: a Markdown link in parentheses takes its place, covered by a `url_citation`.
- A marker of the file search, `【3†report.pdf】`: the text is removed, and a `file_citation` has the position.
- A path such as `sandbox:/mnt/data/plot.png` of a known file: the text stays, covered by a `container_file_citation`.

A marker without a known source is removed. Other text is never changed. Only text that may become a marker, a path or a fence of code
is held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from responses_app.dialects.citations.code import CodeTracker
from responses_app.dialects.citations.sources import SANDBOX, ContainerFileSource, Json, Sources, WebSource, comparable_url

MAX_TARGET = 4096
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(slots=True)
class LinkTracker:
    """Tracker of `[text](target)` in a line. Positions count from the beginning of the text. An image is no link."""

    # Positions of the open brackets; None for an image.
    _brackets: list[int | None] = field(default_factory=list)
    # Position of the bracket whose pair was the character before.
    _text: int | None = None
    # Position of the link whose target is open, the target so far, and the open parentheses in the target.
    _link: int | None = None
    _target: str = ""
    _depth: int = 0
    _last: str = ""

    def read(self, text: str, position: int, *, is_escaped: bool = False) -> tuple[int, str] | None:
        """Read a character, or text without special characters, at `position`. Return start and target of a link that ends here.

        An escaped character has no meaning.
        """
        if self._link is not None:
            return self._read_target(text, is_escaped)
        self._read_text(text, position, is_escaped)
        return None

    def _read_text(self, text: str, position: int, is_escaped: bool) -> None:
        before, self._text = self._text, None
        last, self._last = self._last, text[-1:]
        if is_escaped:
            self._last = ""
        elif text == "[":
            self._brackets.append(None if last == "!" else position)
        elif text == "]" and self._brackets:
            self._text = self._brackets.pop()
        elif text == "(" and before is not None:
            self._link, self._target, self._depth = before, "", 0

    def _read_target(self, text: str, is_escaped: bool) -> tuple[int, str] | None:
        if text == ")" and not self._depth and not is_escaped:
            link, self._link, self._last = self._link, None, ")"
            return None if link is None else (link, _address(self._target))
        if not is_escaped:
            self._depth += (text == "(") - (text == ")")
        self._target += text
        if len(self._target) > MAX_TARGET:
            self._link = None
        return None


def _address(target: str) -> str:
    """Return the address in the target of a link, without a title and without the marks of escapes."""
    target = _ESCAPE.sub(r"\1", target.strip())
    if target.startswith("<"):
        return target[1:].partition(">")[0]
    return target.split(maxsplit=1)[0] if target else ""


# Text, or an annotation of the text so far.
Piece: TypeAlias = str | Json

MAX_MARKER = 256
_MARKER = re.compile(r"【(?P<number>\d{1,9})(?::\d{1,9})?†(?P<content>[^【】\n]*)】")
_MARKER_SO_FAR = re.compile(r"【(?:\d{1,9}(?::\d{0,9})?(?:†[^【】\n]*)?)?")
_LINES = re.compile(r"L(\d{1,9})(?:-L?\d{1,9})?")
_SPECIAL = re.compile(r"[\n`~【\[\]()!\\]")
_SPECIAL_OR_PATH = re.compile(rf"{_SPECIAL.pattern}|{SANDBOX[0]}")
# Behind a path: characters that would continue the path.
_PATH_GOES_ON = re.compile(r"[\w%/\-]|\.\w")
_LINE_PREFIX = frozenset(" \t>")


class CitationScanner:
    """Scanner of the text of a content part. Positions are code points of the final text."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._pages: Mapping[str, WebSource] = sources.pages_by_url()
        self._paths: Mapping[str, ContainerFileSource] = sources.paths()
        self._max_path = max(map(len, self._paths), default=0)
        self._special = _SPECIAL_OR_PATH if self._paths else _SPECIAL
        self._code, self._links = CodeTracker(), LinkTracker()
        self._rest = ""
        self._position = 0
        self._is_line_start, self._is_escaped = True, False
        # The page of the marker directly before, and the last character of the final text.
        self._cited: WebSource | None = None
        self._last = "\n"
        self._texts: list[str] = []
        self._pieces: list[Piece] = []
        self._unplaced: list[Json] = []

    @property
    def holds_text(self) -> bool:
        """True if text is held back."""
        return bool(self._rest)

    def feed(self, text: str) -> list[Piece]:
        """Return the text that is certain after `text`, with the annotations behind the text that they annotate."""
        return self._scan(text, is_whole=False)

    def finish(self) -> list[Piece]:
        """Return the text held back, at the end of the content part."""
        return self._scan("", is_whole=True)

    def _scan(self, more: str, *, is_whole: bool) -> list[Piece]:
        text, at = self._rest + more, 0
        while at < len(text):
            length = self._read(text, at, is_whole)
            if length is None:
                break
            at += length
        self._rest = text[at:]
        self._end_text()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _read(self, text: str, at: int, is_whole: bool) -> int | None:
        """Read a piece of `text` at the position `at` and return its length; None if more text decides what it is."""
        special = self._special.search(text, at)
        end = len(text) if special is None else special.start()
        if end > at:
            return self._put(text[at:end])
        reader = self._READERS.get(text[at])
        return self._put(text[at]) if reader is None or self._is_plain(text[at]) else reader(self, text, at, is_whole)

    def _is_plain(self, char: str) -> bool:
        """Return whether a special character is ordinary text: escaped, or in code."""
        if self._is_escaped:
            return char != "\n"
        return self._code.is_code and char not in "`~\n"

    def _put(self, text: str) -> int:
        """Append `text` to the final text and return the length."""
        link = None if self._code.is_code else self._links.read(text, self._position, is_escaped=self._is_escaped)
        self._append(text)
        self._is_escaped = False
        page = None if link is None else self._pages.get(comparable_url(link[1]))
        if link is not None and page is not None:
            self._annotate(page.annotation(link[0], self._position))
        return len(text)

    def _append(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._position += len(text)
            self._is_line_start = self._is_line_start and set(text) <= _LINE_PREFIX
            self._last, self._cited = text[-1], None

    def _annotate(self, annotation: Json) -> None:
        """Place an annotation behind the text so far; an annotation at the very beginning waits for text."""
        self._unplaced.append(annotation)
        self._end_text()

    def _end_text(self) -> None:
        if self._texts:
            self._pieces.append("".join(self._texts))
            self._texts = []
        if self._position:
            self._pieces += self._unplaced
            self._unplaced = []

    # Special characters

    def _read_newline(self, _text: str, _at: int, _is_whole: bool) -> int:
        self._put("\n")
        self._code.end_line()
        self._links = LinkTracker()
        self._is_line_start = True
        return 1

    def _read_marks(self, text: str, at: int, is_whole: bool) -> int | None:
        length = self._code.read_marks(text, at, at_line_start=self._is_line_start, is_whole=is_whole)
        if length is not None:
            self._links.read(text[at : at + length], self._position, is_escaped=True)
            self._append(text[at : at + length])
        return length

    def _read_escape(self, _text: str, _at: int, _is_whole: bool) -> int:
        self._put("\\")
        self._is_escaped = True
        return 1

    def _read_marker(self, text: str, at: int, is_whole: bool) -> int | None:
        candidate = text[at : at + MAX_MARKER]
        marker = _MARKER.match(candidate)
        if marker is None:
            may_follow = len(candidate) < MAX_MARKER and _MARKER_SO_FAR.fullmatch(candidate) and not is_whole
            return None if may_follow else self._put("【")
        self._cite_marker(int(marker["number"]), marker["content"])
        return marker.end()

    def _read_path(self, text: str, at: int, is_whole: bool) -> int | None:
        next_chars = text[at : at + self._max_path + 2]
        if not is_whole and any(path.startswith(next_chars) for path in self._paths):
            return None
        path = max(filter(next_chars.startswith, self._paths), key=len, default="")
        behind = next_chars[len(path) : len(path) + 2]
        if path and behind == "." and not is_whole:
            return None
        if not path or _PATH_GOES_ON.match(behind):
            return self._put("s")
        start = self._position
        self._put(path)
        self._annotate(self._paths[path].annotation(start, self._position))
        return len(path)

    _READERS: ClassVar[Mapping[str, Callable[[CitationScanner, str, int, bool], int | None]]] = {
        "\n": _read_newline,
        "`": _read_marks,
        "~": _read_marks,
        "\\": _read_escape,
        "【": _read_marker,
        SANDBOX[0]: _read_path,
    }

    # Markers

    def _cite_marker(self, number: int, content: str) -> None:
        """Put the citation of a marker in place of the marker."""
        lines, file = _LINES.match(content), self._sources.files.get(number)
        display = self._sources.displays.get(number)
        if display is not None and (lines or file is None):
            self._cite_page(display.at_line(int(lines[1]) if lines else 0))
        elif file is not None and not lines:
            self._annotate(file.annotation(self._position))

    def _cite_page(self, page: WebSource | None) -> None:
        """Append a link to the page in parentheses; a second citation of the same page directly behind is left out."""
        if page is None or page == self._cited:
            return
        space = "" if self._last.isspace() or self._last in "([{" else " "
        self._append(space)
        start = self._position
        self._append(f"([{page.domain}]({_link_target(page.url)}))")
        self._annotate(page.annotation(start, self._position))
        self._cited = page


def _link_target(url: str) -> str:
    """Return the address with the characters encoded that would end the target of a link, or a string of JSON."""
    return re.sub(
        r"[\s()<>\\\"]", lambda char: "".join(f"%{byte:02X}" for byte in char[0].encode("utf-8", "surrogatepass")), url
    )
