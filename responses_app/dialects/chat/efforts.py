"""Efforts of reasoning by the variables of a chat template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any, Final

from responses_app.dialects.chat.call_text import Message
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
    "high": ("high", "xhigh", "max", *_ON),
    "xhigh": ("xhigh", "max", "high", *_ON),
    "max": ("max", "xhigh", "high", *_ON),
}
_ON_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_VARIABLES = (
    *("reasoning_effort", "thinking_effort", "thinking_mode", "reasoning_mode", "thinking_option", "reasoning_strength"),
    *("reasoning_type", "thinking_level", "reasoning_level"),
)
# Switches other than those that every template is given, `enable_thinking` and `thinking`.
_THINKING = "(?:thinking|think|reasoning|reason|cot)"
_SWITCH = re.compile(rf"(?:(?:enable|use|add|with|do|is|allow)_)?{_THINKING}(?:_enabled|_on)?")
_OFF_SWITCH = re.compile(rf"(?:no|skip|disable|without)_{_THINKING}|{_THINKING}_disabled")
# Variables that are true for some efforts.
_FLAGS: Mapping[str, tuple[str, ...]] = {
    "force_reasoning": _ON_EFFORTS,
    "low_effort": ("low",),
    "medium_effort": ("medium",),
}
# Texts of a message by which a template switches reasoning off.
_OFF_TEXTS = ("/no_think", "/nothink")
# Number of tokens of reasoning, without a limit for higher efforts.
_BUDGET = "thinking_budget"
_BUDGETS = {"none": 0, "minimal": 0, "low": 1024, "medium": 4096}
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
    yield from _switches(template, effort)
    if effort in _BUDGETS and _BUDGET in template.variables:
        yield _BUDGET, _BUDGETS[effort]


def _switches(template: ChatTemplate, effort: str) -> Iterator[tuple[str, bool]]:
    """Yield the switches that the effort changes."""
    is_off = effort in EFFORTS_WITHOUT_THINKING
    usual = _prompt(template, effort, {})
    for name in sorted(template.variables - {"enable_thinking", "thinking"}):
        if _OFF_SWITCH.fullmatch(name):
            is_true = is_off
        elif _SWITCH.fullmatch(name):
            is_true = not is_off
        else:
            continue
        if _prompt(template, effort, {name: is_true}) not in (usual, ""):
            yield name, is_true


def _value(template: ChatTemplate, name: str, effort: str) -> str | None:
    """Return the first value known to the template; the effort itself if the template prints any value."""
    usual, unknown = _prompt(template, effort, {}), _prompt(template, effort, {name: _UNKNOWN})
    is_off = effort in EFFORTS_WITHOUT_THINKING
    values = [*_named(template, name, effort, _VALUES[effort])]
    if is_off:
        return next((value for value, prompt in values if prompt != usual), None)
    if values:
        return values[0][0]
    if effort == "medium" and usual in (prompt for _, prompt in _named(template, name, effort, ("xhigh", "max"))):
        # Without the variable the template asks for the most.
        return next((value for value, _ in _named(template, name, effort, ("high",))), None)
    if _UNKNOWN in unknown.lower():
        return "high" if effort in ("xhigh", "max") else effort
    # Without the variable the template may switch reasoning off.
    is_usually_off = any(prompt == usual for _, prompt in _named(template, name, effort, _OFF))
    return next((value for value, _ in _named(template, name, effort, ("high", "low"))), None) if is_usually_off else None


def _named(template: ChatTemplate, name: str, effort: str, values: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the values with the prompts, without the values absent from the template or rejected."""
    for value in values:
        if re.search(rf"[\"']{value}[\"']", template.source) and (prompt := _prompt(template, effort, {name: value})):
            yield value, prompt


def off_text(template: ChatTemplate) -> str:
    """Return the text of a system message that switches reasoning off, empty if the template has a variable for that, or neither."""
    variables, message = dict(_variables(template, "none")), {"role": "user", "content": "x"}
    for text in _OFF_TEXTS if _prompt(template, "none", variables) == _prompt(template, "medium", {}) else ():
        if text not in template.source:
            continue
        prompts = [
            _render(template, with_system_text([{"role": "system", "content": "y"}, message], each)) for each in ("", text)
        ]
        if all(prompts) and prompts[1].replace(f"\n{text}", "").replace(text, "") != prompts[0]:
            return text
    return ""


def with_system_text(messages: Sequence[Message], text: str) -> list[Message]:
    """Return the messages with `text` at the end of the system message, which is added if missing."""
    first = messages[0]
    if first["role"] != "system":
        return [{"role": "system", "content": text}, *messages]
    return [{**first, "content": f"{first['content']}\n{text}".rstrip("\n")}, *messages[1:]]


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
    # Without an effort the prompt may reason as the model likes: that is not off.
    usual = "" if _is_usually_off(template, variables) else _prompt(template, "medium", {})
    off = [each for each in ("none", "minimal") if prompts[each] and prompts[each] not in (usual, *on_prompts)]
    if len(off) > 1 and prompts["minimal"] == prompts["none"]:
        off = ["none"]
    order = list(_VALUES)
    return tuple(sorted([*off, *names] or ["medium"], key=order.index))


def _is_usually_off(template: ChatTemplate, variables: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return True if the template does not reason unless a variable switches reasoning on."""
    usual = _prompt(template, "none", {})
    names = [name for name in _VARIABLES if name in template.variables]
    is_off_value = any(prompt == usual for name in names for _, prompt in _named(template, name, "none", _OFF))
    return is_off_value or any(value is True for value in variables["medium"].values())


def _prompt(template: ChatTemplate, effort: str, variables: Mapping[str, Any]) -> str:
    """Render a question; empty if the template rejects the variables."""
    thinking = effort not in EFFORTS_WITHOUT_THINKING
    return _render(template, [{"role": "user", "content": "x"}], thinking=thinking, variables=variables)


def _render(template: ChatTemplate, messages: Sequence[Message], **how: Any) -> str:
    try:
        return template.render(messages, today=_ANY_DAY, **how)
    except TemplateRejected:
        return ""
