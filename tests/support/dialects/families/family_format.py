"""Format of a model family: the markers of the chat template and of its output."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, Template

Call = tuple[str, Mapping[str, Any]]
"""Name and arguments of a call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyFormat:
    """Format of a family. Pairs are the text before and after; texts with `{` of Jinja are marked as fragments.

    `tools`: fragment that describes the variable `tools`. `call`: fragment that writes the variable `call`.
    `calls`: texts before the calls, between two calls, and after the calls.
    `reasoning`: texts before and after the reasoning in the output, without the part that `opening` contains already.
    `answer`: texts around the text of an answer.
    `opening` ends the prompt, `quiet_opening` ends the prompt without reasoning; None if the family has no switch.
    `has_optional_reasoning`: an output without reasoning is possible after `opening`.
    `separates_calls`: text may be between two calls, because each call has markers of its own.
    `special` tokens are listed in tokenizer_config.json; `unlisted` ones are special in tokenizer.json alone; `plain` ones
    are added tokens that are not special. The end of an assistant turn is the end of `assistant`.
    """

    name: str
    model_type: str
    user: tuple[str, str]
    assistant: tuple[str, str]
    opening: str
    system: tuple[str, str] | None = None
    tool: tuple[str, str] | None = None
    bos: str = ""
    eos: str
    tools: str = ""
    call: str = ""
    calls: tuple[str, str, str] = ("", "", "")
    has_parallel_calls: bool = True
    separates_calls: bool = False
    takes_text_with_calls: bool = True
    reasoning: tuple[str, str] | None = None
    history: tuple[str, str] | None = None
    answer: tuple[str, str] = ("", "")
    quiet_opening: str | None = None
    has_optional_reasoning: bool = False
    text_before_calls: str = "\n"
    special: Sequence[str] = ()
    unlisted: Sequence[str] = ()
    plain: Sequence[str] = ()

    @property
    def has_calls(self) -> bool:
        """Return True if the family has a format of calls."""
        return bool(self.call)

    @property
    def template(self) -> str:
        """Return the chat template."""
        return "".join(self._template_lines())

    def write_calls(self, calls: Sequence[Call]) -> str:
        """Write an output with calls."""
        template = _compiled(self._calls_fragment("calls"))
        return template.render(calls=[{"id": f"call{at}wxyz", "function": {"name": name, "arguments": arguments}}
                                      for at, (name, arguments) in enumerate(calls)])  # fmt: skip

    def write_answer(self, text: str) -> str:
        """Write an output with text."""
        return self.answer[0] + text + self.answer[1]

    def write_reasoning(self, text: str) -> str:
        """Write an output that begins with reasoning; the family must have reasoning."""
        assert self.reasoning is not None
        return self.reasoning[0] + text + self.reasoning[1]

    def _template_lines(self) -> Sequence[str]:
        system = self.system and f"{literal(self.system[0])}{{{{- message.content }}}}{literal(self.system[1])}"
        refusal = "{{- raise_exception('System role not supported') }}"
        tool = self.tool or self.user
        return (
            literal(self.bos),
            f"{{%- if tools %}}{self.tools}{{%- endif %}}" if self.tools else "",
            "{%- for message in messages %}",
            f"{{%- if message.role == 'system' %}}{system or refusal}",
            f"{{%- elif message.role == 'user' %}}{literal(self.user[0])}{{{{- message.content }}}}{literal(self.user[1])}",
            f"{{%- elif message.role == 'tool' %}}{literal(tool[0])}{{{{- message.content }}}}{literal(tool[1])}",
            f"{{%- else %}}{literal(self.assistant[0])}{self._history_fragment()}",
            "{%- if message.content %}" + _around("message.content", self.answer) + "{%- endif %}",
            f"{{%- if message.tool_calls %}}{self._calls_fragment('message.tool_calls')}{{%- endif %}}" if self.call else "",
            f"{literal(self.assistant[1])}{{%- endif %}}{{%- endfor %}}",
            f"{{%- if add_generation_prompt %}}{self._opening_fragment()}{{%- endif %}}",
        )

    def _history_fragment(self) -> str:
        pair = self.history or self.reasoning
        if pair is None:
            return ""
        return "{%- if message.reasoning_content %}" + _around("message.reasoning_content", pair) + "{%- endif %}"

    def _opening_fragment(self) -> str:
        if self.quiet_opening is None:
            return literal(self.opening)
        quiet = literal(self.quiet_opening)
        return f"{{%- if enable_thinking is false or thinking is false %}}{quiet}{{%- else %}}{literal(self.opening)}{{%- endif %}}"

    def _calls_fragment(self, variable: str) -> str:
        before, between, after = self.calls
        separator = f"{{%- if not loop.first %}}{literal(between)}{{%- endif %}}"
        return f"{literal(before)}{{%- for call in {variable} %}}{separator}{self.call}{{%- endfor %}}{literal(after)}"


def turns(before: str, end: str, **exceptions: str | tuple[str, str]) -> dict[str, Any]:
    """Return the texts around the turns of each role: `before` and `end`, with the name of the role for ROLE.

    An exception is another name for ROLE, or the whole pair.
    """
    names = {role: exceptions.get(role, role) for role in ("system", "user", "assistant", "tool")}
    return {
        role: (before.replace("ROLE", name), end.replace("ROLE", name)) if isinstance(name, str) else name
        for role, name in names.items()
    }


def literal(text: str) -> str:
    """Write a text as a Jinja expression, so that no white space is lost."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n")
    return f"{{{{- '{escaped}' }}}}" if text else ""


def _around(variable: str, pair: tuple[str, str]) -> str:
    return f"{literal(pair[0])}{{{{- {variable} }}}}{literal(pair[1])}"


@cache
def _compiled(source: str) -> Template:
    """Compile a template, which the tests of a family render many times."""
    environment = Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)  # noqa: S701 (no HTML)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    return environment.from_string(source)
