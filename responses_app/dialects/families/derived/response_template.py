"""Turns in the form that the `response_template` of a checkpoint reads.

Such a template describes how an output is read, and not how it is written: each turn is a guess from the delimiters of the fields, which
counts only if transformers reads it as the calls, the reasoning and the text that it was written from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from responses_app.dialects.constraints.structural_tag import literal, one_of, optional, sequence
from responses_app.dialects.families.derived.pattern_text import Choices, pattern_text
from responses_app.dialects.families.written_turns import ANSWER, ONE, THOUGHT, TOOLS, Call, WrittenTurn
from responses_app.dialects.formats.base import OutputFormat

_REASONING_FIELDS = ("thinking", "reasoning_content", "reasoning")
_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}")
_CHOICES = [Choices(*each) for each in product(("\n", ""), (False, True), (False, True))]


def response_writer(source: object, stops: Sequence[str]) -> tuple[ResponseWriter | None, list[str]]:
    """Return a writer for a response template, or a warning about an invalid template."""
    if source is None:
        return None, []
    try:
        writer = ResponseWriter(source, stops)
    except Exception as error:  # as the chat template, it may fail in any way
        return None, [f"The response_template in tokenizer_config.json is not valid and is not read: {error}"]
    return writer, writer.warnings


class ResponseWriter:
    """Writes assistant turns that a response template reads, without one of `stops` at the end.

    An invalid template raises ValueError, or the error of a wrong type.
    """

    def __init__(self, source: object, stops: Sequence[str]) -> None:
        from transformers.utils.chat_parsing.response_templates import load_response_template

        if not isinstance(source, Mapping):
            raise ValueError("it is no object")
        # Without a field for the text it stands outside of the fields.
        has_outer_field = load_response_template(source).implicit is not None
        text: dict[str, Any] = {} if has_outer_field else {"content": {}}
        self._fields: Mapping[str, Mapping[str, Any]] = {**text, **source["fields"]}
        # The turns have some of the fields.
        optional = {name: {**field, "optional": True} for name, field in self._fields.items()}
        self._template: Any = load_response_template({**source, "fields": optional})
        self._reasoning = next((name for name in _REASONING_FIELDS if name in self._fields), "")
        anchors = source.get("start_anchor", ())
        # Beginnings of messages, which may stand between two fields, and are text only where a field takes the text outside of others.
        self._headers = () if has_outer_field else tuple(filter(str.strip, [anchors] if isinstance(anchors, str) else anchors))
        self._stops = tuple(filter(None, stops))
        # Where white space may be absent, models write elements on lines of their own, and other calls without white space.
        has_lines = self._fields.get("tool_calls", {}).get("content") == "xml-inline"
        self._choices = sorted(_CHOICES, key=lambda each: bool(each.space) is not has_lines)

    @property
    def warnings(self) -> list[str]:
        """Return a warning if the template has fields that are not read, or not written in a form that it reads."""
        fields = self._fields.keys() - {*_REASONING_FIELDS, "content", "tool_calls"}
        if "tool_calls" in self._fields and not self.write(calls=[ONE]):
            fields.add("tool_calls")
        if self._reasoning and not self.write(content=ANSWER, reasoning=THOUGHT):
            fields.add(self._reasoning)
        return [f"The response_template has fields that are not read: {', '.join(sorted(fields))}."] if fields else []

    @property
    def parts(self) -> frozenset[str]:
        """Return the settings of the parsers for which the template has a field."""
        named = {"tool_parser": "tool_calls" in self._fields, "reasoning_parser": self._reasoning}
        return frozenset(key for key, is_named in named.items() if is_named)

    def without_headers(self, output: OutputFormat) -> OutputFormat:
        """Return `output` with the beginnings of messages as no part of the text, and allowed before calls and answers."""
        if not self._headers:
            return output
        header = one_of([literal(each) for each in self._headers])
        return replace(
            output,
            ignored=(*output.ignored, *map(str.strip, self._headers)),
            answer_head=sequence(optional(header), output.answer_head) if output.answer_head else header,
            call_head=output.call_head or header,
        )

    def write(self, *, calls: Sequence[Call] = (), content: str = "", reasoning: str = "") -> list[WrittenTurn]:
        """Write a turn in the forms that the template reads; empty if it reads none of the forms that are tried."""
        texts = dict.fromkeys(filter(None, (self._text(each, calls, content, reasoning) for each in self._choices)))
        read = [text for text in texts if self._message(text) == (reasoning, content, tuple(calls))]
        return [WrittenTurn("", text, reasoning, content, tuple(calls)) for text in read]

    def has_call(self, text: str, _turns: Sequence[WrittenTurn]) -> bool:
        """Return True if the template reads `text` as the call `ONE`."""
        return self._message(text) == ("", "", (ONE,))

    def stop_inside(self, _turn: WrittenTurn) -> str:
        """Return an empty text: the template does not show where a turn ends."""
        return ""

    def _text(self, choices: Choices, calls: Sequence[Call], content: str, reasoning: str) -> str:
        """Return a turn, empty if the template has no field for one of the inputs."""
        try:
            thought = self._region(self._reasoning, reasoning, {}, choices) if reasoning else ""
            called = "".join(self._calls(calls, choices)) if calls else ""
            text = self._region("content", content, {}, choices) if content else ""
        except Exception:  # The template of a model may fail in any way.
            return ""
        whole = thought + text + called
        cut = (whole.rstrip().removesuffix(stop) for stop in self._stops if whole.rstrip().endswith(stop))
        return next(cut, whole)

    def _region(self, name: str, body: str, values: Mapping[str, str], choices: Choices) -> str:
        field = self._fields[name]
        begin, end = (_delimiter(field, key, values, choices) for key in ("open", "close"))
        return f"{begin}{body}{'' if not begin and name == 'content' else end}"

    def _calls(self, calls: Sequence[Call], choices: Choices) -> Iterator[str]:
        field = self._fields["tool_calls"]
        # A number is an id where the template reads one.
        messages = [_message(call, at) if "transform" in field else _message(call) for at, call in enumerate(calls)]
        if field.get("transform_each") or (field.get("transform") is None and not field.get("repeats")):
            items = [_inputs(field["transform"], each) for each in messages] if field.get("transform_each") else messages
            yield self._region("tool_calls", _body(field, items, choices), {}, choices)
            return
        for each in messages:
            values = _inputs(field.get("transform", "{content}"), each)
            body = _body(field, values.pop("content"), choices)
            texts = {"": each["function"]["name"], **{key: str(value) for key, value in values.items()}}
            yield self._region("tool_calls", body, texts, choices)

    def _message(self, text: str) -> tuple[str, str, tuple[Call, ...]] | None:
        """Read a turn as transformers does; None if the template cannot read the turn."""
        from transformers.utils.chat_parsing import parse_response

        try:
            message = parse_response(text, self._template, prefix="", tools=TOOLS)
            calls = tuple(_call(each) for each in _flat(message.get("tool_calls") or ()))
        except Exception:  # The template of a model may fail in any way.
            return None
        reasoning, content = (message.get(name) or "" for name in (self._reasoning, "content"))
        return str(reasoning).strip(), str(content).strip(), calls


def _delimiter(field: Mapping[str, Any], key: str, values: Mapping[str, str], choices: Choices) -> str:
    if f"{key}_pattern" in field:
        return pattern_text(field[f"{key}_pattern"], values, choices)
    literals = field.get(key) or ""
    return str(literals if isinstance(literals, str) else literals[-1 if choices.last else 0])


def _message(call: Call, at: int | None = None) -> dict[str, Any]:
    name, arguments = call
    number = {} if at is None else {"id": str(at), "index": at}
    return {"type": "function", **number, "function": {"name": name, "arguments": dict(arguments)}}


def _inputs(transform: object, value: Any) -> dict[str, Any]:
    """Return the inputs from which `transform` makes `value`, by the names of its placeholders."""
    inputs: dict[str, Any] = {}
    if isinstance(transform, str) and (whole := _PLACEHOLDER.fullmatch(transform)):
        *path, last = whole[1].split(".")
        place = inputs
        for key in path:
            place = place.setdefault(key, {})
        place[last] = value
    elif isinstance(transform, Mapping):
        for key, part in transform.items():
            if isinstance(value, Mapping) and key in value:
                _merge(inputs, _inputs(part, value[key]))
    return inputs


def _merge(one: dict[str, Any], other: Mapping[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(one.get(key), dict):
            _merge(one[key], value)
        else:
            one[key] = value


def _body(field: Mapping[str, Any], value: Any, choices: Choices) -> str:
    """Write the content of a field in the form that the parser reads."""
    arguments, kind = field.get("content_args", {}), field.get("content", "text")
    if kind == "json":
        return _json(value, arguments)
    if kind == "xml-inline":
        as_json = (arguments.get("value_parser") or {}).get("name") == "json"
        strict = as_json and not arguments["value_parser"].get("args", {}).get("allow_non_json")
        elements = ((key, json.dumps(each) if strict else _scalar(each)) for key, each in value.items())
        written = (pattern_text(arguments["tag_pattern"], {"key": key, "value": text}, choices) for key, text in elements)
        return choices.space.join(written)
    if kind == "kv-lines":
        pairs = (f"{key}{arguments.get('kv_sep', ':')}{_scalar(each)}" for key, each in value.items())
        return str(arguments.get("line_sep", "\n")).join(pairs)
    return _scalar(value)


def _scalar(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _json(value: Any, arguments: Mapping[str, Any]) -> str:
    """Write JSON, with the quotes and the keys without quotes that the arguments of the parser name."""
    quotes = next(iter(arguments.get("string_delims", ())), None)
    if not quotes and not arguments.get("unquoted_keys"):
        return json.dumps(value)
    if isinstance(value, Mapping):
        keys = (key if arguments.get("unquoted_keys") else json.dumps(key) for key in value)
        return f"{{{','.join(f'{key}:{_json(each, arguments)}' for key, each in zip(keys, value.values(), strict=True))}}}"
    if isinstance(value, list):
        return f"[{','.join(_json(each, arguments) for each in value)}]"
    return f"{quotes[0]}{value}{quotes[1]}" if quotes and isinstance(value, str) else json.dumps(value)


def _flat(calls: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the calls of a message, which may be one, a list, or a list for each section."""
    if isinstance(calls, Mapping):
        yield calls
    else:
        for each in calls:
            yield from _flat(each)


def _call(message: Mapping[str, Any]) -> Call:
    function = message["function"]
    arguments = function["arguments"]
    return str(function["name"]), json.loads(arguments) if isinstance(arguments, str) else arguments
