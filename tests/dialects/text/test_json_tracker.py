"""Tracker of JSON: the same state for a text in any parts."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.text.json_tracker import JsonTracker

KEYS = st.text('a"\\}', max_size=3)
VALUES = st.recursive(
    st.none() | st.text('ab"\\{}[]é', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)


def read_in_parts(text: str, cuts: list[int]) -> tuple[JsonTracker, int]:
    """Read `text` in parts; return the tracker and the number of characters read."""
    tracker, at, count = JsonTracker(), 0, 0
    for size in [*cuts, len(text)]:
        count += tracker.read(text[at : at + size])
        at += size
    return tracker, count


@given(st.dictionaries(KEYS, VALUES, max_size=3), st.lists(st.integers(0, 4)))
def test_the_end_of_an_object_is_found_in_any_parts(value: dict[str, object], cuts: list[int]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    tracker, count = read_in_parts(text + "}]x", cuts)
    assert (tracker.is_complete, tracker.is_balanced, count) == (True, True, len(text))


@given(st.text('a"\\{}[]', max_size=12), st.lists(st.integers(0, 3)))
def test_any_text_has_the_same_state_in_any_parts(text: str, cuts: list[int]) -> None:
    whole, parts = read_in_parts(text, []), read_in_parts(text, cuts)
    assert parts[1] == whole[1]
    assert (parts[0].in_string, parts[0].is_balanced) == (whole[0].in_string, whole[0].is_balanced)


@given(st.text('ab"\\{}é', max_size=8), st.lists(st.integers(0, 3)))
def test_a_string_ends_at_its_quote(text: str, cuts: list[int]) -> None:
    inside = json.dumps(text, ensure_ascii=False)[1:]
    tracker, at = JsonTracker(), 0
    tracker.read('["')
    for size in [*cuts, len(inside)]:
        read = tracker.read_string(inside[at : at + size])
        at += read
        if not tracker.in_string:
            break
    assert (at, tracker.in_string, tracker.is_complete) == (len(inside) - 1, False, False)
