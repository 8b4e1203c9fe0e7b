"""Output formats derived from the turns that a chat template writes, for models whose format is not declared.

A derived format is a guess: it counts only if it reads back what the template writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from responses_app.dialects.families.written_turns import ANSWER, PARTIAL_TAG, THOUGHT, Call, WrittenTurn
from responses_app.dialects.formats.base import CallFormat, ReasoningFormat
from responses_app.dialects.formats.syntaxes.gemma_calls import GemmaCalls
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls, KeyedCalls
from responses_app.dialects.formats.syntaxes.named_calls import NamedCalls
from responses_app.dialects.formats.syntaxes.python_calls import PythonCalls
from responses_app.dialects.formats.xml_syntaxes.keyed_xml_calls import KeyedXmlCalls
from responses_app.dialects.formats.xml_syntaxes.xml_calls import XmlCalls

# Name of a derived format, in the place of a parser.
DERIVED = "template"
_KEYS = {"name": "name|tool_name", "arguments": "args|arguments|parameters"}
_QUOTES = ("'", '"')
_ID = "callmark"
# Other keys of an object with the name and the arguments.
_OTHER_KEYS = r'(?:"(?:id|type|index|tool_call_id)"\s*:\s*"?\w*"?\s*,\s*)*'
_MORE_KEYS = r'(?:,\s*"(?:id|type|index)"\s*:\s*"?\w*"?\s*)*'
_LAST_TAG = re.compile(r"[<\[⟪◁][^<>\[\]⟪⟫◁▷]*[>\]⟫▷]\Z")
# Ends of tags, before the tag that begins a key or a call.
_TAG_ENDS = " \n|｜>])}⟫▷"
# Fewest characters of a marker: other text is not certain to begin a call.
_MIN_MARKER = 3


@dataclass(frozen=True, slots=True)
class _Texts:
    """Texts around the two calls of a turn: before the first name, around the arguments, between the calls, and behind.

    `head` is the text between the first name and the arguments, `between` that from the first arguments to the second name, and
    `arguments` the text of the first arguments.
    """

    before: str
    head: str
    arguments: str
    between: str
    behind: str


def derived_calls(
    one: Sequence[WrittenTurn], two: Sequence[WrittenTurn], rich: Sequence[WrittenTurn], plain: str
) -> Iterator[CallFormat]:
    """Yield formats in which the calls of the turns may be written: a call, two calls, and a call with several arguments.

    `plain` is a turn without calls: the text around its answer is no part of the calls.
    """
    for turn in one:
        parallels: list[WrittenTurn | None] = [each for each in two if len(each.calls) > 1 and _same_form(turn, each)]
        for parallel in parallels or [None]:
            parts = _parts(turn, parallel, plain)
            if parts is not None:
                yield from _json_calls(parts, has_two=parallel is not None)
                yield from _object_calls(parts)
                yield from _gemma_calls(turn, parts, rich)
                yield from _named_calls(parts)
                yield from _python_calls(parts)
                yield from _keyed_calls(turn, parts, rich)


def derived_reasoning(turns: Sequence[WrittenTurn], plain: str) -> Iterator[ReasoningFormat]:
    """Yield formats in which the reasoning of the turns, each with an answer, may be written."""
    before_answer = plain.partition(ANSWER)[0]
    for turn in turns:
        if THOUGHT not in turn.text or ANSWER not in turn.text:
            continue
        begin, _, behind_thought = turn.text.partition(THOUGHT)
        end = behind_thought.partition(ANSWER)[0]
        opened = _LAST_TAG.search(turn.opening.rstrip())
        begin = (begin or (opened[0] if opened else "")).strip()
        end = end.removesuffix(before_answer).strip()
        if min(len(begin), len(end)) >= _MIN_MARKER:
            yield ReasoningFormat((begin,), (end,))


def _same_form(one: WrittenTurn, two: WrittenTurn) -> bool:
    """Return True if both turns begin alike."""
    return two.text.startswith(one.text[: one.text.index(one.calls[0][0])])


def _parts(one: WrittenTurn, two: WrittenTurn | None, plain: str) -> _Texts | None:
    turn = two or one
    text = re.sub(rf"{_ID}\d", _ID, turn.text)
    text = text.removeprefix(PARTIAL_TAG.sub("", _common_begin(plain.partition(ANSWER)[0], text)))
    text = text.removesuffix(_common_end(plain.rpartition(ANSWER)[2], text))
    spans = [_arguments_span(text, call) for call in turn.calls]
    if None in spans:
        return None
    (start, end), *others = [span for span in spans if span is not None]
    name = turn.calls[0][0]
    at = text.rfind(name, 0, start)
    if at < 0:
        return None
    between, behind = "", text[end:]
    if others:
        second = text.rfind(name, 0, others[0][0])
        between, behind = text[end:second], text[others[0][1] :]
    return _Texts(text[:at], text[at + len(name) : start], text[start:end], between, behind)


def _arguments_span(text: str, call: Call) -> tuple[int, int] | None:
    """Return where the arguments of a call stand: an object of JSON, or a key and its value."""
    key, value = next(iter(call[1].items()))
    if match := re.search(rf'\{{\s*"{re.escape(key)}"\s*:\s*"{re.escape(value)}"\s*\}}', text):
        return match.start(), match.end()
    # An object of JSON in a string.
    if match := re.search(rf'"\{{\\"{re.escape(key)}\\":\s*\\"{re.escape(value)}\\"\}}"', text):
        return match.start(), match.end()
    at = text.find(value)
    start, end = text.rfind(key, 0, max(at, 0)), at + len(value)
    return None if start < 0 else (start, end + (text[end : end + 1] in _QUOTES))


def _json_calls(parts: _Texts, *, has_two: bool) -> Iterator[CallFormat]:
    """Yield objects with the name and the arguments."""
    begin = re.search(rf'(\[?\s*)\{{\s*({_OTHER_KEYS})"({_KEYS["name"]})"\s*:\s*"\Z', parts.before)
    keys = re.fullmatch(rf'"\s*,\s*"({_KEYS["arguments"]})"\s*:\s*', parts.head)
    close = re.match(rf"\s*{_MORE_KEYS}\}}", parts.behind)
    if begin is None or keys is None or close is None or not parts.arguments.startswith(("{", '"{')):
        return
    marker, end = parts.before[: begin.start()].lstrip(), parts.behind[close.end() :].rstrip()
    ends = (mark,) if _is_marker(mark := end.strip(" \n]")) else ()
    separator = re.match(rf"\s*{_MORE_KEYS}\}}(.*?)\{{", parts.between, re.DOTALL)
    is_list = "[" in begin[1]
    is_block = is_list or (has_two and marker.strip() not in parts.between)
    number = re.match(r'"(\w+)"\s*:\s*"0"', begin[2])
    between = separator[1] if separator and is_block else ""
    syntax = JsonCalls(
        marker + begin[1].rstrip(" "),
        end,
        between.rstrip(" ") if number else between,
        ends,
        begin[3],
        keys[1],
        number_key=number[1] if number else "",
        needs_declared=not _is_marker(marker),
        is_block=is_block,
    )
    if _is_marker(marker) and "{" not in marker:
        yield CallFormat(syntax, (marker.strip(),), ends)
    elif not marker.strip():
        yield CallFormat(syntax, (), ends, ("[" if is_list else "{",))


def _object_calls(parts: _Texts) -> Iterator[CallFormat]:
    """Yield lists of objects with the name as key."""
    marker, end = parts.before.lstrip(), parts.behind.lstrip()
    if marker.endswith('[{"') and re.fullmatch(r'"\s*:\s*', parts.head) and end.startswith("}]"):
        marker, end = marker.removesuffix('[{"'), end.removeprefix("}]")
        if _is_marker(marker) and _is_marker(end):
            yield CallFormat(KeyedCalls(f"{marker}[", f"]{end}", (end.strip(),)), (marker.strip(),), (end.strip(),))


def _gemma_calls(one: WrittenTurn, parts: _Texts, rich: Sequence[WrittenTurn]) -> Iterator[CallFormat]:
    """Yield names before an object with keys and strings in marks of their own."""
    key, value = next(iter(one.calls[0][1].items()))
    begin, end = parts.before.strip(), parts.behind.lstrip()
    if not begin.endswith("call:") or parts.head != "{" or not parts.arguments.startswith(f"{key}:"):
        return
    quote = parts.arguments.removeprefix(f"{key}:").removesuffix(value)
    begin, end = begin.removesuffix("call:"), end.removeprefix(quote).removeprefix("}").strip()
    written_keys = [[turn.text.find(f"{key}:") for key in turn.calls[0][1]] for turn in rich]
    sorts_keys = any(keys != sorted(keys) for keys in written_keys)
    if all(map(_is_marker, (begin, quote, end))):
        yield CallFormat(GemmaCalls(begin, end, quote, sorts_keys), (begin,), (end,))


def _named_calls(parts: _Texts) -> Iterator[CallFormat]:
    """Yield names before an object of JSON, also with an id before or behind the name, or a number behind it."""
    id_begin, _, arguments_begin = parts.head.rpartition(_ID)
    if not parts.arguments.startswith("{") or not arguments_begin or "functions" in parts.head:
        return
    begin, call_begin, call_end, separator, end = _section(parts)
    call_begin, _, name_begin = call_begin.partition(_ID)
    number = re.match(r"(\W)0(?=\W)", arguments_begin)
    words = re.search(r"[\w.]+\Z", call_begin) if number else None
    prefix = words[0] if words else ""
    call_begin = call_begin.removesuffix(prefix)
    if _is_marker(call_begin):
        syntax = NamedCalls(
            begin,
            end if begin else "",
            call_begin,
            arguments_begin[number.end() :] if number else arguments_begin,
            call_end,
            prefix,
            number[1] if number else "",
            name_begin=name_begin,
            id_begin=id_begin,
            separator=separator,
        )
        begins, ends = (begin.strip(), call_begin.strip()), (end.strip(), call_end.strip())
        yield CallFormat(syntax, tuple(filter(_is_marker, begins)), tuple(filter(_is_marker, ends)))


def _python_calls(parts: _Texts) -> Iterator[CallFormat]:
    """Yield calls in Python."""
    if not parts.head.endswith("(") or not re.search(r"=[\"']", parts.arguments):
        return
    begin, end = parts.before, parts.behind.lstrip().removeprefix(")")
    separator = parts.between.lstrip().removeprefix(")") or ", "
    marker, ends = begin.strip(" \n["), tuple(filter(_is_marker, (end.strip(" \n]"),)))
    if _is_marker(marker):
        yield CallFormat(PythonCalls(begin, end, separator, ends), (marker,), ends)
    elif begin.strip() == "[":
        yield CallFormat(PythonCalls(needs_declared=True), leads=("[",))


def _keyed_calls(one: WrittenTurn, parts: _Texts, rich: Sequence[WrittenTurn]) -> Iterator[CallFormat]:
    """Yield names with elements for the keys and values."""
    key, value = next(iter(one.calls[0][1].items()))
    between_key_and_value = parts.arguments.removeprefix(key).removesuffix(value)
    if parts.arguments.startswith(("{", '"{')) or between_key_and_value.endswith(_QUOTES):
        return
    for turn in rich:
        keys, first = list(turn.calls[0][1]), str(next(iter(turn.calls[0][1].values())))
        boundary = re.search(rf"{re.escape(first)}(.{{1,80}}?){keys[1]}", turn.text, re.DOTALL)
        if boundary is None or key in parts.behind:
            continue
        key_begin = _common_end(parts.head, boundary[1])
        value_end = boundary[1].removesuffix(key_begin)
        if not _is_marker(key_begin) or not _is_marker(value_end):
            continue
        name_end = parts.head.removesuffix(key_begin)
        behind_value = (parts.between.removeprefix(value_end), parts.behind.removeprefix(value_end))
        begin, call_begin, call_end, _, end = _section(_Texts(parts.before, parts.head, "", *behind_value))
        yield from _keyed_format(
            (begin, call_begin, call_end, end), name_end.strip(), (key_begin.strip(), between_key_and_value), value_end
        )


def _keyed_format(
    section: tuple[str, str, str, str], name_end: str, key: tuple[str, str], value_end: str
) -> Iterator[CallFormat]:
    begin, call_begin, call_end, end = (each.strip() for each in section)
    if not _is_marker(call_begin) or not _is_marker(call_end):
        return
    begins, ends = tuple(filter(None, (begin, call_begin))), tuple(filter(None, (end, call_end)))
    if typed := re.fullmatch(r'"\s+(\w+)="(?:true|string)"(\S+)', key[1]):
        call_open, parameter_open = call_begin.removesuffix('"'), key[0].removesuffix('"')
        syntax = XmlCalls(
            begin,
            end,
            call_open,
            call_end,
            parameter_open,
            value_end,
            attributes=True,
            type_attribute=typed[1],
            tag_end=typed[2],
            is_block=bool(begin),
        )
        yield CallFormat(syntax, tuple(filter(None, (begin, call_open))), ends)
        return
    tags = {"tool_call": (call_begin, call_end), "arg_key": key, "arg_value": ("", value_end), "tool_sep": (name_end, "")}
    if begin and end:
        tags["tool_calls"] = (begin, end)
    elements = KeyedXmlCalls(has_section="tool_calls" in tags, has_separator=bool(name_end), other_tags=tags)
    yield CallFormat(elements, begins, ends)


def _section(parts: _Texts) -> tuple[str, str, str, str, str]:
    """Split the texts around names: begin of a section, begin and end of a call, separator, and end of the section."""
    if not parts.between:
        return "", parts.before, parts.behind, "", ""
    call_begin = _common_end(parts.before, parts.between)
    begin, between = parts.before.removesuffix(call_begin), parts.between.removesuffix(call_begin)
    call_end = between.rstrip()
    separator = between.removeprefix(call_end)
    end = parts.behind.removeprefix(call_end)
    if not begin.strip():
        return "", call_begin, call_end or parts.behind, separator, ""
    return begin, call_begin, call_end, separator, end


def _common_begin(one: str, other: str) -> str:
    size = next((at for at, (first, second) in enumerate(zip(one, other, strict=False)) if first != second), None)
    return one[: min(len(one), len(other)) if size is None else size]


def _common_end(one: str, other: str) -> str:
    """Return the text with which both end, without the end of a tag before."""
    return _common_begin(one[::-1], other[::-1])[::-1].lstrip(_TAG_ENDS)


def _is_marker(text: str) -> bool:
    """Return True for a text with other characters than words have, which is certain to begin or end a call."""
    return len(text.strip()) >= _MIN_MARKER and re.search(r"[^\w\s.,]", text) is not None
