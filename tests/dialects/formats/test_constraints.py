"""Constraints of declared formats, checked with the grammar engine: calls in the family's own form."""

from __future__ import annotations

from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.template import ChatTemplate
from responses_app.dialects.formats.table import output_format
from tests.support.dialects.call_texts import CALL_TEXTS, TOOLS, Calls
from tests.support.dialects.parser_driver import CHATML, byte_vocabulary, turn

pytestmark = [pytest.mark.engine]
xgrammar = pytest.importorskip("xgrammar")

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


def dialect(tool_parser: str, reasoning_parser: str | None = None) -> ChatDialect:
    vocabulary, output = byte_vocabulary(), output_format(reasoning_parser, tool_parser)
    assert output is not None
    return ChatDialect(vocabulary, ChatTemplate(CHATML), [vocabulary.id("<|im_end|>") or 0], output)


def accepts(tool_parser: str, text: str, reasoning_parser: str | None = None, **how: Any) -> bool:
    """Check that the constraint of a turn allows an output."""
    constraint = dialect(tool_parser, reasoning_parser).constrain(turn(**{"tools": TOOLS, **how}))
    assert constraint is not None
    grammar = xgrammar.Grammar.from_structural_tag(constraint.value)
    from xgrammar.testing import _is_grammar_accept_string

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


def test_reasoning_before_a_required_call() -> None:
    assert accepts("glm45", "<think>Hm.</think>\n" + TEXTS["glm45"].one, "glm45", tool_choice="required")
