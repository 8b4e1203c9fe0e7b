"""Models whose checkpoint names the form of its output (`response_template`) and whose chat template does not show it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from responses_app.dialects.chat.dialect import ChatDialect
from responses_app.dialects.chat.structural_tags import ReasoningStart, constrain
from responses_app.dialects.checkpoint import Checkpoint
from responses_app.dialects.families.detection import ReadBack
from responses_app.dialects.families.format_choice import FormatChoice
from responses_app.dialects.formats.call_text import write_calls
from responses_app.dialects.registry import open_checkpoint
from responses_app.dialects.toolset import toolset
from responses_app.protocol.deltas import Call
from tests.support.dialects.families.cases import TOOLS, Item, OutputCase
from tests.support.dialects.families.checkpoint_folder import write_checkpoint
from tests.support.dialects.families.choices import ONE_CALL, choose_for, read_by_letters
from tests.support.dialects.families.formats.registry import FAMILIES
from tests.support.dialects.families.response_templates import (
    ACT,
    CALLS,
    CASES,
    FUNCTION,
    LINES,
    NAMED,
    ResponseCase,
    response_template,
)
from tests.support.dialects.parser_driver import CHATML, parse_chunks, turn

pytestmark = [pytest.mark.engine, pytest.mark.filterwarnings("ignore")]

# Shows the tools, and drops calls and reasoning.
HIDING = """{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}<|im_end|>
{% endfor %}{% if tools %}{{ tools | tojson }}{% endif %}<|im_start|>assistant
"""
EXPECTED: list[Item] = [("reasoning", "I look."), ("text", "Let me look."), *(("call", *each) for each in CALLS)]


def special_tokens(case: ResponseCase) -> list[str]:
    return re.findall(r"<\|\w+\|>", case.output + str(case.template).replace("\\", ""))


def choose(name: str) -> FormatChoice:
    case = CASES[name]
    return choose_for(HIDING, *special_tokens(case), response_template=case.template, model_type="new_model")


def read(case: ResponseCase, output: str, choice: FormatChoice) -> list[Item]:
    for token in special_tokens(case):
        # Special tokens that are no markers do not come out of the tokenizer.
        if not any(token in marker for marker in choice.output.markers):
            output = output.replace(token, "")
    return read_by_letters(choice.output, OutputCase("output", output, tuple(EXPECTED)))


@pytest.mark.parametrize("name", CASES)
def test_reasoning_text_and_calls_are_read_in_the_form_that_the_response_template_names(name: str) -> None:
    case, choice = CASES[name], choose(name)
    assert (choice.detection.calls, choice.detection.reasoning) == (ReadBack.EQUAL, ReadBack.EQUAL)
    assert (choice.detection.chosen_by, choice.detection.evidence) == ("response_template", ("response_template",))
    assert choice.detection.warnings == ()
    assert read(case, case.output, choice) == EXPECTED


@pytest.mark.parametrize("name", CASES)
def test_forced_calls_have_a_form_that_the_response_template_reads(name: str) -> None:
    # Here, as xgrammar imports torch, which takes seconds.
    import xgrammar
    from transformers.utils.chat_parsing import parse_response
    from xgrammar.testing import _is_grammar_accept_string

    output = choose(name).output
    assert output.calls is not None
    text = write_calls(output.calls.syntax, [{"name": "get_weather", "arguments": {"city": "Oslo"}}])
    # The reasoning may be required, or only end.
    message = parse_response(CASES[name].thought + text, CASES[name].template, prefix="")
    assert [each["function"] for each in message["tool_calls"]] == [{"name": "get_weather", "arguments": {"city": "Oslo"}}]
    forced = turn(tools=TOOLS, tool_choice="required")
    constraint = constrain(forced, toolset(forced), output, ReasoningStart.NEVER)
    assert constraint is not None
    assert _is_grammar_accept_string(xgrammar.Grammar.from_structural_tag(constraint.value), text)


# Writes calls in a form that cannot be derived: the name stands behind the arguments.
UNREAD = CHATML.replace(ONE_CALL, "'<|act|>' + call.function.arguments | tojson + '<|of|>' + call.function.name")


@pytest.mark.parametrize("name", ["list of objects", "channels", "required reasoning, and no field for the text"])
def test_beginnings_of_messages_between_fields_are_no_text(name: str) -> None:
    import xgrammar
    from xgrammar.testing import _is_grammar_accept_string

    case, choice, header = CASES[name], choose(name), "<|im_start|>assistant\n"
    assert read(case, f"{case.thought}{header}{case.text}{header}{case.calls}", choice) == EXPECTED
    forced = turn(tools=TOOLS, tool_choice="required")
    constraint = constrain(forced, toolset(forced), choice.output, ReasoningStart.FREE)
    assert constraint is not None
    assert _is_grammar_accept_string(
        xgrammar.Grammar.from_structural_tag(constraint.value), f"{case.thought}{header}{case.calls}"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("name and number in the opening", '<|fn|>functions.get_weather:0<|with|>{"city": "Oslo"}<|end_fn|>'),
        ("white space that may be absent", "<do>\n<fn=get_weather><p=city>\nOslo\n</p></fn>\n</do>"),
    ],
)
def test_forced_elements_stand_on_lines_of_their_own_and_other_calls_do_not(name: str, text: str) -> None:
    output = choose(name).output
    assert output.calls is not None
    assert write_calls(output.calls.syntax, [{"name": "get_weather", "arguments": {"city": "Oslo"}}]) == text


def test_the_form_of_the_chat_template_is_taken_where_it_is_read() -> None:
    choice = choose_for(CHATML, response_template=ACT, model_type="qwen3")
    assert (choice.detection.tool_parser, choice.detection.calls) == ("hermes", ReadBack.EQUAL)
    assert choice.detection.chosen_by != "response_template"
    calls, reasoning = choice.detection.warnings
    assert "different forms of calls: that of the chat template is read" in calls
    assert "different forms of reasoning: that of the chat template is read" in reasoning


def test_templates_with_the_same_forms_are_no_warning() -> None:
    same = response_template(
        {"open": "<tool_call>", "close": "</tool_call>", "transform": FUNCTION},
        thinking={"open": "<think>", "close": "</think>"},
    )
    with_it, without = (choose_for(CHATML, response_template=each, model_type="qwen3") for each in (same, None))
    assert with_it == without


def test_the_response_template_decides_where_no_format_reads_the_chat_template() -> None:
    choice = choose_for(UNREAD, response_template=ACT, model_type="new_model")
    assert choice.detection.chosen_by == "response_template"
    (warning,) = (each for each in choice.detection.warnings if "forms of calls" in each)
    assert "that of the response_template is read" in warning
    expected = [("call", *each) for each in CALLS]
    assert read_by_letters(choice.output, OutputCase("act", CASES["objects"].calls, tuple(expected))) == expected
    # Calls of the other form are still recognised as such.
    assert any("<|act|>" in head for head in choice.output.unknown_calls)


def test_a_form_that_is_not_read_is_named_in_a_warning() -> None:
    choice = choose_for(HIDING, response_template=LINES, model_type="new_model")
    assert (choice.detection.calls, choice.detection.chosen_by) == (ReadBack.DIFFERENT, "default")
    assert any(
        "The response_template names calls in a form that no known tool parser reads" in each
        and "<do>get_markplan place:" in each
        for each in choice.detection.warnings
    )
    assert choice.output.unknown_calls


def test_delimiters_that_are_not_read_are_named_in_a_warning() -> None:
    pattern = r"<do>(?P<name>\w+)(?:<of>text)?<with>"
    several = response_template({"open_pattern": pattern, "close": "</do>", "transform": NAMED})
    choice = choose_for(HIDING, response_template=several, model_type="new_model")
    assert choice.detection.calls is ReadBack.EQUAL
    (warning,) = choice.detection.warnings
    assert warning.startswith("The response_template allows forms of calls that are not read: <do>get_markplan<of>text<with>")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("text", "it is no object"),
        ({}, "fields"),
        ({"version": 2, "fields": {}}, "version"),
        ({"start_anchor": "<a>", "fields": {"content": {"close_pattern": "("}}}, "regex"),
        ({"start_anchor": "<a>", "fields": {"content": {"open": 3}}}, "'open' must be"),
        ({"start_anchor": "<a>", "fields": {"content": {"content": []}}}, ""),
    ],
)
def test_an_invalid_response_template_is_a_warning(source: object, reason: str) -> None:
    choice = choose_for(CHATML, response_template=source, model_type="qwen3")
    (warning,) = choice.detection.warnings
    assert warning.startswith("The response_template in tokenizer_config.json is not valid and is not read: ")
    assert reason in warning
    assert choice.output == choose_for(CHATML, model_type="qwen3").output


@pytest.mark.parametrize(
    ("calls", "field", "name"),
    [
        ({"open": "<act>", "close": "</act>", "transform": FUNCTION}, {"open": "<src>", "close": "</src>"}, "sources"),
        ({"open": "<act>", "close": "</act>", "content": "int"}, None, "tool_calls"),
        ({"open_pattern": "<(?P<name>a)(?P<other>b)>", "close": "</act>", "transform": NAMED}, None, "tool_calls"),
    ],
)
def test_fields_that_are_not_read_are_named_in_a_warning(calls: dict[str, Any], field: Any, name: str) -> None:
    choice = choose_for(HIDING, response_template=response_template(calls, sources=field), model_type="new_model")
    assert choice.detection.warnings[-1] == f"The response_template has fields that are not read: {name}."


@pytest.mark.parametrize("name", ["hf", "beam", "response_template"])
def test_the_response_template_decides_where_it_is_named(name: str) -> None:
    choice = choose_for(CHATML, response_template=ACT, model_type="qwen3", tool_parser=name)
    assert (choice.detection.reasoning_parser, choice.detection.tool_parser) == ("qwen3", "response_template")
    assert f"tool_parser={name}" in choice.detection.evidence
    assert any("that of the response_template is read" in warning for warning in choice.detection.warnings)
    expected = [("call", *each) for each in CALLS]
    assert read_by_letters(choice.output, OutputCase("act", CASES["objects"].calls, tuple(expected))) == expected


@pytest.mark.parametrize("source", [None, "text", LINES])
def test_a_response_template_that_is_named_and_missing_is_an_error(source: object) -> None:
    with pytest.raises(
        ValueError, match=r"^reasoning_parser=hf stands for the response_template in tokenizer_config\.json, and"
    ):
        choose_for(CHATML, response_template=source, model_type="qwen3", reasoning_parser="hf")


def test_a_named_parser_is_used_in_the_place_of_the_response_template() -> None:
    choice = choose_for(HIDING, response_template=ACT, model_type="new_model", tool_parser="jamba", reasoning_parser="qwen3")
    assert (choice.detection.reasoning_parser, choice.detection.tool_parser) == ("qwen3", "jamba")


def test_a_model_of_an_unknown_family_starts_with_the_response_template_of_its_files(tmp_path: Path) -> None:
    family = dataclasses.replace(FAMILIES["hermes-2-pro"], model_type="new_model", call="", tools="{{- tools | tojson }}")
    folder = write_checkpoint(family, tmp_path)
    config = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps({**config, "response_template": ACT}))
    checkpoint = Checkpoint(str(folder))
    dialect, detection = open_checkpoint(checkpoint, checkpoint.detect_family())
    assert (detection.chosen_by, detection.warnings) == ("response_template", ())
    assert isinstance(dialect, ChatDialect)
    tokens = dialect.vocabulary.encode(CASES["objects"].calls + family.eos)
    deltas = parse_chunks(dialect, turn(tools=TOOLS), tokens, [1] * len(tokens))
    assert [delta.name for delta in deltas if isinstance(delta, Call)] == ["get_weather", "plan_trip"]


def test_any_text_between_name_and_arguments_is_a_warning() -> None:
    source = response_template({"open_pattern": r"<fn=(?P<name>\w+)>[^{]*", "close": "</fn>", "transform": NAMED})
    detection = choose_for(HIDING, response_template=source, model_type="new_model").detection
    assert detection.calls is ReadBack.EQUAL
    (warning,) = detection.warnings
    assert warning.startswith("The response_template allows forms of calls that are not read: <fn=get_markplan>x{")
