"""Chat template of a model: sandboxed Jinja with the functions expected by templates of the model hub."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from functools import cache, lru_cache
from typing import Any, NoReturn

from jinja2 import Template, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.meta import find_undeclared_variables
from jinja2.parser import Parser
from jinja2.runtime import LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment


class TemplateRejected(ValueError):
    """The template cannot render these messages."""


class _Generation(Extension):
    """`{% generation %}` marks text for training; ignored when rendering prompts."""

    tags: set[str] = {"generation"}  # noqa: RUF012 (so declared by jinja)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Return the contents of the block."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja sandbox without checks for harmless lookups: keys of messages and loop variables.

    The checks take most of the time when rendering thousands of messages.
    """

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Look up an attribute, else a key, as in the sandbox. Attributes of dict are checked."""
        if type(obj) is dict:
            if attribute in obj and attribute not in _DICT_ATTRIBUTES:
                return obj[attribute]
        elif type(obj) is LoopContext and attribute in _LOOP_ATTRIBUTES:
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Check an attribute as the sandbox does. Templates may change lists of their own."""
        return (type(obj) is list and attr in _LIST_ATTRIBUTES) or super().is_safe_attribute(obj, attr, value)


_LIST_ATTRIBUTES = frozenset({"append", "extend", "insert", "pop"})
_DICT_ATTRIBUTES = frozenset(dir(dict))
_LOOP_ATTRIBUTES = frozenset(
    {"first", "last", "index", "index0", "revindex", "revindex0", "length", "previtem", "nextitem", "depth0"}
)
# Probe texts that show how a template renders a message, and a date for it.
_BEFORE, _AFTER = "\ue0f4", "\ue0f5"
_ANY_DAY = date(2000, 1, 1)
# Tags of a placeholder of which parts are tried.
_MAX_TAGS = 8


class _Input(list[Any]):
    """List of messages or tools, which templates may not change."""


class ChatTemplate:
    """Renders messages to text. `tokens` are variables of the template: the special tokens by name, such as `bos_token`.

    `image` is the placeholder that the template writes for an image, None if it does not support images.
    """

    def __init__(self, source: str, tokens: Mapping[str, Any] | None = None, *, with_tools: str | None = None) -> None:
        self.source = source + (with_tools or "")
        self._plain, variables = _compiled(source)
        self._with_tools, more_variables = _compiled(with_tools or source)
        # Variables that the template reads and does not set itself.
        self.variables = variables | more_variables
        self._tokens = dict(tokens or {})
        self._needs_lists = False
        # Other variables for tools: a list of texts (SmolLM3), and a text in the place of `tools` (FireFunction).
        self._reads_xml_tools = "xml_tools" in self.source
        self._reads_functions = "functions" in self.variables and "tools" not in self.variables
        # A few templates loop over the tools even if there are none.
        self._no_tools: list[Any] | None = None
        self._no_tools = None if self._try_content(_BEFORE) else []
        # Some templates accept text only as a list of parts, and silently drop other text.
        self._needs_lists = _BEFORE not in self._try_content(_BEFORE) and _BEFORE in self._try_content([_text(_BEFORE)])
        self.image = self._placeholder()

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        today: date,
        tools: Sequence[Mapping[str, Any]] | None = None,
        thinking: bool = True,
        variables: Mapping[str, Any] | None = None,
    ) -> str:
        """Render the prompt, up to the beginning of the assistant's output. `variables` are further ones. Raises TemplateRejected."""
        template = self._with_tools if tools or any("tool_calls" in message for message in messages) else self._plain
        if self._needs_lists:
            messages = [
                {**message, "content": [_text(message["content"])]} if _is_text(message) else message for message in messages
            ]
        try:
            return template.render(
                **self._tokens,
                **(variables or {}),
                messages=_Input(messages),
                **self._other_tools(tools or (), today),
                tools=_Input(tools) if tools else self._no_tools,
                documents=None,
                add_generation_prompt=True,
                enable_thinking=thinking,
                thinking=thinking,
                # Hunyuan Hy3 else drops the reasoning between calls.
                interleaved_thinking=True,
                strftime_now=_clock(today),
                date_string=today.strftime("%d %b %Y"),
            )
        except (TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise TemplateRejected(str(error)) from error

    def _other_tools(self, tools: Sequence[Mapping[str, Any]], today: date) -> Mapping[str, Any]:
        """Return the variables for tools other than `tools`. A template with `functions` needs a text for the time too."""
        functions = [tool.get("function", tool) for tool in tools]
        if self._reads_functions:
            return {"functions": _tojson(functions, indent=4), "datetime": today.isoformat()}
        return {"xml_tools": [_tojson(each) for each in functions] if tools and self._reads_xml_tools else None}

    def _try_content(self, content: object) -> str:
        """Render a user message with `content`; empty if the template rejects the message."""
        try:
            return self.render([{"role": "user", "content": content}], today=_ANY_DAY)
        except TemplateRejected:
            return ""

    def _placeholder(self) -> str | None:
        plain, with_image = (
            _between(self._try_content([_text(_BEFORE), *image, _text(_AFTER)])) for image in ([], [{"type": "image"}])
        )
        if plain is None or with_image is None or "'type'" in with_image or '"type"' in with_image:
            return None
        # The template may separate all parts by the same text, which is not part of the placeholder.
        placeholder = with_image.removeprefix(plain).removesuffix(plain).strip()
        return next(filter(self._marks_images, _parts_of(placeholder)), placeholder) or None

    def _marks_images(self, placeholder: str) -> bool:
        """Return True if `placeholder` stands for each image of a message, wherever the texts stand."""
        image, text = dict[str, object](type="image"), _text(_BEFORE)
        messages = ([text], [image], [image, image], [image, text], [text, image])
        return all(self._try_content(parts).count(placeholder) == parts.count(image) for parts in messages)


# Compilation takes most of the time of opening a model, and every worker and test opens the same few.
@lru_cache(maxsize=64)
def _compiled(source: str) -> tuple[Template, frozenset[str]]:
    """Compile a template; return the variables that the template reads too."""
    tree = _environment().parse(source)
    return _environment().from_string(tree), frozenset(find_undeclared_variables(tree))


@cache
def _environment() -> _Environment:
    environment = _Environment(trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols])
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise_template_error
    return environment


def _text(text: object) -> dict[str, object]:
    return {"type": "text", "text": text}


def _is_text(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("content"), str)


def _between(text: str) -> str | None:
    parts = text.partition(_BEFORE)[2].partition(_AFTER)
    return parts[0] if parts[1] else None


def _parts_of(placeholder: str) -> Iterator[str]:
    """Yield a placeholder and, with few tags, the parts, long parts first: markers of the texts around may be parts too."""
    yield placeholder
    tags = re.findall(r"<[^<>]*>|[^<>]+", placeholder)
    if len(tags) <= _MAX_TAGS:
        yield from ("".join(tags[at : at + size]) for size in range(len(tags) - 1, 0, -1) for at in range(len(tags) - size + 1))


def _tojson(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_template_error(message: str) -> NoReturn:
    raise TemplateError(message)


def _clock(today: date) -> Callable[[str], str]:
    return today.strftime
