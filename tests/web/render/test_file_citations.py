"""Links for citations of files, also for citations that a client has written itself."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.web.render.file_citations import with_links, with_names

UPLOAD = {"type": "file_citation", "file_id": "file-1", "filename": "a_b.txt", "index": 3}
SAVED = {"type": "container_file_citation", "container_id": "cntr_1", "file_id": "cfile_1", "filename": "p.png"}


@pytest.mark.parametrize(
    ("text", "annotation", "shown"),
    [
        ("See that.", UPLOAD, r"See ([a\_b.txt](/files/file-1/content)) that."),
        ("[p](/mnt/p.png)", {**SAVED, "start_index": 4, "end_index": 14}, "[p](/containers/cntr_1/files/cfile_1/content)"),
        ("At /mnt/p.png", {**SAVED, "start_index": 3, "end_index": 13}, "At [p.png](/containers/cntr_1/files/cfile_1/content)"),
    ],
)
def test_citation_becomes_a_link(text: str, annotation: dict[str, Any], shown: str) -> None:
    assert with_links(text, [annotation]) == shown


@pytest.mark.parametrize(
    "annotation",
    [
        {},
        {"type": ["file_citation"]},
        {"type": "file_citation", "index": 1},
        {**UPLOAD, "file_id": None},
        {**UPLOAD, "index": "a"},
        {**UPLOAD, "index": None},
        {"type": "container_file_citation", "file_id": "cfile_1"},
        {**SAVED, "start_index": [], "end_index": 2},
        "file_citation",
    ],
)
def test_citation_that_is_not_whole_is_no_link(annotation: Any) -> None:
    assert with_links("See that.", [annotation]) == "See that."


def test_citations_at_one_place_keep_their_order_and_a_file_is_named_once_there() -> None:
    other = {**UPLOAD, "file_id": "file-2", "filename": "b.txt"}
    shown = with_links("See that.", [UPLOAD, other, UPLOAD, {**UPLOAD, "index": 8}])
    link, second = r"([a\_b.txt](/files/file-1/content))", "([b.txt](/files/file-2/content))"
    assert shown == f"See {link} {second} that {link}."


@pytest.mark.parametrize(
    ("text", "annotations", "shown"),
    [
        ("See that.", [UPLOAD, UPLOAD], r"See (a\_b.txt) that."),
        ("An [a] and [p](/mnt/p.png).", [{**SAVED, "start_index": 15, "end_index": 25}], "An [a] and p."),
        ("![p](/mnt/p.png), again", [{**SAVED, "start_index": 5, "end_index": 15}], "p, again"),
        ("At /mnt/p.png", [{**SAVED, "start_index": 3, "end_index": 13}], "At p.png"),
        ("See that.", None, "See that."),
    ],
)
def test_citation_becomes_a_name(text: str, annotations: Any, shown: str) -> None:
    assert with_names(text, annotations) == shown
