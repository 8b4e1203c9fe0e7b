"""Bounds of JSON grammars, checked with the grammar engine: valid JSON of honest size is accepted, endless JSON is not."""

from __future__ import annotations

import copy
import json
import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings, strategies

from responses_app.dialects.constraints import bounds
from responses_app.dialects.constraints.structural_tag import arguments, json_value, literal, sequence
from tests.support.hypothesis_profile import examples

pytestmark = pytest.mark.engine
STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
FREE: dict[str, Any] = {"type": "object"}
Json = dict[str, Any]


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def record(**properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def bounded(schema: Json, white_space: int = bounds.COMPACT_WHITE_SPACE) -> Json:
    tag = {"type": "structural_tag", "format": json_value(schema, white_space)}
    result: Json = bounds.bounded_tag(tag, _ebnf)
    return result


def _ebnf(json_format: Mapping[str, Any]) -> str:
    import xgrammar

    limit = json_format["max_whitespace_cnt"]
    separators = {bounds.COMPACT_WHITE_SPACE: (",", ":"), bounds.SPACED_WHITE_SPACE: (", ", ": ")}.get(limit)
    grammar = xgrammar.Grammar.from_json_schema(
        json.dumps(json_format["json_schema"]),
        any_whitespace=separators is None,
        separators=separators,
        max_whitespace_cnt=None if separators else limit,
    )
    text = str(grammar)
    return bounds.allow_blanks(text) if limit == bounds.SPACED_WHITE_SPACE else text


def accepts(tag: Json, text: str) -> bool:
    """Return True if the grammar of `tag` matches the whole of `text`."""
    import xgrammar

    vocabulary = [*(bytes([byte]) for byte in range(256)), b"</s>"]
    info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=[256])
    compiled = xgrammar.GrammarCompiler(info, max_threads=1).compile_structural_tag(json.dumps(tag))
    matcher = xgrammar.GrammarMatcher(compiled)
    return bool(matcher.accept_string(text) and matcher.accept_token(256))


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


