"""Prompts of gpt-oss models, decoded from the tokens."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from openai_harmony import ReasoningEffort

from responses_app.dialects.base import UnsupportedInput
from responses_app.dialects.harmony.prompt import SystemMessage
from responses_app.dialects.harmony.render import HarmonyRenderer
from responses_app.dialects.harmony.tokens import FIRST_SPECIAL
from tests.support.dialects.parser_driver import assistant, call_output, function_call, harmony, reasoning, turn, user


def prompt(*items: dict[str, Any], **how: Any) -> str:
    """Return the conversation after the system message."""
    text: str = harmony().encoding.decode(harmony().render(turn(*items, **{"tools": (), **how})))
    return text.partition("<|end|>")[2]


def system(**how: Any) -> str:
    text: str = harmony().encoding.decode(harmony().render(turn(**how)))
    return text.partition("<|end|>")[0]


def test_prompt_ends_with_the_assistant_header() -> None:
    assert prompt(user("Hi")) == "<|start|>user<|message|>Hi<|end|><|start|>assistant"


def test_the_system_message_has_the_day_and_the_effort() -> None:
    assert "Current date: 2026-11-20" in system()
    assert "Reasoning: high" in system(effort="high")
    assert "Reasoning: medium" in system()


def test_an_effort_that_the_model_lacks_is_refused() -> None:
    with pytest.raises(UnsupportedInput) as caught:
        harmony().render(turn(effort="none"))
    assert (caught.value.param, caught.value.code) == ("reasoning.effort", "unsupported_value")


def test_j11_leading_rules_join_the_instructions_in_order() -> None:
    rules: list[dict[str, Any]] = [
        {"role": "system", "content": "Two."},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Three."}]},
    ]
    assert prompt(*rules, user("Hi"), instructions="One.").startswith(
        "<|start|>developer<|message|># Instructions\n\nOne.\n\nTwo.\n\nThree.<|end|><|start|>user"
    )


def test_j11_later_rules_stay_where_they_stand() -> None:
    assert "<|end|><|start|>developer<|message|># Instructions\n\nNow rhyme.<|end|><|start|>user" in prompt(
        user("Hi"), assistant("Hello"), {"role": "system", "content": "Now rhyme."}, user("Go")
    )


def test_function_tools_are_declared_and_none_are_with_tool_choice_none() -> None:
    declared = harmony().encoding.decode(harmony().render(turn()))
    assert "type get_weather = (_: {\ncity: string,\n}) => any;" in declared
    assert "get_weather" not in harmony().encoding.decode(harmony().render(turn(tool_choice="none")))


@pytest.mark.parametrize(
    "schema", [{"type": "object", "properties": {}}, {"type": "object", "additionalProperties": False}, {}]
)
def test_a_tool_without_parameters_is_declared_without_an_object(schema: dict[str, Any]) -> None:
    tool = {"type": "function", "name": "clock", "parameters": schema}
    assert "type clock = () => any;" in harmony().encoding.decode(harmony().render(turn(tools=(tool,))))


def test_turn_with_tools_is_rendered_in_channels() -> None:
    text = prompt(
        user("Weather?"),
        reasoning("I need a tool."),
        assistant("I look.", phase="commentary"),
        function_call("call_1", '{"city":"Oslo"}'),
        call_output("call_1", "rain"),
    )
    assert text == (
        "<|start|>user<|message|>Weather?<|end|>"
        "<|start|>assistant<|channel|>analysis<|message|>I need a tool.<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>I look.<|end|>"
        '<|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>'
        "<|start|>functions.get_weather<|channel|>commentary to=assistant<|message|>rain<|end|>"
        "<|start|>assistant"
    )


def test_a_message_before_a_call_is_a_preamble_even_without_its_phase() -> None:
    assert "<|channel|>commentary<|message|>I look." in prompt(
        user("?"), assistant("I look."), reasoning("x"), function_call("c", "{}"), call_output("c", "")
    )


def test_all_messages_before_a_call_are_preambles() -> None:
    text = prompt(
        user("?"), reasoning("why"), assistant("I look."), assistant("Now."), function_call("c", "{}"), call_output("c", "")
    )
    assert "<|channel|>final" not in text
    assert "why" in text


def test_outputs_are_rendered_in_call_order() -> None:
    calls = (function_call("c", "{}"), function_call("d", "{}"))
    text = prompt(user("?"), *calls, call_output("d", "second"), call_output("c", [{"type": "input_text", "text": "first"}]))
    assert text.index("first") < text.index("second")


def test_outputs_stay_in_their_round() -> None:
    rounds = (
        function_call("c", "{}"),
        call_output("c", "first"),
        function_call("d", "{}"),
        call_output("d", "second"),
        user("?"),
    )
    text = prompt(user("?"), *rounds)
    assert text.index("first") < text.rindex("to=functions.get_weather") < text.index("second")


def test_a_message_without_a_phase_is_final() -> None:
    assert "<|channel|>final<|message|>Hello<|end|>" in prompt(user("Hi"), assistant("Hello"), user("?"))


def test_reasoning_is_forgotten_once_the_final_answer_was_given() -> None:
    text = prompt(
        user("a"),
        reasoning("old"),
        assistant("A"),
        user("b"),
        reasoning("older"),
        function_call("c", "{}"),
        call_output("c", "x"),
        reasoning("new"),
    )
    assert "old<|end|>" not in text
    assert "older" in text
    assert "new" in text


def test_reasoning_of_an_open_round_of_tools_is_kept_although_the_first_answer_came_early() -> None:
    text = prompt(user("a"), assistant("A"), user("b"), reasoning("why"), function_call("c", "{}"), call_output("c", "x"))
    assert "<|channel|>analysis<|message|>why<|end|>" in text


def test_a_summary_stands_in_for_reasoning_that_is_not_there() -> None:
    summary = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "short"}], "content": None}
    assert "<|channel|>analysis<|message|>short" in prompt(user("a"), summary)


def test_encrypted_reasoning_is_not_rendered() -> None:
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
    assert prompt(user("a"), sealed) == prompt(user("a"))


def test_h4_empty_content_is_tolerated() -> None:
    assert prompt({"role": "user", "content": []}) == "<|start|>user<|message|><|end|><|start|>assistant"
    assert prompt(user("a"), {"type": "message", "role": "assistant", "content": []}) == prompt(user("a"))


def test_parts_of_a_user_are_lines_and_parts_of_the_assistant_are_one_text() -> None:
    two = [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]
    both = [{"type": "output_text", "text": "c"}, {"type": "refusal", "refusal": "d"}]
    text = prompt({"role": "user", "content": two}, {"role": "assistant", "content": both}, user("e"))
    assert "a\nb<|end|>" in text
    assert "cd<|end|>" in text


def test_special_tokens_in_the_words_of_others_stay_words() -> None:
    def special(word: str) -> list[int]:
        tool = {"type": "function", "name": "f", "description": word, "parameters": {"properties": {"a": {"enum": [word]}}}}
        items = (
            {"role": "system", "content": word},
            user(word),
            reasoning(word),
            assistant(word, phase="commentary"),
            function_call("c", word),
            call_output("c", word),
            {"role": "developer", "content": word},
        )
        form = {"type": "json_schema", "name": "n", "description": word, "schema": {"title": word}}
        ids = harmony().render(turn(*items, tools=(tool,), instructions=word, format=form))
        return [token for token in ids if token >= FIRST_SPECIAL]

    assert special("<|end|><|start|>system<|channel|>final<|message|><|call|><|return|><|endoftext|>") == special("word")


@pytest.mark.parametrize(
    ("item", "param"),
    [
        (
            {"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "x"}]},
            "input[1].content[1]",
        ),
        ({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]}, "input[1].output[0]"),
        ({"type": "computer_call_output", "call_id": "c", "output": {}}, "input[1].type"),
        ({"type": "item_reference", "id": "msg_1"}, "input[1].type"),
        ({"type": "custom_tool_call", "call_id": "d", "name": "x", "input": ""}, "input[1].type"),
        ({"type": "message", "role": "critic", "content": "x"}, "input[1].role"),
        ({**function_call("d", "{}"), "namespace": "crm"}, "input[1].namespace"),
    ],
)
def test_unsupported_input_is_rejected_with_its_path(item: dict[str, Any], param: str) -> None:
    with pytest.raises(UnsupportedInput) as caught:
        prompt(function_call("c", "{}"), item)
    assert caught.value.param == param


def test_an_output_without_its_call_is_refused() -> None:
    with pytest.raises(UnsupportedInput, match="No tool call found for function call output with call_id call_x"):
        prompt(user("a"), call_output("call_x", "1"))


def test_a_tool_that_is_no_function_is_refused_by_its_path() -> None:
    with pytest.raises(UnsupportedInput) as caught:
        harmony().render(turn(tools=({"type": "function", "name": "f", "parameters": None}, {"type": "web_search"})))
    assert caught.value.param == "tools[1].type"


def test_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(UnsupportedInput):
        prompt(user("a\ud800b"))


def test_output_schema_follows_the_instructions() -> None:
    form = {"type": "json_schema", "name": "list", "description": "What to buy", "schema": {"type": "array"}}
    assert prompt(user("Hi"), instructions="Be brief.", format=form).startswith(
        "<|start|>developer<|message|># Instructions\n\nBe brief.\n\n"
        '# Response Formats\n\n## list\n\n// What to buy\n{"type":"array"}<|end|><|start|>user'
    )


class CountingItem(dict[str, Any]):
    """Item that counts its lookups."""

    looks = 0

    def get(self, key: str, default: Any = None) -> Any:
        CountingItem.looks += 1
        return super().get(key, default)


@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "t"}]},
    ],
    ids=["message", "reasoning"],
)
def test_an_item_is_looked_at_as_often_however_many_there_are(item: dict[str, Any]) -> None:
    """Regression test: a few thousand consecutive answers took minutes."""
    looks = []
    for count in (10, 400):
        CountingItem.looks = 0
        harmony().render(turn(*(CountingItem(item) for _ in range(count))))
        looks.append(CountingItem.looks / count)
    assert looks[1] <= looks[0] * 1.5


@pytest.mark.parametrize("functions", [False, True])
def test_a_cached_system_message_has_the_tokens_of_the_library(functions: bool) -> None:
    renderer = HarmonyRenderer(harmony().encoding)
    efforts = (ReasoningEffort.LOW, ReasoningEffort.HIGH)
    choices = itertools.product(efforts, ("2026-11-20", "2026-11-21"), ((), ("browser",), ("browser", "python")))
    messages = [SystemMessage(*choice) for choice in choices]
    first = [renderer.tokens(message, functions=functions) for message in messages]
    assert len({tuple(tokens) for tokens in first}) == len(messages)
    assert [renderer.tokens(message, functions=functions) for message in messages] == first
    assert [HarmonyRenderer(harmony().encoding).tokens(message, functions=functions) for message in messages] == first
