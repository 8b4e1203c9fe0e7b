"""Citations in drawn answers: each annotation covers exactly the cited characters, in the stream, the replay and the stored response.

The sources are real: pages that a search and an opening of a page have shown, files of a vector store, and files that code has written.
`CITED_ANSWERS=10` in the environment tries 200 answers of each dialect.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

import orjson
import pytest
from asgiref.sync import async_to_sync
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from responses_app.engines.replay.engine import Recording, ReplayEngine
from responses_app.protocol.reducer import fold
from tests.support.api.case import KeyedClient, bare
from tests.support.api.server_tools_case import FOXES, MENU, ChatTexts, HarmonyTexts, ServerToolsCase
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


pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800 + 60 * BATCHES)]

CODE = f"for name in ({PLOT!r}, {TABLE!r}): open(name, 'w').write('x')"


class GeneratedCitationCase(ServerToolsCase):
    __test__ = False

    def test_annotations_cover_the_cited_characters(self) -> None:
        # A batch is too slow to be shrunk; the message of a failure has the one answer.
        @settings(max_examples=BATCHES, phases=(Phase.reuse, Phase.generate))
        @given(st.data())
        def check(data: st.DataObject) -> None:
            async_to_sync(self.check_answers)([data.draw(ANSWERS) for _ in range(BATCH)])

        check()

    async def check_answers(self, answers: Sequence[Answer]) -> None:
        """Let the model read the sources in a first response, and write each answer in a response behind the first."""
        self.engine = ReplayEngine()
        async with self.serving(*self.reading()) as client:
            body = {"tools": self.declarations, "include": ["file_search_call.results"]}
            first = (await self.stream(client, **body))[-1]["response"]
            self.assertEqual([item["status"] for item in first["output"]], ["completed"] * 5)
            [search_results] = [item["results"] for item in first["output"] if item["type"] == "file_search_call"]
            self.assertEqual([one["filename"] for one in search_results], [FOXES, MENU])
            for answer in answers:
                self.engine.add(self.record(type(self).answer(answer.written), chunks=answer.chunks))
                await self.check_answer(client, answer, {**body, "previous_response_id": first["id"]})

    def reading(self) -> list[Recording]:
        """Return the rounds of the first response: one call of each function, and a short answer."""
        call = type(self).call
        texts = [
            call("web_search", query="moon tides"),
            call("open_page", id=0),
            call("file_search", queries=["foxes hunt", "menu"]),
            call("python", code=CODE),
            type(self).answer("Ready."),
        ]
        return [self.record(text) for text in texts]

    async def check_answer(self, client: KeyedClient, answer: Answer, body: Mapping[str, Any]) -> None:
        events = bare(await self.stream(client, **body))
        made = events[-1]["response"]
        got = orjson.loads((await client.get(f"/v1/responses/{made['id']}")).content)
        replayed = bare(await self.read(await client.get(f"/v1/responses/{made['id']}?stream=true")))
        self.assertEqual((fold(events), got, replayed), (made, made, events))
        [part] = made["output"][-1]["content"]
        self.assertEqual(part["text"], answer.shown, answer)
        expected = [(one.type, one.source, start, end, one.text) for one, start, end in answer.citations()]
        self.assertEqual([cited(part["text"], one) for one in part["annotations"]], expected, answer)
        self.check_order(events, part["annotations"])

    def check_order(self, events: Sequence[Mapping[str, Any]], annotations: Sequence[Mapping[str, Any]]) -> None:
        """Check that each annotation comes directly behind the delta that completes the cited text."""
        text, added = "", []
        for event in events:
            if event["type"] == "response.output_text.delta":
                text += event["delta"]
            elif event["type"] == "response.output_text.annotation.added":
                one = event["annotation"]
                self.assertEqual(len(text), one["index"] if one["type"] == "file_citation" else one["end_index"])
                added.append(one)
        self.assertEqual(added, annotations)


def cited(text: str, one: Mapping[str, Any]) -> tuple[str, str, int, int, str]:
    """Return type, source, start, end and cited text of an annotation."""
    start = one["index"] if one["type"] == "file_citation" else one["start_index"]
    end = one.get("end_index", start)
    source = one["url"] if one["type"] == "url_citation" else one["filename"]
    if one["type"] == "container_file_citation":
        source = f"/mnt/data/{source}"
    return one["type"], source, start, end, text[start:end]


class HarmonyGeneratedCitationTest(HarmonyTexts, GeneratedCitationCase):
    __test__ = True


class ChatGeneratedCitationTest(ChatTexts, GeneratedCitationCase):
    __test__ = True
