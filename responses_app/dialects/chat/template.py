"""A model's chat template: Jinja, in a sandbox, with what the templates of the hub expect to find."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any, NoReturn

from jinja2 import TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateRefused(ValueError):
    """The template cannot render these messages."""


class _Generation(Extension):
    """`{% generation %}` marks what to train on; here it says nothing."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (so declared by jinja)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, without its checks where there is nothing to check: keys of our messages, and what a loop says of itself.

    The checks are most of the time that thousands of messages take.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:
        """As the sandbox does: an attribute, else a key. What a dictionary has as an attribute goes through the checks."""
        if type(obj) is dict:
            if attribute in obj and attribute not in _OF_DICTIONARIES:
                return obj[attribute]
        elif type(obj) is LoopContext and attribute in _OF_LOOPS:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)


_OF_DICTIONARIES = frozenset(dir(dict))
_OF_LOOPS = frozenset({"first", "last", "index", "index0", "revindex", "revindex0", "length", "previtem", "nextitem", "depth0"})
# Two texts by which it is found what a template makes of a message, and a day for it.
_A, _B = "\ue0f4", "\ue0f5"
_SOME_DAY = date(2000, 1, 1)


class ChatTemplate:
    """Renders messages to text. `tokens` are the special tokens by name, such as `bos_token`.

    `image` is what it writes for an image, None if it takes none.
    """

    def __init__(self, source: str, tokens: Mapping[str, str] | None = None, *, with_tools: str | None = None) -> None:
        environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _refuse
        self.source = source + (with_tools or "")
        self._plain = environment.from_string(source)
        self._with_tools = environment.from_string(with_tools) if with_tools else self._plain
        self._tokens = dict(tokens or {})
        self._lists = False
        # Some templates take text as a list of parts only, and lose any other without a word.
        self._lists = _A not in self._tried(_A) and _A in self._tried([_text(_A)])
        self.image = self._placeholder()

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
        if self._lists:
            messages = [{**said, "content": [_text(said["content"])]} if _is_text(said) else said for said in messages]
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

    def _tried(self, content: object) -> str:
        """What a user's message of such a content becomes; nothing if it is refused."""
        try:
            return self.render([{"role": "user", "content": content}], today=_SOME_DAY)
        except TemplateRefused:
            return ""

    def _placeholder(self) -> str | None:
        plain, seen = (_between(self._tried([_text(_A), *image, _text(_B)])) for image in ([], [{"type": "image"}]))
        if plain is None or seen is None or "'type'" in seen or '"type"' in seen:
            return None
        # What stands between any two parts is no part of the placeholder.
        return seen.removeprefix(plain).removesuffix(plain).strip() or None


def _text(text: object) -> dict[str, object]:
    return {"type": "text", "text": text}


def _is_text(said: Mapping[str, Any]) -> bool:
    return isinstance(said.get("content"), str)


def _between(text: str) -> str | None:
    found = text.partition(_A)[2].partition(_B)
    return found[0] if found[1] else None


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
