"""Formats with a field for each parameter, derived from the turns that a chat template writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from responses_app.dialects.families.derived.call_texts import CallTexts, common_begin, is_marker
from responses_app.dialects.families.written_turns import WrittenTurn
from responses_app.dialects.formats.base import CallFormat
from responses_app.dialects.formats.syntaxes.field_calls import FieldCalls

_TAG = re.compile(r"[<\[◁⟪【][^\s\"'(]*[>\]▷⟫】]")


def field_calls(one: WrittenTurn, parts: CallTexts, rich: Sequence[WrittenTurn]) -> Iterator[CallFormat]:
    """Yield formats of names with fields. The turn `one` has the first call of `parts`."""
    key, text = next(iter(one.calls[0][1].items()))
    written = parts.arguments.removeprefix(key)
    quote = written[-1:] if written.endswith(('"', "'")) else ""
    key_end = written.removesuffix(f"{text}{quote}").removesuffix(quote)
    if parts.arguments.startswith(("{", '"{')) or not written.endswith(f"{text}{quote}"):
        return
    begin, end = parts.before.lstrip(), _up_to(parts.behind, parts.between)
    for boundary in _boundaries(rich, quote):
        key_begin = common_begin(parts.head[::-1], boundary[::-1])[::-1]
        between = boundary.removesuffix(key_begin)
        value_end = common_begin(between, end)
        separator, call_end = between.removeprefix(value_end), end.removeprefix(value_end)
        # Text without quotes ends with a line.
        if not call_end.strip() or not (quote or "\n" in key_begin):
            continue
        marker = _TAG.match(begin)
        fields = (key_begin, key_end, value_end, separator, call_end, bool(quote))
        name_end = parts.head.removesuffix(key_begin)
        if marker:
            syntax = FieldCalls(begin, name_end, *fields)
            yield CallFormat(syntax, (marker[0],), tuple(filter(is_marker, (call_end.strip(),))))
        elif is_marker(begin):
            yield CallFormat(FieldCalls(begin, name_end, *fields, needs_declared=True), leads=(begin.strip(),))


def _up_to(behind: str, between: str) -> str:
    """Return the end of each call, the whole text `behind` for a single call."""
    return common_begin(behind, between) if between else behind


def _boundaries(rich: Sequence[WrittenTurn], quote: str) -> Iterator[str]:
    """Yield the texts between the value of the first parameter and the second key."""
    for turn in rich:
        (_, text), (next_key, _), *_ = turn.calls[0][1].items()
        if match := re.search(rf"{re.escape(f'{text}{quote}')}(.{{1,80}}?){next_key}", turn.text, re.DOTALL):
            yield match[1]
