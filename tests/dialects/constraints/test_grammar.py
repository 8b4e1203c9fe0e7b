"""Grammars of custom tools match the same texts as the original expression or grammar, written as JSON."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_app.dialects.constraints import grammar, regex_to_ebnf, structural_tag
from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar

PATTERNS = [
    r"[A-Za-z]+\s\d{2,4}",
    r'(?i)abc|[^"\\]x',
    r"^a.b\n?$",
    r'"\w+"',
    r"\\d(?s:.)",
    r"[\n\t -~]*",
    r"(?:[^a-z]|x)+",
    r"(a|b){3,}c{,2}",
]
ARITHMETIC = """
start: expr
expr: expr "+" term | term
term: term "*" factor | factor
factor: NUMBER | "(" expr ")"
%import common.NUMBER
%ignore " "
"""
ALIASES = """
start: expr
expr: term (SP ADD SP term)* -> add
    | term
term: factor (SP MUL SP factor)* -> mul
    | factor
factor: INT
SP: " "
ADD: "+"
MUL: "*"
%import common.INT
"""
PATCH = r"""
start: "*** Begin Patch" LF hunk+ "*** End Patch" LF?
hunk: "*** Add File: " /(.+)/ LF add_line+ | "*** Delete File: " /(.+)/ LF
add_line: "+" /(.*)/ LF -> line
%import common.LF
"""


def matches(ebnf: str, text: str) -> bool:
    """Return True if the engine's grammar matches the text as a JSON string."""
    import xgrammar
    from xgrammar.testing import _is_grammar_accept_string

    spelt = json.dumps(text, ensure_ascii=False)[1:-1]
    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_ebnf(ebnf), spelt))


def regex(pattern: str) -> str:
    rule = grammar.ebnf({"type": "grammar", "syntax": "regex", "definition": pattern})
    assert rule is not None
    return rule


def lark(definition: str) -> str:
    rule = grammar.ebnf({"type": "grammar", "syntax": "lark", "definition": definition})
    assert rule is not None
    return rule


@pytest.mark.engine
@pytest.mark.parametrize("pattern", PATTERNS)
@given(data=st.data())
def test_a_regular_expression_takes_what_python_takes(pattern: str, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(pattern, fullmatch=True, alphabet=st.sampled_from('abcdABC019 "\\\n\tx')))
    assert re.fullmatch(pattern, text)
    assert matches(regex(pattern), text)


@pytest.mark.engine
@pytest.mark.parametrize("pattern", PATTERNS)
@given(text=st.text(alphabet='abcABC019 "\\\n\txd', max_size=6))
def test_regex_grammar_matches_the_same_texts_as_the_regex(pattern: str, text: str) -> None:
    assert matches(regex(pattern), text) == bool(re.fullmatch(pattern, text))


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?=a)b", "look-ahead"),
        ("(?<!x)a", "look-behind"),
        ("a*?", "lazy"),
        ("a++", "possessive"),
        (r"(a)\1", "references"),
        (r"a\bb", "word boundaries"),
        ("[", "cannot be read"),
        ("a{20000}", "repeated more than"),
        ("(" * 5000 + ")" * 5000, "regular expression"),
        (r"[\x00-\x01]", "none that a text can hold"),
    ],
)
def test_invalid_expression_is_rejected_with_reason(pattern: str, why: str) -> None:
    with pytest.raises(InvalidGrammar, match=why):
        regex_to_ebnf.to_ebnf(pattern)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("definition", "text", "good"),
    [
        (ARITHMETIC, "1+2", True),
        (ARITHMETIC, "(1 + 2)*3.5", True),
        (ARITHMETIC, "1+", False),
        (ARITHMETIC, "a", False),
        (ALIASES, "4 + 4 * 2", True),
        (ALIASES, "4 + ", False),
        (PATCH, '*** Begin Patch\n*** Add File: a.txt\n+say "hi"\n+\n*** End Patch\n', True),
        (PATCH, "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch", True),
        (PATCH, "*** Begin Patch\n*** End Patch", False),
        ('start: "a"i "b"~2..3', "Abb", True),
        ('start: "a"i "b"~2..3', "ab", False),
        ('start: ["x"] A?\nA: "a".."c"+', "xab", True),
        ("start:", "", True),
    ],
)
def test_a_lark_grammar_takes_its_language(definition: str, text: str, good: bool) -> None:
    assert matches(lark(definition), text) is good


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("start: x", "Rule 'x' used but not defined"),
        ('foo: "a"', "no rule 'start'"),
        ('start: "a', "cannot be read"),
        ('start: "a"\n%import .local', "only terminals of 'common'"),
        ("%import python.NAME\nstart: NAME", "only terminals of 'common'"),
        ('%declare X\nstart: "a"', "'%declare' is not supported"),
        ("start: A\nA: /(?!b)a/", "look-ahead"),
        ("", "no rule 'start'"),
    ],
)
def test_invalid_grammar_is_rejected_with_reason(definition: str, why: str) -> None:
    with pytest.raises(InvalidGrammar, match=why):
        lark(definition)


@given(text=st.text(max_size=60))
@pytest.mark.slow
@pytest.mark.parametrize("syntax", ["regex", "lark"])
def test_any_text_is_a_grammar_or_a_clear_error(text: str, syntax: str) -> None:
    try:
        grammar.ebnf({"type": "grammar", "syntax": syntax, "definition": text})
    except InvalidGrammar as error:
        message = str(error)
        assert message


@pytest.mark.parametrize("pattern", ["(((a{100}){100}){100})", "((a|b){0,1000}c){1,1000}", "x" * 32_000])
def test_large_regular_expression_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidGrammar, match=r"at most|more than"):
        grammar.convert("regex", pattern)


def test_the_grammar_stands_in_the_arguments_of_a_call() -> None:
    arguments_format = structural_tag.arguments({"name": "t", "grammar": regex("a+")})
    assert [one["type"] for one in arguments_format["elements"]] == ["const_string", "grammar", "const_string"]


@pytest.mark.parametrize("rules", ["start: start", 'start: a\na: "x" b\nb: a | b "y"'])
def test_a_grammar_that_no_text_matches_is_refused(rules: str) -> None:
    with pytest.raises(InvalidGrammar, match="never comes to an end"):
        grammar.ebnf({"type": "grammar", "syntax": "lark", "definition": rules})


@pytest.mark.engine
def test_a_rule_that_never_ends_does_no_harm_beside_one_that_does() -> None:
    assert matches(grammar.ebnf({"type": "grammar", "syntax": "lark", "definition": 'start: "x" | a\na: a'}) or "", "x")
