"""Invisible characters are named on pages and escaped in logs."""

from __future__ import annotations

import ast
import json

import pytest

from responses_app.utils.invisible import escaped, escaped_in_json, escaped_in_python, named

# One of each kind: controls, C1, bidi, separators, zero width, fillers, tags, selectors out of place.
HIDDEN = "\0\x1b\x7f\x9b\u202e\u2066\u200f\u2028\u2029\u200b\u2060\ufeff\u00ad\u3164\U000e0041\U000e0101"


def test_each_hidden_character_is_named() -> None:
    assert named(HIDDEN) == "".join(f"⟨U+{ord(one):04X}⟩" for one in HIDDEN)
    assert named("a\tb\nc – ü 漢 \U0001f600") == "a\tb\nc – ü 漢 \U0001f600"


@pytest.mark.parametrize("text", ["👨‍👩‍👧", "❤️‍🔥", "1️⃣", "می‌خواهم", "क्‍ष", "☎︎"])
def test_joiners_of_letters_and_emoji_stay(text: str) -> None:
    assert named(text) == text


@pytest.mark.parametrize("text", ["a\u200db", "\ufe0f", "a\ufe0f", "é\u200d\u200dx", "👨\ufe0f\ufe0f\ufe0f"])
def test_joiners_between_other_characters_are_named(text: str) -> None:
    assert "⟨U+" in named(text)


def test_a_line_of_a_log_stays_one_line_that_no_terminal_obeys() -> None:
    assert escaped(f"a{HIDDEN}\r\n\x85b\ud800").isprintable()
    assert escaped("ä 漢 \U0001f600 \\") == "ä 漢 \U0001f600 \\"


def test_escaped_literals_mean_the_same() -> None:
    value = {"text": HIDDEN + "\\\u034f 'ä' \ud800 " + '"'}
    as_json = escaped_in_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(as_json) == value
    assert named(as_json) == as_json
    as_python = escaped_in_python(repr(value))
    assert ast.literal_eval(as_python) == value
    assert named(as_python) == as_python
