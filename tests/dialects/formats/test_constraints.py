"""Constraints of declared formats, checked with the grammar engine: calls in the family's own form."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.base import OutputFormat
from responses_app.dialects.formats.table import CALLS, output_format
from responses_app.dialects.formats.variants import fit_to_tokens
from responses_app.engine_interface import Constraint
from tests.support.dialects.call_texts import CALL_TEXTS, TOOLS, Calls
from tests.support.dialects.parser_driver import CHATML, byte_vocabulary, turn

pytestmark = pytest.mark.engine

PERSON = {
    "type": "json_schema",
    "schema": {
        "type": "object",
        "properties": {"age": {"type": "integer"}},
        "required": ["age"],
        "additionalProperties": False,
    },
}
# The marker <|python_tag|> is optional, and Python strings are written in double quotes where a grammar applies.
LLAMA4 = CALL_TEXTS["llama4_json"]._replace(
    **{kind: text.removeprefix("<|python_tag|>") for kind, text in CALL_TEXTS["llama4_json"]._asdict().items()}
)
REPORT = 'report(title="G", days=3, draft=true, tags=["a","b c"], place={"name":"Åre","height":1.5})'


def _in_double_quotes(parser: str) -> Calls:
    texts = CALL_TEXTS[parser]
    begin, _, end = texts.empty.partition("clock()")
    return texts._replace(two=texts.two.replace("'", '"'), typed=begin + REPORT + end)


TEXTS = {
    **CALL_TEXTS,
    "llama4_json": LLAMA4,
    **{parser: _in_double_quotes(parser) for parser in ("lfm2", "llama4_pythonic", "olmo3", "pythonic")},
}


@cache
def dialect(tool_parser: str, reasoning_parser: str | None = None, **how: Any) -> ChatDialect:
    vocabulary, output = byte_vocabulary(), output_format(reasoning_parser, tool_parser)
    assert output is not None
    return ChatDialect(vocabulary, ChatTemplate(CHATML), [vocabulary.id("<|im_end|>") or 0], output, **how)


def accepts(tool_parser: str, text: str, reasoning_parser: str | None = None, **how: Any) -> bool:
    """Check that the constraint of a turn allows an output."""
    return _accepts(dialect(tool_parser, reasoning_parser).constrain(turn(**{"tools": TOOLS, **how})), text)


def _accepts(constraint: Constraint | None, text: str) -> bool:
    # Here, as xgrammar imports torch, which takes seconds.
    import xgrammar
    from xgrammar.testing import _is_grammar_accept_string

    assert constraint is not None
    grammar = xgrammar.Grammar.from_structural_tag(constraint.value)
    return bool(_is_grammar_accept_string(grammar, text))


@pytest.mark.parametrize("parser", TEXTS)
@pytest.mark.parametrize("kind", ["one", "empty", "typed"])
def test_required_call_in_the_form_of_the_family(parser: str, kind: str) -> None:
    assert accepts(parser, getattr(TEXTS[parser], kind), tool_choice="required")


@pytest.mark.parametrize("parser", TEXTS)
def test_required_calls_in_parallel(parser: str) -> None:
    assert accepts(parser, TEXTS[parser].two, tool_choice="required")


@pytest.mark.parametrize("parser", TEXTS)
def test_required_call_is_a_call_of_a_declared_tool(parser: str) -> None:
    text = TEXTS[parser].one
    assert not accepts(parser, "Hello.", tool_choice="required")
    assert not accepts(parser, text.replace("get_weather", "get_wether"), tool_choice="required")


@pytest.mark.parametrize("parser", TEXTS)
def test_named_tool_is_the_only_call(parser: str) -> None:
    named = {"type": "function", "name": "get_weather"}
    assert accepts(parser, TEXTS[parser].one, tool_choice=named)
    assert not accepts(parser, TEXTS[parser].typed, tool_choice=named)
    assert not accepts(parser, TEXTS[parser].two, tool_choice=named)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("parser", TEXTS)
def test_required_call_of_a_tool_without_parameters_has_no_arguments(parser: str, strict: bool) -> None:
    clock, weather = ({"type": "function", "name": name, "strict": strict} for name in ("clock", "get_weather"))
    assert accepts(parser, TEXTS[parser].empty, tools=(clock,), tool_choice="required")
    assert not accepts(parser, TEXTS[parser].one, tools=(weather,), tool_choice="required")


@pytest.mark.parametrize("parser", TEXTS)
def test_strict_tool_has_its_schema(parser: str) -> None:
    texts = TEXTS[parser]
    assert accepts(parser, texts.typed)
    wrong = texts.typed.replace("days", "weeks")
    assert not accepts(parser, wrong)


@pytest.mark.parametrize("parser", TEXTS)
def test_format_and_tools_together(parser: str) -> None:
    assert accepts(parser, '{"age":3}', format=PERSON)
    assert accepts(parser, TEXTS[parser].one, format=PERSON)
    assert not accepts(parser, "Hello.", format=PERSON)


@pytest.mark.parametrize(
    ("parser", "head"),
    [
        ("cohere_command3", "<|START_RESPONSE|>"),
        ("cohere_command4", "<|START_TEXT|>"),
        ("kimi_k3", "<|open|>response<|sep|>"),
        ("inkling", "<|message_model|><|content_text|>"),
        ("muse_glimmer", " to=user<|message|>"),
        ("granite", "<response>"),
        ("hunyuan_a13b", "<answer>\n"),
        ("functionary_v32", "all\n"),
        ("solar_open", "<|begin|>assistant<|content|>"),
    ],
)
def test_head_of_a_constrained_answer_is_allowed(parser: str, head: str) -> None:
    assert accepts(parser, head + '{"age":3}', format=PERSON)
    assert accepts(parser, '{"age":3}', format=PERSON)
    assert not accepts(parser, head + "Hello.", format=PERSON)


@pytest.mark.parametrize(
    ("parser", "answer"),
    [("granite", '<response>{"age":3}</response>'), ("hunyuan_a13b", '<answer>\n{"age":3}\n</answer>')],
)
def test_tags_of_a_constrained_answer_are_allowed_behind_reasoning(parser: str, answer: str) -> None:
    assert accepts(parser, f"<think>Hm.</think>\n{answer}", parser, format=PERSON)
    assert accepts(parser, '<think>Hm.</think>{"age":3}', parser, format=PERSON)


@pytest.mark.parametrize("name", ["RESPONSE", "TEXT"])
def test_end_marker_of_a_constrained_answer_is_allowed(name: str) -> None:
    answer = f'<|START_{name}|>{{"age":3}}<|END_{name}|>'
    assert accepts("cohere_command3" if name == "RESPONSE" else "cohere_command4", answer, format=PERSON)


def test_empty_response_of_kimi_before_a_required_call() -> None:
    head = "<|open|>response<|sep|><|close|>response<|sep|>"
    assert accepts("kimi_k3", head + TEXTS["kimi_k3"].one, tool_choice="required")
    assert not accepts("kimi_k3", head, tool_choice="required")


@pytest.mark.parametrize("gap", ["", "\n", "\n\n"])
def test_reasoning_before_a_required_call(gap: str) -> None:
    assert accepts("glm45", f"{gap}<think>Hm.</think>{gap}" + TEXTS["glm45"].one, "glm45", tool_choice="required")


def test_end_marker_of_reasoning_before_a_required_call_without_reasoning() -> None:
    assert accepts("glm45", "</think>" + TEXTS["glm45"].one, "glm45", tool_choice="required")


@pytest.mark.parametrize("opening", ["", "<think>\n", "\n<think>\n"])
def test_reasoning_of_a_model_that_always_reasons(opening: str) -> None:
    constraint = dialect("deepseek_v3", "deepseek_r1", always_thinks=True).constrain(turn(tools=TOOLS, tool_choice="required"))
    assert _accepts(constraint, f"{opening}Hm.\n</think>\n\n" + TEXTS["deepseek_v3"].one)
    assert not _accepts(constraint, TEXTS["deepseek_v3"].one)


# Forms that chat templates of the families write, beside the usual form of `TEXTS`.
_ID = ', "id": "a1b2c3d4e"'
OTHER_FORMS = {
    "values without line breaks around": (
        "qwen3_coder",
        re.sub(r"(<parameter=\w+>)\n|\n(</parameter>)", r"\1\2", TEXTS["qwen3_coder"].typed),
    ),
    "boolean in Python": ("qwen3_coder", TEXTS["qwen3_coder"].typed.replace("true", "True")),
    "empty line without arguments": ("deepseek_v4", TEXTS["deepseek_v4"].empty.replace('"clock">\n', '"clock">\n\n')),
    "two line breaks without arguments": ("ling3", "<tool_call>clock\n\n</tool_call>"),
    "calls without a line break between": ("glm47", TEXTS["glm47"].two.replace("\n<tool_call>", "<tool_call>")),
    "objects without a line break between": ("hermes", TEXTS["hermes"].two.replace("\n<tool_call>", "<tool_call>", 1)),
    "number of the second call": (
        "kimi_k2",
        "functions.get_weather:1".join(TEXTS["kimi_k2"].two.rsplit("functions.get_weather:0", 1)),
    ),
    "number of the second object": ("cohere_command3", '"1"'.join(TEXTS["cohere_command3"].two.rsplit('"0"', 1))),
    "indented objects": ("cohere_command3", TEXTS["cohere_command3"].two.replace('{"tool_call_id', '    {"tool_call_id')),
    "id of a call": ("mistral", TEXTS["mistral"].one.replace("[ARGS]", "[CALL_ID]a1b2c3d4e[ARGS]")),
    "other key of arguments": ("internlm", TEXTS["internlm"].one.replace("parameters", "arguments")),
    "both kinds of quotes": (
        "lfm2",
        CALL_TEXTS["lfm2"].one.replace('"Oslo"', repr('He said "hi", it\'s')),
    ),
    "both kinds of quotes in an object": (
        "pythonic",
        CALL_TEXTS["pythonic"].typed.replace("'Åre'", repr('He said "hi", it\'s')).replace("'a'", repr('it\'s "a"')),
    ),
    "call behind the marker of the prompt": ("functionary_v32", TEXTS["functionary_v32"].two.removeprefix(">>>")),
    "call in a message behind reasoning": ("solar_open", "<|begin|>assistant" + TEXTS["solar_open"].two),
    "single quotes": ("lfm2", CALL_TEXTS["lfm2"].typed),
}


@pytest.mark.parametrize("form", OTHER_FORMS)
def test_required_call_in_another_form_of_the_family(form: str) -> None:
    parser, text = OTHER_FORMS[form]
    assert accepts(parser, text, tool_choice="required")


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("more", ["", _ID])
def test_required_list_of_calls_of_old_mistral_models(space: str, more: str) -> None:
    listed = fit_to_tokens(OutputFormat(None, CALLS["mistral"]), ())
    vocabulary = byte_vocabulary()
    model = ChatDialect(vocabulary, ChatTemplate(CHATML), [vocabulary.id("<|im_end|>") or 0], listed)
    calls = f'[TOOL_CALLS]{space}[{{"name": "get_weather", "arguments": {{"city": "Oslo"}}{more}}}, {{"name": "clock", "arguments": {{}}}}]'
    assert _accepts(model.constrain(turn(tools=TOOLS, tool_choice="required")), calls)


@pytest.mark.parametrize(
    ("arguments", "is_valid"),
    [
        ("b=1", True),
        ("a=1, b=1", True),
        ("b=1, c=1", True),
        ("a=1, b=1, c=1", True),
        ("a=1", False),
        ("", False),
        ("c=1, b=1", False),
    ],
)
def test_optional_parameters_may_come_before_required_ones(arguments: str, is_valid: bool) -> None:
    number = {"type": "integer"}
    schema = {"type": "object", "properties": dict.fromkeys("abc", number), "required": ["b"]}
    tool = {"type": "function", "name": "count", "parameters": schema}
    assert accepts("pythonic", f"[count({arguments})]", tools=[tool], tool_choice="required") is is_valid


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "maxLength": 30},
        {"type": ["string", "null"]},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "description": "A text."},
        {},
    ],
)
@pytest.mark.parametrize("text", ["'a'", '"a"', repr('He said "hi" – it\'s')])
def test_strings_of_forced_python_calls_have_quotes_of_both_kinds(schema: dict[str, object], text: str) -> None:
    tool = {"type": "function", "name": "note", "parameters": {"type": "object", "properties": {"text": schema}}}
    assert accepts("pythonic", f"[note(text={text})]", tools=[tool], tool_choice="required")
    too_long = f"[note(text='{'a' * 31}')]"
    assert accepts("pythonic", too_long, tools=[tool], tool_choice="required") is ("maxLength" not in schema)
