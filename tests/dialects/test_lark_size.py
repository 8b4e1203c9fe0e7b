"""Lark grammars that are small to send and large once written out: counted and refused before Lark writes them out."""

from __future__ import annotations

import time

import pytest

from responses_app.dialects.constraints import grammar
from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar

# Where the count is missing, each of these takes minutes.
GENEROUS_S = 20


def doubling(levels: int) -> str:
    return "start: T0\n" + "".join(f"T{n}: T{n + 1} T{n + 1}\n" for n in range(levels)) + f'T{levels}: "a"'


LARGE = {
    "terminals that double": (doubling(24), "terminal 'T0' has more than 10000 characters"),
    "optional parts": ("start: " + '"a"? ' * 18, "rule 'start' has 262144 expansions"),
    "optional parts in brackets": ("start: " + '["a"] ' * 18, "rule 'start' has 262144 expansions"),
    "stars": ("start: " + '"a"* ' * 18, "rule 'start' has 262180 expansions"),
    "choices": ("start: " + '("a"|"b") ' * 17, "rule 'start' has 131072 expansions"),
    "nested choices": ("start: " + '(("a"|"b") ("c"|"d"))? ' * 9, "rule 'start' has 1953125 expansions"),
    "repeated choices": ('start: ("a"|"b")~49', "rule 'start' has more than 1000000000 expansions"),
    "many repeated choices": ('start: (("a"|"b"|"c"|"d")~5)~1000', "expansions"),
    "choices of many rules": (
        "start: "
        + "|".join(f"r{n}" for n in range(40))
        + "\n"
        + "".join(f"r{n}: " + '("a"|"b") ' * 8 + f'"{n}"\n' for n in range(40)),
        "the grammar has 10280 expansions",
    ),
    "many rules": ("start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(1100)) + 'r1100: "a"', "it has 1102 rules"),
    "terminals that are ignored": ('start: "a"\n%ignore ' + "T0 " + doubling(24).removeprefix("start: T0"), "T0"),
    "repeats of repeats": ('start: A\nA: (("a"~1000)~1000)~1000', "multiplied out"),
}


@pytest.mark.parametrize("name", LARGE)
def test_it_is_refused_with_what_was_counted(name: str) -> None:
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
