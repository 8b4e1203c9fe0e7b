"""Efforts of reasoning by the variables of a chat template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from responses_app.dialects.chat.template import ChatTemplate, TemplateRejected

EFFORTS_WITHOUT_THINKING: Final = frozenset({"none", "minimal"})
# Values of the variables for each effort, the best first.
_OFF = ("none", "no_think", "disabled", "off", "chat")
_ON = ("enabled", "on", "think")
_VALUES: Mapping[str, tuple[str, ...]] = {
    "none": (*_OFF, "minimal"),
    "minimal": ("minimal", *_OFF),
    "low": ("low", *_ON),
    "medium": ("medium", *_ON),
    "high": ("high", *_ON),
    "xhigh": ("xhigh", "max", "high", *_ON),
    "max": ("max", "xhigh", "high", *_ON),
}
_ON_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_VARIABLES = ("reasoning_effort", "thinking_effort", "thinking_mode", "reasoning_mode", "thinking_option", "reasoning_strength")
# Variables that are true for some efforts.
_FLAGS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("skip_reasoning", "skip_thinking", "skip_think"), tuple(EFFORTS_WITHOUT_THINKING)),
    "force_reasoning": _ON_EFFORTS,
    "low_effort": ("low",),
    "medium_effort": ("medium",),
}
# Number of tokens of reasoning.
_BUDGET = "thinking_budget"
_ANY_DAY = date(2000, 1, 1)
# No template knows this value.
_UNKNOWN = "markeffort"


def effort_variables(template: ChatTemplate) -> dict[str, dict[str, Any]]:
    """Return the variables of the template for each effort, empty for unknown efforts."""
    return {effort: dict(_variables(template, effort)) for effort in _VALUES}


def _variables(template: ChatTemplate, effort: str) -> Iterator[tuple[str, Any]]:
    for name in _VARIABLES:
        if name in template.variables and (value := _value(template, name, effort)) is not None:
            yield name, value
    for name, efforts in _FLAGS.items():
        if effort in efforts and name in template.variables:
            yield name, True
    if effort in EFFORTS_WITHOUT_THINKING and _BUDGET in template.variables:
        yield _BUDGET, 0


def _value(template: ChatTemplate, name: str, effort: str) -> str | None:
    """Return the first value known to the template; the effort itself if the template prints any value."""
    usual, unknown = _prompt(template, effort, {}), _prompt(template, effort, {name: _UNKNOWN})
    is_off = effort in EFFORTS_WITHOUT_THINKING
    values = [*_named(template, name, effort, _VALUES[effort])]
    if is_off:
        return next((value for value, prompt in values if prompt != usual), None)
    if values:
        return values[0][0]
    if _UNKNOWN in unknown:
        return "high" if effort in ("xhigh", "max") else effort
    # Without the variable the template may switch reasoning off.
    is_usually_off = any(prompt == usual for _, prompt in _named(template, name, effort, _OFF))
    return next((value for value, _ in _named(template, name, effort, ("high", "low"))), None) if is_usually_off else None


def _named(template: ChatTemplate, name: str, effort: str, values: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the values with the prompts, but not those absent from the template or rejected."""
    for value in values:
        if re.search(rf"[\"']{value}[\"']", template.source) and (prompt := _prompt(template, effort, {name: value})):
            yield value, prompt


def distinct_efforts(template: ChatTemplate, variables: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Return the efforts with different prompts, in ascending order; `medium` for several with the same prompt."""
    prompts = {effort: _prompt(template, effort, variables[effort]) for effort in _VALUES}
    names: list[str] = []
    for effort in _ON_EFFORTS:
        same = [each for each in _ON_EFFORTS if prompts[each] == prompts[effort]]
        name = "medium" if "medium" in same else same[0]
        if prompts[effort] and name not in names:
            names.append(name)
    on_prompts = [prompts[name] for name in names]
    off = [each for each in ("none", "minimal") if prompts[each] and prompts[each] not in on_prompts]
    if len(off) > 1 and prompts["minimal"] == prompts["none"]:
        off = ["none"]
    order = list(_VALUES)
    return tuple(sorted([*off, *names] or ["medium"], key=order.index))


def _prompt(template: ChatTemplate, effort: str, variables: Mapping[str, Any]) -> str:
    """Render a question; empty if the template rejects the variables."""
    thinking = effort not in EFFORTS_WITHOUT_THINKING
    try:
        return template.render([{"role": "user", "content": "x"}], today=_ANY_DAY, thinking=thinking, variables=variables)
    except TemplateRejected:
        return ""
