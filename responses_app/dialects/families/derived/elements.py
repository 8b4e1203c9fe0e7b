"""Formats with an element for each parameter, derived from the turns that a chat template writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from responses_app.dialects.families.derived.call_texts import CallTexts, common_begin, common_end, is_marker, section_of
from responses_app.dialects.families.written_turns import WrittenTurn
from responses_app.dialects.formats.base import NAME, CallFormat
from responses_app.dialects.formats.xml_syntaxes.attribute_calls import AttributeCalls
from responses_app.dialects.formats.xml_syntaxes.element_calls import ElementCalls
from responses_app.dialects.formats.xml_syntaxes.xml_calls import XmlCalls

_QUOTES = ("'", '"')


def element_calls(one: WrittenTurn, parts: CallTexts, rich: Sequence[WrittenTurn]) -> Iterator[CallFormat]:
    """Yield formats of names with elements for the keys and values. The turn `one` has the first call of `parts`."""
    name, arguments = one.calls[0]
    key, value = next(iter(arguments.items()))
    key_end = parts.arguments.removeprefix(key).removesuffix(value)
    if parts.arguments.startswith(("{", '"{')) or key_end.endswith(_QUOTES):
        return
    between, behind = (text.replace(key, NAME) for text in (parts.between, parts.behind))
    for boundary in _boundaries(rich):
        key_begin = common_end(parts.head, boundary)
        value_end = common_begin(boundary.removesuffix(key_begin), behind)
        separator = boundary.removesuffix(key_begin).removeprefix(value_end)
        has_key = NAME in value_end
        if not has_key and not is_marker(key_begin):
            continue
        behind_value = [text.removeprefix(value_end).replace(name, NAME) for text in (between, behind)]
        begin, call_begin, call_end, call_separator, end = section_of(CallTexts(parts.before, parts.head, "", *behind_value))
        texts = (call_begin.lstrip(), parts.head.removesuffix(key_begin), call_end)
        if typed := re.fullmatch(r'"\s+(\w+)="(?:true|string)"(\S+)', key_end):
            yield from _typed_calls(texts, (key_begin, value_end), typed, (begin.strip(), end.strip()))
            return
        syntax = ElementCalls(
            *texts,
            key_begin,
            key_end,
            value_end,
            begin.lstrip(),
            end if begin.strip() else "",
            separator,
            call_separator,
            needs_declared=not is_marker(begin) and not is_marker(call_begin) and NAME in call_end,
        )
        yield from _with_markers(syntax)


def attribute_calls(one: WrittenTurn, parts: CallTexts, rich: Sequence[WrittenTurn]) -> Iterator[CallFormat]:
    """Yield formats of tags with an attribute for each parameter. The turn `one` has the first call of `parts`."""
    name, arguments = one.calls[0]
    key, text = next(iter(arguments.items()))
    quoted = re.fullmatch(rf"{re.escape(key)}=([\"'])({re.escape(text)})\1", parts.arguments)
    if quoted is None or not parts.head.endswith((" ", "\n")):
        return
    numbers = [f"{other}={number}" for turn in rich for other, number in turn.calls[0][1].items() if type(number) is int]
    quote = "" if any(number in turn.text for number in numbers for turn in rich) else quoted[1]
    between, behind = (each.replace(name, NAME) for each in (parts.between, parts.behind))
    begin, call_begin, call_end, call_separator, end = section_of(CallTexts(parts.before, parts.head, "", between, behind))
    syntax = AttributeCalls(
        call_begin.lstrip(),
        parts.head.rstrip(),
        call_end,
        " ",
        f"={quote}",
        quote,
        begin.lstrip(),
        end if begin.strip() else "",
        "",
        call_separator,
        needs_declared=not is_marker(begin) and not is_marker(call_begin),
    )
    yield from _with_markers(syntax)


def _boundaries(rich: Sequence[WrittenTurn]) -> Iterator[str]:
    """Yield the texts between the value of the first parameter and the second key."""
    for turn in rich:
        (key, value), (next_key, _), *_ = turn.calls[0][1].items()
        if match := re.search(rf"{re.escape(str(value))}(.{{1,80}}?){next_key}", turn.text, re.DOTALL):
            yield match[1].replace(key, NAME)


def _with_markers(syntax: ElementCalls) -> Iterator[CallFormat]:
    begins = tuple(filter(is_marker, (syntax.begin.strip(), syntax.call_begin.strip())))
    ends = tuple(filter(is_marker, (syntax.end.strip(), syntax.call_end.partition(NAME)[0].strip())))
    if begins and syntax.call_end.strip():
        yield CallFormat(syntax, begins, ends)
    elif syntax.needs_declared:
        yield CallFormat(syntax, leads=(syntax.call_begin.strip(),))


def _typed_calls(
    texts: tuple[str, str, str], element: tuple[str, str], typed: re.Match[str], section: tuple[str, str]
) -> Iterator[CallFormat]:
    """Yield elements with an attribute for the type of a value."""
    call_open, call_close = texts[0].strip().removesuffix('"'), texts[2].strip()
    parameter_open, parameter_close = element[0].strip().removesuffix('"'), element[1].strip()
    syntax = XmlCalls(
        *section,
        call_open,
        call_close,
        parameter_open,
        parameter_close,
        attributes=True,
        type_attribute=typed[1],
        tag_end=typed[2],
        line="\n" if "\n" in texts[1] else "",
        is_block=bool(section[0]),
    )
    if is_marker(call_open) and is_marker(call_close) and is_marker(parameter_close):
        yield CallFormat(syntax, tuple(filter(None, (section[0], call_open))), tuple(filter(None, (section[1], call_close))))
