"""Derivation of calls with objects near JSON: the turns as JSON, and the formats that are derived from these with other quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace
from typing import Any

from responses_app.dialects.families.written_turns import ONE, WrittenTurn
from responses_app.dialects.formats.base import CallFormat
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls
from responses_app.dialects.formats.syntaxes.loose_calls import LooseJsonCalls, LooseNamedCalls, Quotes
from responses_app.dialects.formats.syntaxes.named_calls import NamedCalls

_SINGLE_QUOTED = re.compile(r"'([\w ]+)'")
_LAST_COMMA = re.compile(r",(?=\s*[}\]])")
_COMMENT = re.compile(r"\s*/\*.*?\*/")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(?=\s*:)")


def as_json(turn: WrittenTurn) -> WrittenTurn:
    """Return a turn whose objects near JSON are JSON."""
    text = _COMMENT.sub("", _LAST_COMMA.sub("", _SINGLE_QUOTED.sub(r'"\1"', turn.text)))
    return replace(turn, text=_BARE_KEY.sub(r'\1"\2"', text))


def loose_format(turn: WrittenTurn, derived: CallFormat) -> CallFormat | None:
    """Return the format of `turn`, given the format derived from `as_json`; None for formats without objects."""
    key, value = next(iter(ONE[1].items()))
    key_quote = next((quote for quote in ("'", '"') if f"{quote}{key}{quote}" in turn.text), "")
    quotes = Quotes(key_quote, "'" if f"'{value}'" in turn.text else '"')
    if isinstance(derived.syntax, JsonCalls):
        return replace(derived, syntax=LooseJsonCalls(**_fields(derived.syntax), quotes=quotes))
    if isinstance(derived.syntax, NamedCalls):
        return replace(derived, syntax=LooseNamedCalls(**_fields(derived.syntax), quotes=quotes))
    return None


def with_loose_objects(turn: WrittenTurn, derived: Iterable[CallFormat]) -> Iterator[CallFormat]:
    """Yield the formats of `turn` with objects near JSON."""
    return (loose_format(turn, each) or each for each in derived)


def _fields(syntax: JsonCalls | NamedCalls) -> dict[str, Any]:
    return {field.name: getattr(syntax, field.name) for field in fields(syntax) if field.name != "quotes"}
