"""A model's chat template: Jinja, in a sandbox, with what the templates of the hub expect to find."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateRefused(ValueError):
    """The template cannot render these messages."""


class _Generation(Extension):
    """`{% generation %}` marks what to train on; here it says nothing."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (so declared by jinja)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class ChatTemplate:
    """Renders messages to text. `tokens` are the special tokens by name, such as `bos_token`."""

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None, *, with_tools: str | None = None) -> None:
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        self.source = source + (with_tools or "")
        self._plain = environment.from_string(source)
        self._with_tools = environment.from_string(with_tools) if with_tools else self._plain
        self._tokens = dict(tokens or {})

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        today: date,
        tools: Sequence[Mapping[str, Any]] | None = None,
        thinking: bool = True,
    ) -> str:
        """The prompt, up to where the assistant begins. Raises TemplateRefused."""
        template = self._with_tools if tools else self._plain
        try:
            return template.render(
                **self._tokens,
                messages=messages,
                tools=tools or None,
                documents=None,
                add_generation_prompt=True,
                enable_thinking=thinking,
                thinking=thinking,
                strftime_now=_clock(today),
                date_string=today.strftime("%d %b %Y"),
            )
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise TemplateRefused(str(error)) from error


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _clock(today: date) -> Callable[[str], str]:
    return today.strftime
