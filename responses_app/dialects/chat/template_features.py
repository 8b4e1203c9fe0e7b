"""Features of a chat template, found by rendering probe texts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from responses_app.dialects.chat.template import ChatTemplate, TemplateRejected

# Template variables that switch reasoning or set its amount.
_THINKING_VARIABLES = ("enable_thinking", "thinking", "thinking_budget", "reasoning_effort", "thinking_mode", "thinking_effort")
_ANY_DAY = date(2000, 1, 1)
_PROBE = "probe{}text"
_USER = {"role": "user", "content": "Hello!"}
_TOOL = {
    "type": "function",
    "function": {
        "name": _PROBE.format("tool"),
        "description": "A tool.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "A city."}}},
    },
}


@dataclass(frozen=True, slots=True)
class TemplateFeatures:
    """Kinds of input that a chat template renders.

    `thinking_variables` are the variables for reasoning that the template reads; `can_switch_thinking` means that the prompt
    depends on `enable_thinking` or `thinking`. `opens_thinking` means that the prompt ends inside the reasoning.
    """

    system: bool = True
    tools: bool = True
    calls: bool = True
    parallel_calls: bool = True
    call_outputs: bool = True
    text_beside_call: bool = True
    reasoning_beside_call: bool = True
    images: bool = False
    thinking_variables: tuple[str, ...] = ()
    can_switch_thinking: bool = False
    opens_thinking: bool = False

    def missing(self) -> list[str]:
        """Return the names of the inputs that the template has no place for."""
        places = {
            "system messages": self.system,
            "tools": self.tools,
            "calls of earlier turns": self.calls,
            "several calls of a turn": self.parallel_calls,
            "outputs of calls": self.call_outputs,
            "text beside a call": self.text_beside_call,
            "reasoning before a call": self.reasoning_beside_call,
            "images": self.images,
        }
        return [name for name, has_place in places.items() if not has_place]


def template_features(template: ChatTemplate) -> TemplateFeatures:
    """Probe a chat template by rendering short conversations."""
    calls = [_call("first"), _call("second")]
    call = _assistant(calls[:1])
    prompts = [_render(template, [_USER], thinking=thinking) for thinking in (True, False)]
    return TemplateFeatures(
        system=_has(template, [{"role": "system", "content": _PROBE.format("system")}, _USER], "system"),
        tools=_has(template, [_USER], "tool", tools=[_TOOL]),
        calls=_has(template, [_USER, call, _output("first")], "first"),
        parallel_calls=_has(template, [_USER, _assistant(calls), _output("first"), _output("second")], "first", "second"),
        call_outputs=_has(template, [_USER, call, _output("first")], "result"),
        text_beside_call=_has(template, [_USER, _assistant(calls[:1], content="said"), _output("first")], "said", "first"),
        reasoning_beside_call=_has(template, [_USER, _assistant(calls[:1], reasoning="idea"), _output("first")], "idea"),
        images=template.image is not None,
        thinking_variables=tuple(name for name in _THINKING_VARIABLES if re.search(rf"\b{name}\b", template.source)),
        can_switch_thinking=prompts[0] != prompts[1],
        opens_thinking=re.search(r"<[^<>/]*think[^<>]*>\s*$|\[THINK\]\s*$", prompts[0]) is not None,
    )


def _has(template: ChatTemplate, messages: Sequence[Mapping[str, Any]], *probes: str, tools: Sequence[Any] = (_TOOL,)) -> bool:
    text = _render(template, messages, tools=tools)
    return all(_PROBE.format(probe) in text for probe in probes)


def _render(
    template: ChatTemplate, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Any] = (), thinking: bool = True
) -> str:
    """Render messages; empty if the template rejects the messages."""
    try:
        return template.render(messages, today=_ANY_DAY, tools=tools, thinking=thinking)
    except TemplateRejected:
        return ""


def _assistant(calls: Sequence[Mapping[str, Any]], content: str = "", reasoning: str = "") -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": content and _PROBE.format(content),
        **({"reasoning_content": _PROBE.format(reasoning)} if reasoning else {}),
        "tool_calls": list(calls),
    }


def _call(probe: str) -> dict[str, Any]:
    function = {"name": _TOOL["function"]["name"], "arguments": {"city": _PROBE.format(probe)}}  # type: ignore[index]
    return {"id": f"call{probe[:5]:0<5}", "type": "function", "function": function}


def _output(probe: str) -> dict[str, Any]:
    name = _PROBE.format("tool")
    return {"role": "tool", "tool_call_id": f"call{probe[:5]:0<5}", "name": name, "content": _PROBE.format("result")}
