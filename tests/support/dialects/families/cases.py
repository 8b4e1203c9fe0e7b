"""Outputs of a family for each case, with the expected items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.support.dialects.families.family_format import FamilyFormat

Item = tuple[str, ...] | tuple[str, str, Mapping[str, Any]]
"""`("reasoning", text)`, `("text", text)`, or `("call", name, arguments)`."""

WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "get_weather",
    "description": "Weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PLAN: dict[str, Any] = {
    "type": "function",
    "name": "plan_trip",
    "description": "Plan a trip.",
    "parameters": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "place": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
            },
            "days": {"type": "integer"},
            "exact": {"type": "boolean"},
        },
    },
}
CLOCK: dict[str, Any] = {
    "type": "function",
    "name": "clock",
    "description": "Time of day.",
    "parameters": {"type": "object", "properties": {}},
}
TOOLS = (WEATHER, PLAN, CLOCK)
CORPUS = (
    'The user asks for the weather in Oslo. I look at the weather. {"name": "get_weather", "arguments": {"city": "Oslo"}}',
    "<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n</function>\n</tool_call>\n\n",
    'get_weather(city="Oslo"), plan_trip(title="Trip", place={"name": "Bergen"}, days=3, exact=True)]\n```json\n```',
    '"><invoke name="get_weather"><parameter name="city">Bergen</parameter></invoke></think>\n\n<tool_call>',
    "Done </think> Done</think>\n\nThink, think.",
) * 3

_THOUGHT = "The user asks for the weather.\n\nI look at it."
_TEXT = "Hello from Oslo, 3 < 4 & 5 > 2: “Ünïcode” 🦑.\n\n- a list\n- `code`"
_LOOKING = "I look at the weather."
_BETWEEN = "And in Bergen:"
_OSLO = ("get_weather", {"city": "Oslo"})
_BERGEN = ("get_weather", {"city": "Bergen"})
_TRIP = ("plan_trip", {
    "title": "Größe “3 < 4”, it's \\ 🦑", "place": {"name": "Tromsø", "tags": ["a, b", "c"]}, "days": 3, "exact": True,
})  # fmt: skip
_CLOCK: tuple[str, dict[str, Any]] = ("clock", {})


@dataclass(frozen=True, slots=True)
class OutputCase:
    """Generated text after the prompt, without the end of the turn, and the expected items."""

    name: str
    output: str
    expected: tuple[Item, ...]
    is_quiet: bool = False


@cache
def cases(family: FamilyFormat) -> tuple[OutputCase, ...]:
    """Return the cases that the format of the family has."""
    return tuple(_cases(family))


def cut_case(family: FamilyFormat) -> OutputCase:
    """Return the longest output of a family, to be cut at every token: reasoning, text, calls."""
    return max(cases(family), key=lambda case: (len(case.expected), len(case.output)))


def _cases(family: FamilyFormat) -> Iterator[OutputCase]:
    if family.reasoning is None:
        yield from _answers(family, "", "", ())
    else:
        yield from _answers(family, "reasoning_and_", family.write_reasoning(_THOUGHT), (("reasoning", _THOUGHT),))
        if family.quiet_opening is not None:
            yield from _quiet(family)
        if family.has_optional_reasoning:
            yield OutputCase("text_without_reasoning", family.write_answer(_TEXT), (("text", _TEXT),))
            yield from _call_case(family, "call_without_reasoning", (_OSLO,))


def _quiet(family: FamilyFormat) -> Iterator[OutputCase]:
    """Yield the cases of a turn without thinking."""
    yield OutputCase("text_without_thinking", family.write_answer(_TEXT), (("text", _TEXT),), is_quiet=True)
    if family.has_calls:
        yield OutputCase("call_without_thinking", family.write_calls([_OSLO]), (("call", *_OSLO),), is_quiet=True)


def _answers(family: FamilyFormat, prefix: str, lead: str, before: tuple[Item, ...]) -> Iterator[OutputCase]:
    """Yield the cases of text and calls after `lead`, the output of the items `before`."""
    yield OutputCase(f"{prefix}text", lead + family.write_answer(_TEXT), (*before, ("text", _TEXT)))
    if not family.has_calls:
        return
    yield from _call_case(family, f"{prefix}call", (_OSLO,), lead, before)
    yield from _call_case(family, f"{prefix}nested_call", (_TRIP,), lead, before)
    yield from _call_case(family, f"{prefix}call_without_arguments", (_CLOCK,), lead, before)
    if family.takes_text_with_calls:
        text = lead + family.write_answer(_LOOKING) + family.text_before_calls
        yield from _call_case(family, f"{prefix}text_and_call", (_OSLO,), text, (*before, ("text", _LOOKING)))
    if family.has_parallel_calls:
        yield from _call_case(family, f"{prefix}two_calls", (_OSLO, _BERGEN), lead, before)
        yield from _call_case(family, f"{prefix}three_kinds", (_CLOCK, _TRIP, _OSLO), lead, before)
    if family.separates_calls:
        yield _text_between_calls(family, prefix, lead, before)


def _call_case(
    family: FamilyFormat, name: str, calls: tuple[Any, ...], lead: str = "", before: tuple[Item, ...] = ()
) -> Iterator[OutputCase]:
    items = tuple(("call", *call) for call in calls)
    yield OutputCase(name, lead + family.write_calls(calls), (*before, *items))


def _text_between_calls(family: FamilyFormat, prefix: str, lead: str, before: tuple[Item, ...]) -> OutputCase:
    first, second = family.write_calls([_OSLO]), family.write_calls([_BERGEN])
    output = f"{lead}{first}\n{_BETWEEN}\n{second}"
    return OutputCase(
        f"{prefix}text_between_calls", output, (*before, ("call", *_OSLO), ("text", _BETWEEN), ("call", *_BERGEN))
    )