NODE = {"type": "object", "$defs": {"node": record(v=INTEGER, next={"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]})}}
LIST = {**NODE, **record(head={"$ref": "#/$defs/node"})}
DATED = record(day={"type": "string", "format": "date"}, code={"type": "string", "pattern": "^[A-Z]{2}[0-9]*$"})
LONG = "x" * bounds.MAX_STRING_CHARS
DIGITS = "9" * bounds.MAX_DIGITS
CASES: list[tuple[Json, str, bool]] = [
    (record(a=INTEGER, b=array(INTEGER)), '{"a":1,"b":[1,2]}', True),
    (record(a=INTEGER, b=array(INTEGER)), '{"a": 1,"b":[1,2]}', False),
    (record(a=INTEGER, b=array(INTEGER)), '{"a":1,"b":[1, 2]}', False),
    (STRING, '"a \\" \\\\ \\n \\u00e9 é 😀"', True),
    (STRING, f'"{LONG}"', True),
    (STRING, f'"{LONG}x"', False),
    ({**STRING, "minLength": 1}, '"a"', True),
    ({**STRING, "minLength": 1}, '""', False),
    ({**STRING, "minLength": 2}, f'"xx{LONG}"', True),
    ({**STRING, "minLength": 2}, f'"xx{LONG}x"', False),
    ({**STRING, "minLength": 1}, '"a\\n\\"b"', True),
    ({**STRING, "minLength": 1}, '"a\tb"', False),
    ({**STRING, "minLength": 1}, '"\ta"', False),
    ({**STRING, "maxLength": 5}, '"a\tb"', False),
    ({**STRING, "maxLength": 20_000}, f'"{LONG}x"', True),
    ({**STRING, "pattern": "^x*$"}, f'"{LONG}x"', True),
    ({"enum": [LONG + "x", 1]}, f'"{LONG}x"', True),
    ({"const": 12345678901234}, "12345678901234", True),
    (INTEGER, f"-{DIGITS}", True),
    (INTEGER, f"{DIGITS}9", False),
    ({**INTEGER, "minimum": 0}, DIGITS, True),
    ({**INTEGER, "minimum": 0}, f"{DIGITS}9", False),
    (NUMBER, f"-{DIGITS}.{DIGITS}e+308", True),
    (NUMBER, "1.7976931348623157e+308", True),
    (NUMBER, f"{DIGITS}9", False),
    (NUMBER, f"0.{DIGITS}9", False),
    ({**NUMBER, "minimum": 0}, f"{DIGITS}99.5", False),
    (DATED, '{"day":"2026-01-31","code":"AB' + "1" * 60 + '"}', True),
    (LIST, '{"head":{"v":1,"next":{"v":2,"next":null}}}', True),
    ({"anyOf": [STRING, record(a=NUMBER)]}, '{"a":-0.5}', True),
    (record(a={"const": "[1-9] [0-9]*"}), '{"a":"[1-9] [0-9]*"}', True),
    (record(basic_any=STRING), '{"basic_any":"x"}', True),
    (FREE, '{"a":[1,{"b":"x"}],"c":{},"d":[],"e":null,"f":true}', True),
    (FREE, '{"a":' + "[" * 31 + "1" + "]" * 31 + "}", True),
    (FREE, '{"a":' + "[" * 32 + "]" * 32 + "}", False),
    (FREE, '{"a":[1, 2]}', False),
    (FREE, "[1]", False),
    (FREE, f'{{"a":"{LONG}x"}}', False),
    (FREE, f'{{"{LONG}x":1}}', False),
    (record(a={}), '{"a":[[1],"x",{"y":2}]}', True),
]


@pytest.mark.parametrize(("schema", "text", "right"), CASES)
def test_bounds_refuse_only_endless_json(schema: Json, text: str, right: bool) -> None:
    assert accepts(bounded(schema), text) is right


@pytest.mark.parametrize("gap", ["", " ", "\n" + " " * 23])
def test_bounds_with_any_white_space_allow_the_limit(gap: str) -> None:
    tag = bounded(record(a=INTEGER, b=STRING, c=FREE), bounds.ANY_WHITE_SPACE)
    text = '{~"a"~:~1~,~"b"~:~"x"~,~"c"~:~{~"d"~:~[~1~,~2~]~}~}'
    assert accepts(tag, text.replace("~", gap))
    assert not accepts(tag, text.replace("~", " " * 25))


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('{"a":1,"b":", ","c":{"d":[1,2],"e":3}}', True),
        ('{"a": 1, "b": ": ", "c": {"d": [1, 2], "e": 3}}', True),
        ('{"a": 1,"b":"x", "c":{"d":[1, 2],"e": 3}}', True),
        ('{"a":  1,"b":"x","c":{}}', False),
        ('{ "a":1,"b":"x","c":{}}', False),
        ('{"a":1,"b":"x","c":{"d":\n1}}', False),
    ],
)
def test_bounds_with_spaced_separators_allow_a_blank(text: str, right: bool) -> None:
    assert accepts(bounded(record(a=INTEGER, b=STRING, c=FREE), bounds.SPACED_WHITE_SPACE), text) is right


# xgrammar accepts no escapes in the characters that a length counts.
LETTERS = strategies.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\')
ANY_STRING = strategies.text(strategies.characters(exclude_categories=["Cs"]), max_size=40)
WHOLE = strategies.integers(-(2**64), 2**64)
FREE_VALUE = strategies.recursive(
    strategies.none() | strategies.booleans() | WHOLE | ANY_STRING,
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(ANY_STRING, inner, max_size=3),
    max_leaves=8,
)
# Schemas without schemas inside, each with its instances.
Pair = tuple[Json, strategies.SearchStrategy[Any]]
LEAVES: list[Pair] = [
    (STRING, ANY_STRING),
    ({**STRING, "minLength": 0}, ANY_STRING),
    ({**STRING, "minLength": 2}, strategies.tuples(strategies.text(LETTERS, min_size=2, max_size=2), ANY_STRING).map("".join)),
    (INTEGER, WHOLE),
    ({**INTEGER, "minimum": 1}, strategies.integers(1, 2**62)),
    (NUMBER, strategies.floats(allow_nan=False, allow_infinity=False) | WHOLE),
    ({"type": "boolean"}, strategies.booleans()),
    ({"enum": ["a,b: c", ", ", 7, None]}, strategies.sampled_from(["a,b: c", ", ", 7, None])),
    (FREE, strategies.dictionaries(ANY_STRING, FREE_VALUE, max_size=3)),
]


def _wrap(pairs: strategies.SearchStrategy[Pair]) -> strategies.SearchStrategy[Pair]:
    arrays = pairs.map(lambda pair: (array(pair[0]), strategies.lists(pair[1], max_size=4)))
    choices = pairs.map(lambda pair: ({"anyOf": [pair[0], {"type": "null"}]}, pair[1] | strategies.none()))
    return arrays | choices | strategies.lists(pairs, min_size=1, max_size=4).map(_record_of)


def _record_of(pairs: list[Pair]) -> Pair:
    named = {f"key {number}": pair for number, pair in enumerate(pairs)}
    schema = record(**{name: pair[0] for name, pair in named.items()})
    instances = strategies.fixed_dictionaries({name: pair[1] for name, pair in named.items()})
    return schema, instances.map(lambda instance: {name: instance[name] for name in named})


@given(strategies.recursive(strategies.sampled_from(LEAVES), _wrap, max_leaves=6), strategies.data())
@settings(max_examples=examples(150))
def test_bounds_accept_every_valid_instance(pair: Pair, data: strategies.DataObject) -> None:
    schema, instances = pair
    assert accepts(bounded(schema), compact(data.draw(instances)))


def test_bounded_tag_leaves_its_input_and_other_formats_alone() -> None:
    xml = {"type": "json_schema", "json_schema": record(a=STRING), "style": "qwen_xml"}
    tag = {"type": "structural_tag", "format": sequence(literal("<"), json_value(record(type=STRING)), xml)}
    before = copy.deepcopy(tag)
    first, second, third = bounds.bounded_tag(tag, _ebnf)["format"]["elements"]
    assert tag == before
    assert (first, second["type"], third) == (literal("<"), "grammar", xml)


@pytest.mark.parametrize(
    ("text", "right"),
    [('{"a": 1, "b": 2}', True), ('{"a":1,"b":2}', True), ('{"a":  1, "b": 2}', False), ('{ "a": 1, "b": 2}', False)],
)
def test_arguments_of_calls_have_at_most_a_blank_behind_commas_and_colons(text: str, right: bool) -> None:
    tool = {"name": "f", "strict": True, "parameters": record(a=INTEGER, b=INTEGER)}
    grammar = bounds.bounded_tag({"type": "structural_tag", "format": arguments(tool)}, _ebnf)
    assert accepts(grammar, text) is right


def test_bounded_ebnf_takes_linear_time() -> None:
    def calls(fields: int) -> int:
        """Count the calls of functions, as the time depends on the machine."""
        text = _ebnf(json_value(record(**{f"field{n}": INTEGER if n % 2 else STRING for n in range(fields)})))
        events: Counter[str] = Counter()
        sys.setprofile(lambda _frame, event, _argument: events.update([event]))
        try:
            bounds.bounded_ebnf(text)
        finally:
            sys.setprofile(None)
        return events["call"] + events["c_call"]

    assert 0 < calls(2000) < 12 * calls(200)
