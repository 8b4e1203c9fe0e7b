"""Broken harmony output: no exception, no word lost, the same result in any grouping.

Dropped are markers, roles, channel names and types of content: the word behind `<|channel|>` or `<|constrain|>`.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from responses_app.protocol.deltas import Arguments, Call, Delta, OutputProblem, ReasoningDelta, TextDelta
from tests.support.dialects.harmony_tapes import TAPES
from tests.support.dialects.mutations import EXAMPLES, WORD, Change, changes, mutate
from tests.support.dialects.parser_driver import harmony, harmony_tokens, parse_chunks, turn

MARKERS = ("<|start|>", "<|channel|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>", "<|constrain|>")
_NAMES = re.compile(r"<\|(?:channel|constrain)\|>\s*\w*")
TURN = turn()


def text_of(deltas: list[Delta]) -> str:
    texts = [delta.text for delta in deltas if isinstance(delta, TextDelta | ReasoningDelta | Arguments | OutputProblem)]
    return " ".join([*texts, *(delta.name for delta in deltas if isinstance(delta, Call))])


@pytest.mark.parametrize("end", ["<|return|>", ""], ids=["ended", "cut"])
@given(st.sampled_from(sorted(TAPES)), changes)
@settings(max_examples=EXAMPLES * 4)
def test_broken_output_loses_no_word_and_ignores_grouping(end: str, tape: str, made: list[Change]) -> None:
    output = "".join(mutate(TAPES[tape][0], MARKERS, made)) + end
    tokens = harmony_tokens(output)
    parsed = parse_chunks(harmony(), TURN, tokens, problems=True)
    assert parsed == parse_chunks(harmony(), TURN, tokens, [1] * len(tokens), problems=True)
    assert set(WORD.findall(_NAMES.sub("", output))) <= set(WORD.findall(text_of(parsed)))


def test_a_role_is_dropped_at_the_beginning_of_a_header_alone() -> None:
    output = "<|channel|>final<|message|>one<|end|><|start|><|channel|>assistant Word3x final<|message|>two<|return|>"
    assert "Word3x" in text_of(parse_chunks(harmony(), TURN, harmony_tokens(output), problems=True))
