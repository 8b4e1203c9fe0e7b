"""Conversion of objects of JavaScript and literals of Python to JSON, in parts of any size."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.formats.syntaxes.loose_json import LooseJson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.from_regex(r"[A-Za-z_]\w{0,5}", fullmatch=True), VALUES, max_size=4)


def converted(text: str, size: int) -> tuple[str, str]:
    """Convert a text in pieces of `size` characters; return the JSON, and the text behind the object."""
    loose, unread, out = LooseJson(), "", ""
    for at in range(0, len(text), size):
        unread += text[at : at + size]
        unread = unread[loose.read(unread, closed=False) :]
        out += loose.take()
    unread = unread[loose.read(unread, closed=True) :]
    return out + loose.end(), unread


def bare_keys(value: Any) -> str:
    """Write an object whose keys are words without quotes, with a comma behind each value and a comment before."""
    return "{" + "".join(f"/* {{ */ {key}: {json.dumps(each)},\n // a, 'b\n" for key, each in value.items()) + "}"


@given(OBJECTS, st.integers(1, 5))
def test_json_keeps_its_value(value: dict[str, Any], size: int) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False, indent=1)):
        assert (json.loads(converted(text, size)[0]), converted(text, size)[1]) == (value, "")


@given(OBJECTS, st.integers(1, 5))
def test_keys_without_quotes_comments_and_last_commas_are_read(value: dict[str, Any], size: int) -> None:
    assert json.loads(converted(bare_keys(value), size)[0]) == value


@given(st.text(alphabet="{}[]\"'`\\:=,/* \nabux1", max_size=40), st.integers(1, 5))
def test_any_text_becomes_json_that_does_not_depend_on_the_pieces(text: str, size: int) -> None:
    whole = converted("{" + text, 100)
    assert whole == converted("{" + text, size)
    assert isinstance(json.loads(whole[0]), dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': 'it\\'s', 'b': True, 'c': None, 'd': [1, 'x',]}", {"a": "it's", "b": True, "c": None, "d": [1, "x"]}),
        ("{'a': 'it's \"so\"', 'b': 1}", {"a": 'it\'s "so"', "b": 1}),
        (
            "{city: New York, days: 3, url: https://a.b/c // the page\n}",
            {"city": "New York", "days": 3, "url": "https://a.b/c"},
        ),
        ("{a: `x\ny`, b: undefined, c}", {"a": "x\ny", "b": None, "c": None}),
        ('{a = 1, "b" 2}', {"a": 1, "b": 2}),
        ("{a: {b: [1, 2}, c: 3}", {"a": {"b": [1, 2], "c": 3}}),
        (r"{'a': 'C:\d\user', 'b': '\u00e9\x41\n'}", {"a": "C:\\d\\user", "b": "éA\n"}),
        ("{a: 007, b: +1, c: -2.5e3, d: 1_000}", {"a": "007", "b": "+1", "c": -2500.0, "d": "1_000"}),
    ],
)
def test_forms_of_other_languages_are_read(text: str, value: dict[str, Any]) -> None:
    for size in (1, 3, 100):
        assert json.loads(converted(text, size)[0]) == value


def test_strings_are_passed_on_as_they_arrive() -> None:
    loose = LooseJson()
    assert (loose.read("{text: 'One and", closed=False), loose.take()) == (15, '{"text": "One and')
    assert (loose.read(" two", closed=False), loose.take()) == (4, " two")
