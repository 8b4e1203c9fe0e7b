"""Outputs accepted and rejected by a constraint, checked token by token with the grammar engine."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from responses_app.dialects.base import Dialect, Turn, UnsupportedInput
from responses_app.dialects.constraints.structural_tag import not_yet_binding, widen_white_space
from responses_app.dialects.harmony.tokens import CALL, END_OF_TEXT, RETURN, token_bytes
from responses_app.dialects.schema_limits import SchemaLimits
from responses_app.tools.registry import FUNCTIONS
from tests.support.dialects.parser_driver import CLOCK, OPENING, WEATHER, chat, demo_vocabulary, harmony, harmony_tokens, turn

PERSON = {
    "type": "json_schema",
    "name": "person",
    "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
}
ADA = '{"name": "Ada", "age": 36}'
NAMED = {"type": "function", "name": "get_weather"}
SERVER_FUNCTIONS = tuple(FUNCTIONS[name] for name in ("python", "web_search", "file_search"))
# The optional arguments of Pydantic and of Zod.
OPTIONAL = {
    "zone": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    "hours": {"anyOf": [{"const": 12}, {"const": 24}]},
    "note": {"type": ["string", "null"]},
}
# Conditions, definitions and discriminated unions of Pydantic and of Zod.
CHECKED = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "exclusiveMinimum": 0, "maximum": 10},
        "text": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "[a-z]"},
        "shape": {"oneOf": [{"$ref": "#/$defs/Dot"}, {"$ref": "#/$defs/Tree"}], "discriminator": {"propertyName": "kind"}},
        "other": {"not": {"type": "string"}, "if": {}},
    },
    "required": ["count"],
    "$defs": {
        "Dot": {"type": "object", "properties": {"kind": {"const": "dot"}}, "required": ["kind"]},
        "Tree": {
            "type": "object",
            "properties": {"inside": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "minItems": 1}},
        },
    },
}
CHOICES: dict[str, dict[str, Any]] = {
    "required": {"tool_choice": "required", "tools": (WEATHER, CLOCK)},
    "named": {"tool_choice": NAMED, "tools": (WEATHER, CLOCK)},
    "single": {"tool_choice": "required", "tools": (WEATHER, CLOCK), "parallel_tool_calls": False},
    "allowed": {
        "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "clock"}]},
        "tools": (WEATHER, CLOCK),
    },
    "schema": {"format": PERSON, "tools": ()},
    "object": {"format": {"type": "json_object"}, "tools": ()},
    "schema_or_call": {"format": PERSON, "tools": (WEATHER,)},
    "free": {"tools": (WEATHER, CLOCK)},
    "free_single": {"tools": (WEATHER, CLOCK), "parallel_tool_calls": False},
    "own": {"tools": (*SERVER_FUNCTIONS, WEATHER)},
    "own_schema": {"tools": SERVER_FUNCTIONS, "format": PERSON},
    "own_python": {"tools": (*SERVER_FUNCTIONS, WEATHER), "tool_choice": {"type": "function", "name": "python"}},
    "own_required": {"tools": SERVER_FUNCTIONS, "tool_choice": "required"},
    "optional": {"tools": ({**CLOCK, "parameters": {"type": "object", "properties": OPTIONAL, "required": ["zone"]}},)},
    "bare": {"tools": ({"type": "function", "name": "clock"},)},
    "any": {"tools": ({**CLOCK, "parameters": {"type": "object", "anyOf": [{"type": "string"}, {}]}},)},
    "odd": {"tools": ({**CLOCK, "parameters": {"type": "object", "properties": {"a": {}}, "if": {}}},)},
    "checked": {"tools": ({**CLOCK, "parameters": CHECKED},)},
}


def test_a_free_answer_has_no_constraint() -> None:
    assert harmony().constrain(turn(tools=())) is None
    assert chat().constrain(turn(tools=())) is None
    assert chat().constrain(turn(tools=(WEATHER,), tool_choice="none")) is None


@pytest.mark.parametrize("dialect", [harmony, chat])
def test_a_format_without_a_schema_is_refused(dialect: Any) -> None:
    with pytest.raises(UnsupportedInput) as caught:
        dialect().constrain(turn(format={"type": "json_schema", "name": "x"}))
    assert caught.value.param == "text.format.type"


def test_the_keys_of_the_schema_keep_their_order() -> None:
    constraint = chat().constrain(turn(format=PERSON))
    assert constraint is not None
    text = json.dumps(constraint.value)
    assert text.index('"name": {"type": "string"}') < text.index('"age": {"type": "integer"}')


@pytest.mark.parametrize(
    "parameters", [None, {}, {"description": "anything"}, {"type": "string"}, {"properties": {"a": {"type": "string"}}}]
)
@pytest.mark.parametrize("dialect", [harmony, chat])
def test_c7_arguments_are_an_object_whatever_the_schema_forgets(dialect: Any, parameters: Any) -> None:
    constraint = dialect().constrain(turn(tools=({**CLOCK, "parameters": parameters},), tool_choice="required"))
    schemas = [each for each in _formats(constraint.value) if each["type"] == "json_schema"]
    assert [schema["json_schema"]["type"] for schema in schemas] == ["object"]


def _formats(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "json_schema" in value:
            yield value
        value = list(value.values())
    for child in value if isinstance(value, list) else ():
        yield from _formats(child)


@cache
def _compiler(name: str) -> Any:
    import xgrammar

    if name == "harmony":
        vocabulary = [token_bytes(harmony().encoding, token) for token in range(201088)]
        stops = [RETURN, CALL, END_OF_TEXT]
    else:
        stop = demo_vocabulary().id("<|im_end|>")
        assert stop is not None
        vocabulary = [demo_vocabulary().token_bytes(token) for token in range(4096)]
        while not vocabulary[-1]:
            vocabulary.pop()
        stops = [stop]
    info = xgrammar.TokenizerInfo(vocabulary, xgrammar.VocabType.RAW, stop_token_ids=stops)
    return xgrammar.GrammarCompiler(info, max_threads=1)


def _accepts(compiler: str, dialect: Dialect, to: Turn, tokens: list[int]) -> bool:
    import xgrammar

    constraint = dialect.constrain(to)
    assert constraint is not None
    matcher = xgrammar.GrammarMatcher(_compiler(compiler).compile_structural_tag(json.dumps(constraint.value)))
    return all(matcher.accept_token(token) for token in tokens)


ANALYSIS = "<|channel|>analysis<|message|>Let me see.<|end|><|start|>assistant"
PREAMBLE = "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant"
FINAL = "<|channel|>final<|message|>"
OSLO = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}'
NOW = "<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}"
PYTHON = "<|channel|>analysis to=python code<|message|>"
SEARCH = "<|channel|>analysis to=browser.search code<|message|>"
HARMONY = [
    ("required", ANALYSIS + OSLO + "<|call|>", True),
    ("required", ANALYSIS + PREAMBLE + NOW + "<|call|>", True),
    ("required", OSLO + "<|call|>", True),
    ("required", ANALYSIS + FINAL + "No.<|return|>", False),
    ("required", ANALYSIS + OSLO.replace("city", "town") + "<|call|>", False),
    ("required", ANALYSIS + OSLO.replace("get_weather", "dance") + "<|call|>", False),
    ("named", ANALYSIS + OSLO + "<|call|>", True),
    ("named", ANALYSIS + NOW + "<|call|>", False),
    ("allowed", NOW + "<|call|>", True),
    ("allowed", OSLO + "<|call|>", False),
    ("schema", ANALYSIS + FINAL + ADA + "<|return|>", True),
    ("schema", FINAL + ADA + "<|return|>", True),
    ("schema", ANALYSIS + FINAL + '{"age": 36, "name": "Ada"}<|return|>', False),
    ("schema", ANALYSIS + FINAL + "Ada<|return|>", False),
    ("schema", ANALYSIS + OSLO + "<|call|>", False),
    ("schema", ANALYSIS + FINAL + '{"name": "Ada"<|return|>', False),
    ("object", FINAL + '{"a": [1]}<|return|>', True),
    ("object", FINAL + "[1]<|return|>", False),
    ("schema", ANALYSIS.replace("see.", "see.<|end|>Hello") + FINAL + ADA + "<|return|>", False),
    ("schema_or_call", ANALYSIS + FINAL + ADA + "<|return|>", True),
    ("schema_or_call", ANALYSIS + OSLO + "<|call|>", True),
    ("schema_or_call", ANALYSIS + FINAL + "Hello.<|return|>", False),
    ("free", ANALYSIS + FINAL + "Hello.<|return|>", True),
    ("free", ANALYSIS + PREAMBLE + OSLO + "<|call|>", True),
    ("free", OSLO + "<|end|><|start|>assistant" + NOW + "<|call|>", True),
    ("free", OSLO.replace("city", "town") + "<|call|>", False),
    ("free", OSLO.replace("get_weather", "dance") + "<|call|>", False),
    ("free", OSLO.removesuffix("}") + "<|call|>", False),
    ("free_single", ANALYSIS + OSLO + "<|call|>", True),
    ("free_single", OSLO + "<|end|><|start|>assistant" + NOW + "<|call|>", False),
    ("own", ANALYSIS + PYTHON + "print(1)<|call|>", True),
    ("own", ANALYSIS + PYTHON.replace("analysis", "commentary") + "print(1)<|call|>", True),
    ("own", ANALYSIS + SEARCH + '{"query": "x", "topn": 3}<|call|>', True),
    ("own", ANALYSIS + SEARCH + '{"query": <|call|>', False),
    ("own", ANALYSIS + SEARCH.replace("search", "close") + "{}<|call|>", False),
    ("own", ANALYSIS + OSLO + "<|call|>", True),
    ("own", ANALYSIS + FINAL + "Hello.<|return|>", True),
    ("own_schema", ANALYSIS + FINAL + ADA + "<|return|>", True),
    ("own_schema", ANALYSIS + PYTHON + "print(1)<|call|>", True),
    ("own_schema", ANALYSIS + FINAL + "Hello.<|return|>", False),
    ("own_python", ANALYSIS + PYTHON + "print(1)<|call|>", True),
    ("own_python", ANALYSIS + SEARCH + "{}<|call|>", False),
    ("own_required", ANALYSIS + SEARCH + "{}<|call|>", True),
    ("own_required", ANALYSIS + FINAL + "Hello.<|return|>", False),
    ("bare", NOW + "<|call|>", True),
    ("bare", NOW.replace("{}", '{"a": 1}') + "<|call|>", False),
    ("odd", NOW.replace("{}", '{"b": [1, null]}') + "<|call|>", True),
    ("odd", NOW.replace("{}", "[1]") + "<|call|>", False),
]


@pytest.mark.engine
@pytest.mark.parametrize(("choice", "output", "right"), HARMONY)
def test_harmony_constraint_accepts_exactly_valid_outputs(choice: str, output: str, right: bool) -> None:
    assert _accepts("harmony", harmony(), turn(**CHOICES[choice]), harmony_tokens(output)) is right


THINK = "<think>\nHm.\n</think>\n\n"
CALL_OSLO = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
CALL_NOW = '<tool_call>\n{"name": "clock", "arguments": {}}\n</tool_call>'
END = "<|im_end|>"
CHAT = [
    ("required", THINK + CALL_OSLO + END, True),
    ("required", CALL_OSLO + "\n" + CALL_NOW + END, True),
    ("required", THINK + "No." + END, False),
    ("required", THINK + END, False),
    ("required", THINK + CALL_OSLO.replace("city", "town") + END, False),
    ("single", THINK + CALL_OSLO + END, True),
    ("single", THINK + CALL_OSLO + "\n" + CALL_NOW + END, False),
    ("named", THINK + CALL_OSLO + END, True),
    ("named", THINK + CALL_NOW + END, False),
    ("allowed", THINK + CALL_NOW + END, True),
    ("allowed", THINK + CALL_OSLO + END, False),
    ("schema", THINK + ADA + END, True),
    ("schema", ADA + END, True),
    ("schema", "\n\n" + ADA + END, True),
    ("schema", "\n\n\n\n" + ADA + END, False),
    ("schema", THINK + '{"age": 36, "name": "Ada"}' + END, False),
    ("schema", THINK + "Hello." + END, False),
    ("object", '{"a": [1]}' + END, True),
    ("object", "[1]" + END, False),
    ("schema_or_call", THINK + CALL_OSLO + END, True),
    ("schema_or_call", THINK + ADA + END, True),
    ("free", THINK + "Hello." + END, True),
    ("free", "It is < 5, <tool> or not" + END, True),
    ("free", THINK + CALL_OSLO + "\n" + CALL_NOW + END, True),
    ("free", THINK + "I look.\n" + CALL_OSLO + "\nDone." + THINK + "Yes." + END, True),
    ("free", "<think>\n" + CALL_OSLO + END, True),
    ("free", CALL_OSLO.replace("city", "town") + END, False),
    ("free", CALL_OSLO.replace("get_weather", "dance") + END, False),
    ("free", "<tool_call>\nget_weather" + END, False),
    ("free_single", THINK + CALL_OSLO + END, True),
    ("free_single", THINK + CALL_OSLO + "\n" + CALL_NOW + END, False),
    ("optional", CALL_NOW.replace("{}", '{"zone": null, "hours": 12, "note": "a"}') + END, True),
    ("optional", CALL_NOW.replace("{}", '{"zone": "a"}') + END, True),
    ("optional", CALL_NOW + END, False),
    ("optional", CALL_NOW.replace("{}", '{"zone": 1}') + END, False),
    ("optional", CALL_NOW.replace("{}", '{"zone": null, "hours": 13}') + END, False),
    ("any", CALL_NOW + END, True),
    ("any", CALL_NOW.replace("{}", '"a"') + END, False),
    ("odd", CALL_NOW.replace("{}", '{"b": [1, null]}') + END, True),
    ("odd", CALL_NOW.replace("{}", "[1]") + END, False),
    ("checked", CALL_NOW.replace("{}", '{"count": 10, "text": "\\"A\\n\\""}') + END, True),
    ("checked", CALL_NOW.replace("{}", '{"count": 0}') + END, False),
    ("checked", CALL_NOW.replace("{}", '{"count": 11}') + END, False),
    ("checked", CALL_NOW.replace("{}", '{"text": "a"}') + END, False),
    ("checked", CALL_NOW.replace("{}", '{"count": 1, "shape": {"kind": "dot"}, "other": [1]}') + END, True),
    ("checked", CALL_NOW.replace("{}", '{"count": 1, "shape": {"kind": "box"}}') + END, False),
    ("checked", CALL_NOW.replace("{}", '{"count": 1, "shape": {"inside": [{"inside": [{}]}]}}') + END, True),
    ("checked", CALL_NOW.replace("{}", '{"count": 1, "shape": {"inside": []}}') + END, False),
]


@pytest.mark.engine
@pytest.mark.parametrize(("choice", "output", "right"), CHAT)
def test_chat_constraint_accepts_exactly_valid_outputs(choice: str, output: str, right: bool) -> None:
    dialect = chat(vocabulary=demo_vocabulary())
    assert _accepts("chat", dialect, turn(**CHOICES[choice]), demo_vocabulary().encode(output)) is right


@pytest.mark.engine
@pytest.mark.parametrize(
    ("output", "right"),
    [
        ("Hm.\n</think>\n\n" + ADA + END, True),
        ("a < b </ c</think>" + ADA + END, True),
        (ADA + END, False),
        (THINK + ADA + END, False),
        ("Hm.\n</think>\n\nHello.\n</think>\n\n" + ADA + END, False),
    ],
)
def test_a_prompt_that_opened_the_reasoning_wants_it_closed_first(output: str, right: bool) -> None:
    dialect = chat(OPENING, demo_vocabulary())
    assert _accepts("chat", dialect, turn(**CHOICES["schema"]), demo_vocabulary().encode(output)) is right


@pytest.mark.engine
@pytest.mark.parametrize(("output", "right"), [(ADA + END, True), (THINK + ADA + END, False)])
def test_a_prompt_that_closed_the_reasoning_wants_the_answer_at_once(output: str, right: bool) -> None:
    dialect = chat(vocabulary=demo_vocabulary())
    assert _accepts("chat", dialect, turn(**CHOICES["schema"], effort="none"), demo_vocabulary().encode(output)) is right


RANGE = {
    "type": "function",
    "name": "square",
    "parameters": {"type": "object", "properties": {"input": {"type": "integer", "minimum": 0}}, "required": ["input"]},
}


@pytest.mark.engine
@pytest.mark.parametrize(
    ("output", "right"),
    [
        (THINK + "Hello." + END, True),
        ("Hello." + END, True),
        (f"<think>\n{'No' * 10}\n</think>\n\nHello." + END, False),
        (THINK + "Hello.<think>No</think>" + END, False),
        (THINK + CALL_OSLO + "\n" + CALL_NOW + END, True),
        (THINK + CALL_OSLO.replace("Oslo", "Oslololo") + END, False),
        (CALL_NOW.replace("clock", "square").replace("{}", '{"input": 3}') + END, True),
        (CALL_NOW.replace("clock", "square").replace("{}", '{"minimum": 3}') + END, False),
    ],
)
def test_limits_bound_reasoning_and_arguments(output: str, right: bool) -> None:
    limited = turn(tools=(WEATHER, CLOCK, RANGE), max_reasoning_length=12, schema_limits=SchemaLimits(string_length=4))
    assert _accepts("chat", chat(vocabulary=demo_vocabulary()), limited, demo_vocabulary().encode(output)) is right


@pytest.mark.parametrize(
    ("tools", "text", "free"),
    [
        ((WEATHER,), "<think>Hm.</think>Hello", True),
        ((WEATHER,), "<think>Hm.</think><tool", False),
    ],
)
def test_limited_reasoning_leaves_the_text_free(tools: Any, text: str, free: bool) -> None:
    constraint = chat().constrain(turn(tools=tools, max_reasoning_length=12))
    assert constraint is not None
    assert not_yet_binding(constraint, text) is free


def test_limited_reasoning_without_tools_needs_no_grammar() -> None:
    assert chat().constrain(turn(tools=(), max_reasoning_length=12)) is None


@pytest.mark.parametrize(("setting", "limit"), [("compact", 1), ("spaced", 2), ("any", 24)])
@pytest.mark.parametrize("form", [PERSON, {"type": "json_object"}])
def test_white_space_of_a_format_follows_the_setting(form: dict[str, Any], setting: str, limit: int) -> None:
    constraint = harmony().constrain(turn(format=form, tools=(), json_whitespace=setting))
    assert constraint is not None
    assert [each["max_whitespace_cnt"] for each in _formats(constraint.value)] == [limit]


@pytest.mark.parametrize("dialect", [harmony(), chat()], ids=["harmony", "chat"])
def test_arguments_of_calls_allow_a_blank_or_any_white_space(dialect: Dialect) -> None:
    constraint = dialect.constrain(turn(tool_choice="required", tools=(WEATHER,)))
    assert constraint is not None
    assert [each["max_whitespace_cnt"] for each in _formats(constraint.value)] == [2]
    assert [each["max_whitespace_cnt"] for each in _formats(widen_white_space(constraint.value))] == [24]
