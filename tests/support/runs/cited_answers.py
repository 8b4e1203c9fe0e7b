"""Drawn answers of a model with citations: the text as the model writes it, the text as shown, and the cited parts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from hypothesis import strategies as st

from tests.support.api.server_tools_case import FOXES, MENU
from tests.support.web_search.pages_folder import MOON, OTHER, SUN

# Number of lists of answers that a test draws; 10 in the environment are 200 answers of each dialect.
BATCHES: Final = int(os.environ.get("CITED_ANSWERS", "2"))
BATCH = 20
PLOT, TABLE = "/mnt/data/plot.png", "/mnt/data/ma table é.csv"
FILES = (FOXES, MENU)
UNKNOWN = "https://unknown.example/page"


@dataclass(frozen=True, slots=True)
class Citation:
    """Expected annotation: its type, the address, path or file name of its source, and the cited text."""

    type: str
    source: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of an answer. The cited text is the end of `shown`, except for `behind` characters."""

    written: str
    shown: str
    citation: Citation | None = None
    behind: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer, and the numbers of tokens in its chunks, used in turn."""

    pieces: Sequence[Piece]
    chunks: Sequence[int]

    @property
    def written(self) -> str:
        """The text of the model."""
        return "".join(piece.written for piece in self.pieces)

    @property
    def shown(self) -> str:
        """The text of the response."""
        return "".join(piece.shown for piece in self.pieces)

    def citations(self) -> list[tuple[Citation, int, int]]:
        """Return the expected annotations with start and end. Both are code points of the shown text."""
        spans, length = [], 0
        for piece in self.pieces:
            length += len(piece.shown)
            if piece.citation is not None:
                end = length - piece.behind
                spans.append((piece.citation, end - len(piece.citation.text), end))
        return spans


def _plain(text: str) -> Piece:
    return Piece(text, text)


def _link(label: str, target: str, url: str) -> Piece:
    text = f"[{label}]({target})"
    return Piece(f" ({text}) ", f" ({text}) ", Citation("url_citation", url, text), behind=2)


def _page_marker(marker: str, url: str, before: str) -> Piece:
    """Return a marker behind the text `before`. The link that takes the place of the marker has a space in front."""
    domain = url.split("/")[2]
    link = f"([{domain}]({url}))"
    space = "" if before.endswith(("\n", "(")) else " "
    return Piece(f"{before}{marker}", f"{before}{space}{link}", Citation("url_citation", url, link))


def _file_marker(number: int, before: str) -> Piece:
    return Piece(f"{before}【{number}†{FILES[number]}】", before, Citation("file_citation", FILES[number]))


def _path(path: str, written: str, before: str, behind: str) -> Piece:
    text = f"sandbox:{written}"
    citation = Citation("container_file_citation", path, text)
    return Piece(before + text + behind, before + text + behind, citation, behind=len(behind))


_WORDS: Final = [
    "The moon",
    "🙂",
    "naïve",
    "日本語",
    "e\u0301té",
    "👩‍👩‍👧",
    "sand",
    "sandbox: no",
    "50 %",
    "[note] (aside)",
    "*b*",
    "\u202eabc",
]
_WORD: Final = st.sampled_from(_WORDS)
_SPACE: Final = st.sampled_from([" ", "\n", "\n\n", ", ", ".\n- "])
_NOT_CITED: Final = st.sampled_from(
    [
        f" ![tides]({MOON}) ",
        f" \\[tides]({MOON}) ",
        f" [tides]({UNKNOWN}) ",
        f" `[tides]({MOON}) 【0†L1】` ",
        f"\n```text\n【0†{FILES[0]}】 sandbox:{PLOT} [tides]({MOON})\n```\n",
        f" sandbox:{PLOT}2 ",
        " sandbox:/mnt/data/none.png ",
        " 【 ",
        " 【0†open\n",
        f" <{MOON}> ",
    ]
).map(_plain)
_REMOVED: Final = st.sampled_from(["【77†L1-L2】", "【78†none.txt】"]).map(lambda marker: Piece(f" a{marker} ", " a "))
_TARGETS: Final = [
    (url, target)
    for url in (MOON, SUN, OTHER)
    for target in (url, f"{url}#part", f"{url}?utm_source=openai", f"<{url}>", f'{url} "A title"')
]
_LINKS: Final = st.tuples(_WORD.filter(lambda word: "[" not in word), st.sampled_from(_TARGETS)).map(
    lambda drawn: _link(drawn[0], drawn[1][1], drawn[1][0])
)
_BEFORE: Final = st.sampled_from(["word", "word🙂", "word\n", " (", "日本"])
_PAGE_MARKERS: Final = st.tuples(st.sampled_from(["【0†L0-L1】", "【1†L2-L5】", "【1†L3】", "【1:0†L4-L4】"]), _BEFORE).map(
    lambda drawn: _page_marker(drawn[0], MOON, drawn[1])
)
_FILE_MARKERS: Final = st.tuples(st.integers(0, 1), _BEFORE).map(lambda drawn: _file_marker(*drawn))
_PATHS: Final = st.tuples(
    st.sampled_from([(PLOT, PLOT), (TABLE, TABLE), (TABLE, quote(TABLE))]),
    st.sampled_from([(" ", " "), (" ", ". "), (" [the 🙂 file](", ")"), ("\n", "\n")]),
).map(lambda drawn: _path(*drawn[0], *drawn[1]))
_PIECES: Final = st.one_of(
    st.tuples(_WORD, _SPACE).map("".join).map(_plain), _NOT_CITED, _REMOVED, _LINKS, _PAGE_MARKERS, _FILE_MARKERS, _PATHS
)
ANSWERS: Final = st.builds(
    lambda pieces, chunks: Answer([*pieces, _plain(" End")], chunks),
    st.lists(_PIECES, min_size=3, max_size=14),
    st.lists(st.integers(1, 9), min_size=1, max_size=5),
)
