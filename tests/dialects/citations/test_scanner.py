"""Citations of generated answers: exact positions for every grouping of the text."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.dialects.citations.scanner import CitationScanner
from responses_app.dialects.citations.sources import ContainerFileSource, DisplaySources, Sources, UploadedFileSource, WebSource
from tests.support.hypothesis_profile import examples

TIDES = WebSource("https://www.moon.example/tides_(sea)?a=1&b=2", "Tides")
EBB = WebSource("https://ebb.example/", "Ebb 🌊")
NAMELESS = WebSource("https://nameless.example/x")
REPORT = UploadedFileSource("file-1", "report.pdf")
PLOT = ContainerFileSource("cntr_1", "cfile_1", "my plot.png")
TABLE = ContainerFileSource("cntr_1", "cfile_2", "table.csv")
ARCHIVE = ContainerFileSource("cntr_1", "cfile_3", "table.csv.gz")
SOURCES = Sources(
    [TIDES, NAMELESS],
    {3: DisplaySources([(0, EBB)]), 4: DisplaySources([(0, TIDES), (10, EBB)])},
    {7: REPORT},
    {"/mnt/data/my plot.png": PLOT, "/mnt/data/table.csv": TABLE, "/mnt/data/table.csv.gz": ARCHIVE},
)
TIDES_LINK = "([moon.example](https://www.moon.example/tides_%28sea%29?a=1&b=2))"
EBB_LINK = "([ebb.example](https://ebb.example/))"


def scan(text: str, cuts: Sequence[int] = (), sources: Sources = SOURCES) -> tuple[str, list[Any]]:
    """Return the final text and the annotations, each with the length of the text before its delta."""
    scanner, final, annotations = CitationScanner(sources), "", []
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    pieces = [piece for start, end in itertools.pairwise(places) for piece in scanner.feed(text[start:end])]
    for piece in [*pieces, *scanner.finish()]:
        if isinstance(piece, str):
            final += piece
        else:
            annotations.append(piece)
            assert piece.get("end_index", len(final)) == len(final), "an annotation follows the text that it covers"
    return final, annotations


def url_citation(source: WebSource, start: int, text: str) -> dict[str, Any]:
    title = source.title or source.domain
    return {"type": "url_citation", "url": source.url, "title": title, "start_index": start, "end_index": start + len(text)}


def path_citation(source: ContainerFileSource, start: int, text: str) -> dict[str, Any]:
    return {
        "type": "container_file_citation",
        "container_id": "cntr_1",
        "file_id": source.file_id,
        "filename": source.filename,
        "start_index": start,
        "end_index": start + len(text),
    }


# Raw text -> final text, and the source with the place of the annotated text in the final text.
Case = tuple[str, str, list[tuple[Any, str]]]
LINK = "[the sea [1]](https://www.moon.example/tides_(sea)?a=1&b=2)"
FRAGMENTS: list[Case] = [
    ("word ", "word ", []),
    ("Ünïcödé 🦑🌊 ", "Ünïcödé 🦑🌊 ", []),
    (f"{LINK}. ", f"{LINK}. ", [(TIDES, LINK)]),
    (f"({LINK}) ", f"({LINK}) ", [(TIDES, LINK)]),
    ('[t](https://ebb.example "Ebb") ', '[t](https://ebb.example "Ebb") ', [(EBB, '[t](https://ebb.example "Ebb")')]),
    ("[`x`](<https://ebb.example#top>) ", "[`x`](<https://ebb.example#top>) ", [(EBB, "[`x`](<https://ebb.example#top>)")]),
    ("[n](https://nameless.example/x?utm_source=y) ", "[n](https://nameless.example/x?utm_source=y) ",
     [(NAMELESS, "[n](https://nameless.example/x?utm_source=y)")]),
    ("[other](https://other.example) ", "[other](https://other.example) ", []),
    ("![image](https://ebb.example) ", "![image](https://ebb.example) ", []),
    (r"\[t](https://ebb.example) ", r"\[t](https://ebb.example) ", []),
    ("[open (bracket ", "[open (bracket ", []),
    ("`[t](https://ebb.example) 【3†L1】` ", "`[t](https://ebb.example) 【3†L1】` ", []),
    ("``a ` 【3†L1】`` ", "``a ` 【3†L1】`` ", []),
    ("\n```py\n[t](https://ebb.example) 【3†L1】 s\n~~~\n```\n", "\n```py\n[t](https://ebb.example) 【3†L1】 s\n~~~\n```\n", []),
    ("\n> ~~~~\n`sandbox:/mnt/data/table.csv`\n~~~\n> ~~~~ \n", "\n> ~~~~\n`sandbox:/mnt/data/table.csv`\n~~~\n> ~~~~ \n", []),
    ("\n```inline``` 【3†L1】\n", f"\n```inline``` {EBB_LINK}\n", [(EBB, EBB_LINK)]),
    ("fact【3†L1-L5】. ", f"fact {EBB_LINK}. ", [(EBB, EBB_LINK)]),
    ("fact 【4†L9】【4†L2-L3】 ", f"fact {TIDES_LINK} ", [(TIDES, TIDES_LINK)]),
    ("fact【4†L12】 ", f"fact {EBB_LINK} ", [(EBB, EBB_LINK)]),
    ("fact【99†L1】 ", "fact ", []),
    ("fact【99†other.pdf】 ", "fact ", []),
    ("【aside】 【12 ", "【aside】 【12 ", []),
    ("fact【7†report.pdf】. ", "fact. ", [(REPORT, "")]),
    ("fact【7:0†source】 ", "fact ", [(REPORT, "")]),
    ("[f](sandbox:/mnt/data/my%20plot.png) ", "[f](sandbox:/mnt/data/my%20plot.png) ", [(PLOT, "sandbox:/mnt/data/my%20plot.png")]),
    ("[f](sandbox:/mnt/data/my plot.png) ", "[f](sandbox:/mnt/data/my plot.png) ", [(PLOT, "sandbox:/mnt/data/my plot.png")]),
    ("sandbox:/mnt/data/table.csv. ", "sandbox:/mnt/data/table.csv. ", [(TABLE, "sandbox:/mnt/data/table.csv")]),
    ("sandbox:/mnt/data/table.csv.gz ", "sandbox:/mnt/data/table.csv.gz ", [(ARCHIVE, "sandbox:/mnt/data/table.csv.gz")]),
    ("sandbox:/mnt/data/table.csv2 ", "sandbox:/mnt/data/table.csv2 ", []),
    ("sandbox:/mnt/data/table.csv.bz ", "sandbox:/mnt/data/table.csv.bz ", []),
    ("sandbox:/mnt/data/none.csv ", "sandbox:/mnt/data/none.csv ", []),
]  # fmt: skip


def expected(fragments: Sequence[Case]) -> tuple[str, list[Any]]:
    final, annotations = "", []
    for _, text, cited in fragments:
        for source, covered in cited:
            if isinstance(source, UploadedFileSource):
                place = len(final) + len("fact")
                annotations.append({"type": "file_citation", "file_id": "file-1", "filename": "report.pdf", "index": place})
            else:
                make = url_citation if isinstance(source, WebSource) else path_citation
                annotations.append(make(source, len(final) + text.index(covered), covered))
        final += text
    return final, annotations


@pytest.mark.parametrize("fragment", FRAGMENTS, ids=[repr(fragment[0]) for fragment in FRAGMENTS])
def test_fragment_is_cited_at_its_characters(fragment: Case) -> None:
    assert scan(fragment[0]) == expected([fragment])
    assert scan(fragment[0], range(1, len(fragment[0]))) == expected([fragment])


ANSWERS = st.lists(st.sampled_from(FRAGMENTS), max_size=30)
CUTS = st.lists(st.integers(0, 4000), max_size=40)


@given(ANSWERS, CUTS)
@settings(max_examples=examples(200))
def test_annotations_of_generated_answers_point_at_the_exact_characters(answer: list[Case], cuts: list[int]) -> None:
    # A line of its own for each fragment: an open bracket or mark is over at the end of its line.
    lines = [part for fragment in answer for part in (fragment, ("\n", "\n", []))]
    raw = "".join(text for text, _, _ in lines)
    final, annotations = scan(raw, cuts)
    assert (final, annotations) == expected(lines)
    for one in annotations:
        covered = final[one.get("start_index", 0) : one.get("end_index", 0)]
        if one["type"] == "container_file_citation":
            assert covered.startswith("sandbox:/mnt/data/")
        elif one["type"] == "url_citation":
            assert covered.startswith(("[", "(["))
            assert covered.endswith(")")


PARTS = [
    "[",
    "]",
    "(",
    ")",
    "`",
    "```",
    "~~~",
    "\n",
    "\\",
    "!",
    "【",
    "】",
    "†",
    "3",
    "L1",
    "s",
    "sandbox:/mnt/data/table.csv",
    " ",
    ".",
]
ANY_TEXT = st.lists(st.sampled_from([*PARTS, "https://ebb.example/", "x", "🦑"]), max_size=60).map("".join)


@given(ANY_TEXT, CUTS)
@settings(max_examples=examples(200))
def test_scanning_does_not_depend_on_the_grouping(text: str, cuts: list[int]) -> None:
    assert scan(text, cuts) == scan(text) == scan(text, range(len(text)))


@given(st.text(st.characters(exclude_characters="【")), CUTS)
def test_text_without_markers_is_never_changed(text: str, cuts: list[int]) -> None:
    assert scan(text, cuts)[0] == text


@pytest.mark.parametrize("text", ["See 【3†L1", "See 【3", "See 【3†" + "x" * 300, "Files: sandb", "```", "\n~~~ text"])
def test_unfinished_text_is_not_lost(text: str) -> None:
    assert scan(text) == (text, [])


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("Plain text", "Plain text"),
        ("[a](https://ebb.exam", "[a](https://ebb.exam"),
        ("Fact【3†", "Fact"),
        ("Fact【3†L1】", f"Fact {EBB_LINK}"),
        ("Fact【no", "Fact【no"),
        ("Thi", "Thi"),
        ("This", "Thi"),
    ],
)
def test_only_text_that_may_be_cited_is_held_back(text: str, released: str) -> None:
    pieces = CitationScanner(SOURCES).feed(text)
    assert "".join(piece for piece in pieces if isinstance(piece, str)) == released


def test_file_cited_before_any_text_has_the_position_zero_behind_the_text() -> None:
    pieces = CitationScanner(SOURCES).feed("【7†report.pdf】Fact")
    assert pieces == ["Fact", REPORT.annotation(0)]


def test_text_of_code_with_an_open_fence_is_not_cited() -> None:
    text = "```\n[t](https://ebb.example)\n【3†L1】"
    assert scan(text) == (text, [])


def test_answer_in_json_stays_json() -> None:
    page = WebSource('https://odd.example/a"b\\c d', "Odd")
    final, annotations = scan('{"answer": "Yes.【1†L1】"}', sources=Sources(displays={1: DisplaySources([(0, page)])}))
    assert json.loads(final) == {"answer": "Yes. ([odd.example](https://odd.example/a%22b%5Cc%20d))"}
    assert [one["url"] for one in annotations] == [page.url]


def test_joined_sources_have_both() -> None:
    both = Sources([TIDES]).joined(Sources([EBB], files={1: REPORT}))
    link = "[e](https://ebb.example)"
    assert scan(link, sources=both) == (link, [url_citation(EBB, 0, link)])
    assert both.files == {1: REPORT}


@pytest.mark.parametrize("part", ["s", "[", "`", "```\n", "【3†", "[a](", "sandbox:"])
def test_long_text_takes_no_quadratic_time(part: str) -> None:
    start = time.process_time()
    scan(part * 50_000)
    assert time.process_time() - start < 5
