"""Prompts of a family: items of the API, and the messages that they stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from responses_app.dialects.base import Turn
from tests.support.dialects.families.cases import CLOCK, PLAN, WEATHER
from tests.support.dialects.families.family_format import FamilyFormat
from tests.support.dialects.parser_driver import assistant, call_output, function_call, reasoning, turn, user

_QUESTION = user("Wie ist das Wetter in Tromsø? 🦑")
_USER = {"role": "user", "content": "Wie ist das Wetter in Tromsø? 🦑"}
_CALLS = [
    ("call_a", "get_weather", '{"city": "Tromsø"}', {"city": "Tromsø"}),
    ("call_b", "plan_trip", '{"title": "<b>", "place": {"tags": ["a"]}}', {"title": "<b>", "place": {"tags": ["a"]}}),
]


@dataclass(frozen=True, slots=True)
class PromptCase:
    """Turn, and the messages and tools for `apply_chat_template`."""

    name: str
    turn: Turn
    messages: list[dict[str, Any]]

    @property
    def template_tools(self) -> list[dict[str, Any]]:
        """Return the tools as templates expect these."""
        keys = ("name", "description", "parameters")
        return [{"type": "function", "function": {key: tool[key] for key in keys}} for tool in self.turn.tools]


def prompts(family: FamilyFormat) -> Iterator[PromptCase]:
    """Yield the prompts that the template of the family has a place for."""
    yield PromptCase("question", turn(_QUESTION, tools=()), [_USER])
    if family.system is not None:
        rules = [{"role": "system", "content": "Be brief."}, _USER]
        yield PromptCase("instructions", turn(_QUESTION, tools=(), instructions="Be brief."), rules)
    else:
        rules = [{"role": "user", "content": f"Be brief.\n\n{_USER['content']}"}]
        yield PromptCase("instructions", turn(_QUESTION, tools=(), instructions="Be brief."), rules)
    answered = (_QUESTION, assistant("Kalt."), user("Danke"))
    messages = [_USER, {"role": "assistant", "content": "Kalt."}, {"role": "user", "content": "Danke"}]
    yield PromptCase("answer", turn(*answered, tools=()), messages)
    if family.quiet_opening is not None:
        yield PromptCase("without_thinking", turn(_QUESTION, tools=(), effort="none"), [_USER])
    if family.has_calls:
        yield from _with_calls(family)


def _with_calls(family: FamilyFormat) -> Iterator[PromptCase]:
    yield PromptCase("tools", turn(_QUESTION, tools=(WEATHER, PLAN, CLOCK)), [_USER])
    yield _case("call", 1)
    if family.has_parallel_calls:
        yield _case("two_calls", 2)
    if family.takes_text_with_calls:
        yield _case("text_and_call", 1, text="Ich sehe nach.")
    if family.reasoning is not None:
        yield _case("reasoning_and_call", 1, thought="Wetter?")


def _case(name: str, count: int, *, text: str = "", thought: str = "") -> PromptCase:
    """Create a prompt with calls and their outputs, after `text` and reasoning."""
    calls = _CALLS[:count]
    items = [
        *([reasoning(thought)] if thought else ()),
        *([assistant(text)] if text else ()),
        *(function_call(call_id, arguments, tool) for call_id, tool, arguments, _ in calls),
        *(call_output(call_id, "-3 °C") for call_id, *_ in calls),
    ]
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if thought:
        message["reasoning_content"] = thought
    message["tool_calls"] = [
        {"id": call_id, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for call_id, tool, _, arguments in calls
    ]
    outputs = [{"role": "tool", "tool_call_id": call_id, "name": tool, "content": "-3 °C"} for call_id, tool, *_ in calls]
    return PromptCase(name, turn(_QUESTION, *items, tools=(WEATHER, PLAN, CLOCK)), [_USER, message, *outputs])
