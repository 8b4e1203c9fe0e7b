"""Lark grammars of small source and large expansion: rejected before Lark expands them."""

from __future__ import annotations

import time

import pytest

from responses_app.dialects.constraints import grammar
from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar
from tests.support.dialects.large_grammars import LARGE, doubling

# Without the limit each of these takes minutes.
GENEROUS_S = 20


@pytest.mark.parametrize("name", LARGE)
def test_large_grammar_is_refused_with_its_count(name: str) -> None:
    definition, why = LARGE[name]
    began = time.monotonic()
    with pytest.raises(InvalidGrammar, match=why):
        grammar.convert("lark", definition)
    assert time.monotonic() - began < GENEROUS_S


@pytest.mark.parametrize("pattern", ["(((a{100}){100}){100})", "((a|b){0,1000}c){1,1000}", "x" * 32_000])
def test_a_large_regular_expression_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidGrammar, match=r"at most|more than"):
        grammar.convert("regex", pattern)


@pytest.mark.parametrize(
    "definition",
    [
        "start: " + '"a"? ' * 12,
        "start: " + " ".join(f'["a{n}"]' for n in range(10)),
        'start: ("a"|"b")~1..6',
        'start: "a"~100 ("b"~1000)~1000',
        doubling(10),
        "start: r0\n" + "".join(f'r{n}: "a{n}" r{n + 1} | "b"\n' for n in range(200)) + 'r200: "z"',
        "start: T\nT: " + "|".join(f'"word{n}"' for n in range(900)),
    ],
)
def test_a_grammar_of_common_size_is_not(definition: str) -> None:
    assert grammar.convert("lark", definition)
