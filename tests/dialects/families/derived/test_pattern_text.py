"""Texts that a regular expression matches, written from the expression."""

from __future__ import annotations

import re
from itertools import product

import pytest

from responses_app.dialects.families.derived.pattern_text import Choices, pattern_text

PATTERNS = (
    r"<tool_call>\s*<function=(?P<name>\w+)>",
    r"\[TOOL_CALLS\](?P<name>[\w.-]+)\[ARGS\]",
    r"<\|to\|>commentary to=functions\.(?P<name>\w+).*?<\|say\|>",
    r"(?:<\|message\|>)?[^<]*<\|use\|>(?P<name>[^\]]+?)\s+",
    r"(?:^|<think>\s*)(?P<name>get_\w{4,9})",
    r"\A(?P<name>\S+):(?P<id>\d+)\s?(?:json|text)\n",
    r"(?i:<CALL)[ \t](?P<name>[]a-z_]+)/?>$",
    r"<(a|b){2}>(?P<name>\w+)\b",
)
EVERY_CHOICE = [Choices(*each) for each in product(("\n", ""), (False, True), (False, True))]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("choices", EVERY_CHOICE, ids=str)
def test_the_text_of_a_pattern_matches_and_has_the_values_of_groups(pattern: str, choices: Choices) -> None:
    text = pattern_text(pattern, {"name": "get_plan", "": "get_plan"}, choices)
    match = re.fullmatch(pattern, text, re.DOTALL)
    assert match is not None
    assert match["name"] == "get_plan"


def test_choices_are_white_space_alternatives_and_optional_groups() -> None:
    pattern = r"(?:<a>)?\s*(?:b|c)\s+d"
    texts = [pattern_text(pattern, {}, choices) for choices in EVERY_CHOICE]
    assert texts == ["\nb\nd", "<a>\nb\nd", "\nc\nd", "<a>\nc\nd", "b d", "<a>b d", "c d", "<a>c d"]


@pytest.mark.parametrize(("pattern", "text"), [("a(?=b)", "a"), ("a(?!b)c", "ac"), ("(?<=x)a", "a")])
def test_texts_around_a_match_are_no_part_of_it(pattern: str, text: str) -> None:
    assert pattern_text(pattern, {}, EVERY_CHOICE[0]) == text


def test_a_word_behind_a_name_is_the_word_that_is_given() -> None:
    assert pattern_text(r"</\w+>", {"": "get_plan"}, EVERY_CHOICE[0]) == "</get_plan>"
