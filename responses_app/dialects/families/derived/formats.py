"""Output formats derived from the turns that a chat template writes, for models whose format is not declared.

A derived format is a guess: it counts only if it reads back what the template writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from responses_app.dialects.families.derived.call_texts import (
    MIN_MARKER,
    CallTexts,
    common_begin,
    common_end,
    is_marker,
    section_of,
)
from responses_app.dialects.families.derived.elements import attribute_calls, element_calls
from responses_app.dialects.families.derived.fields import field_calls
from responses_app.dialects.families.derived.near_json import as_json, loose_format, with_loose_objects
from responses_app.dialects.families.written_turns import ANSWER, CALL_ID, PARTIAL_TAG, THOUGHT, Call, WrittenTurn
from responses_app.dialects.formats.base import NAME, CallFormat, ReasoningFormat
from responses_app.dialects.formats.syntaxes.gemma_calls import GemmaCalls
from responses_app.dialects.formats.syntaxes.json_calls import JsonCalls, KeyedCalls
from responses_app.dialects.formats.syntaxes.named_calls import NamedCalls
from responses_app.dialects.formats.syntaxes.python_calls import PythonCalls

# Name of a derived format, in the place of a parser.
DERIVED = "template"
_KEYS = {"name": "name|tool|tool_name", "arguments": "args|arguments|input|parameters|params"}
# Begins a block of code, which may also be text.
_FENCE = "```"
# Text before the name of a call in Python.
_PYTHON_PREFIX = re.compile(r"(?:print\()?(?:[A-Za-z_]\w*\.)*\Z")
_QUOTES = ("'", '"')
# Other keys of an object with the name and the arguments.
_OTHER_KEYS = r'(?:"(?:id|type|index|tool_call_id)"\s*:\s*"?\w*"?\s*,\s*)*'
_MORE_KEYS = r'(?:,\s*"(?:id|type|index)"\s*:\s*"?\w*"?\s*)*'
# Arguments before the name of a call.
_NAME_LAST = re.compile(
    rf'("(?:{_KEYS["arguments"]})"\s*:\s*(?:\{{[^{{}}]*\}}|"\{{(?:[^"\\]|\\.)*\}}"))(\s*,\s*)("(?:{_KEYS["name"]})"\s*:\s*"\w+")'
)
# Closing marker that is not also a text: a tag, or a special token.
_END_TAG = re.compile(r"[<\[⟪◁【](?!!)\S.*[>\]⟫▷】]", re.DOTALL)
_LAST_TAG = re.compile(r"[<\[⟪◁][^<>\[\]⟪⟫◁▷]*[>\]⟫▷]\Z")


def derived_calls(
    one: Sequence[WrittenTurn], two: Sequence[WrittenTurn], rich: Sequence[WrittenTurn], plain: str, *, merges: bool
) -> Iterator[CallFormat]:
    """Yield formats in which the calls of the turns may be written: a call, two calls, and a call with several arguments.

    `plain` is a turn without calls: the text around its answer is no part of the calls. It is empty if calls stand alone. With `merges`
    formats with the markers of all turns follow: the turns have several delimiters.
    """
    forms = list(_calls(one, two, rich, plain))
    yield from forms
    if merges:
        yield from _merged_calls(forms)


def _calls(
    one: Sequence[WrittenTurn], two: Sequence[WrittenTurn], rich: Sequence[WrittenTurn], plain: str
) -> Iterator[CallFormat]:
    has_name_last = any(_NAME_LAST.search(turn.text) for turn in one)
    one, two = ([_with_name_first(turn) for turn in turns] for turns in (one, two))
    near = [turn for turn in one if as_json(turn) != turn]
    pairs = [(turn, each) for turn in one for each in _parallels(turn, two)]
    divided = [(turn, parallel, parts) for turn, parallel in pairs if (parts := _parts(turn, parallel, plain)) is not None]
    for turn, parallel, parts in divided:
        yield from _json_calls(parts, has_two=parallel is not None, has_name_last=has_name_last)
        yield from _object_calls(parts)
        yield from _gemma_calls(turn, parts, rich)
    for turn in near:
        derived = _calls([as_json(turn)], [as_json(each) for each in two], rich, plain)
        yield from filter(None, (loose_format(turn, each) for each in derived))
    for turn, _, parts in divided:
        if not _quotes_strings(turn, parts, one):
            named = _named_calls(turn.calls[0][0], parts)
            # Models write objects of JavaScript in the call of a function.
            yield from with_loose_objects(turn, named) if near or parts.head.endswith("(") else named
        yield from _python_calls(parts)
        yield from element_calls(turn, parts, rich)
        yield from attribute_calls(turn, parts, rich)
    for turn, _, parts in divided:
        yield from field_calls(turn, parts, rich)


def _parallels(turn: WrittenTurn, two: Sequence[WrittenTurn]) -> Sequence[WrittenTurn | None]:
    """Return the turns with two calls in the form of `turn`, or a single None."""
    return [each for each in two if len(each.calls) > 1 and _same_form(turn, each)] or [None]


def derived_reasoning(turns: Sequence[WrittenTurn], plain: str, prompt: str, *, merges: bool) -> Iterator[ReasoningFormat]:
    """Yield formats of the reasoning in turns with an answer. The end of `prompt` may open the reasoning."""
    forms = list(_reasoning(turns, plain, prompt))
    yield from forms
    if merges and forms:
        begins = dict.fromkeys(mark for form in forms for mark in form.begins)
        ends = dict.fromkeys(mark for form in forms for mark in form.ends)
        yield ReasoningFormat(tuple(begins), tuple(ends), keeps_ends=any(form.keeps_ends for form in forms))


def _reasoning(turns: Sequence[WrittenTurn], plain: str, prompt: str) -> Iterator[ReasoningFormat]:
    before_answer = plain.partition(ANSWER)[0]
    for turn in turns:
        if THOUGHT not in turn.text or ANSWER not in turn.text:
            continue
        begin, _, behind_thought = turn.text.partition(THOUGHT)
        end = behind_thought.partition(ANSWER)[0]
        # The marker of the answer may be the end of the reasoning.
        end = end.removesuffix(before_answer).strip() or end.strip()
        opened = filter(None, (_LAST_TAG.search(text.rstrip()) for text in (turn.opening, prompt)))
        for each in [begin.strip()] if begin.strip() else [match[0] for match in opened]:
            if min(len(each), len(end)) >= MIN_MARKER and each != end:
                yield ReasoningFormat((each,), (end,), keeps_ends=not _END_TAG.fullmatch(end))


def _merged_calls(forms: Sequence[CallFormat]) -> Iterator[CallFormat]:
    """Yield the formats, each with the markers of all that have the same syntax."""
    for form in forms:
        same = [other for other in forms if type(other.syntax) is type(form.syntax)]
        begins = dict.fromkeys(mark for each in (form, *same) for mark in each.begins)
        ends = dict.fromkeys(mark for each in (form, *same) for mark in each.ends)
        yield replace(form, begins=tuple(begins), ends=tuple(ends))


def _quotes_strings(turn: WrittenTurn, parts: CallTexts, variants: Sequence[WrittenTurn]) -> bool:
    """Return True if the quote before the arguments belongs to arguments that are given as text, and not to the form of the calls."""
    head = f"{turn.calls[0][0]}{parts.head}"
    return head.endswith(_QUOTES) and any(head not in each.text for each in variants)


def _with_name_first(turn: WrittenTurn) -> WrittenTurn:
    """Return a turn whose objects have the name before the arguments."""
    return replace(turn, text=_NAME_LAST.sub(r"\3\2\1", turn.text))


def _same_form(one: WrittenTurn, two: WrittenTurn) -> bool:
    """Return True if both turns begin alike."""
    return two.text.startswith(one.text[: one.text.index(one.calls[0][0])])


def _parts(one: WrittenTurn, two: WrittenTurn | None, plain: str) -> CallTexts | None:
    turn = two or one
    text = re.sub(rf"{CALL_ID}\d", CALL_ID, turn.text)
    text = text.removeprefix(PARTIAL_TAG.sub("", common_begin(plain.partition(ANSWER)[0], text)))
    text = text.removesuffix(common_end(plain.rpartition(ANSWER)[2], text))
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
    before, between = _without_number(text[:at], between)
    return CallTexts(before, text[at + len(name) : start], text[start:end], between, behind)


def _without_number(before: str, between: str) -> tuple[str, str]:
    """Replace the number of a call before the names, 0 or 1 in the first call, as an id."""
    for match in re.finditer(r"(?<!\d)[01](?!\d)", before):
        behind, number = before[match.end() :], int(match[0]) + 1
        numbered = f"{number}{behind}"
        if between.endswith(numbered) and not between.removesuffix(numbered)[-1:].isdigit():
            return f"{before[: match.start()]}{CALL_ID}{behind}", f"{between.removesuffix(numbered)}{CALL_ID}{behind}"
    return before, between


def _arguments_span(text: str, call: Call) -> tuple[int, int] | None:
    """Return the begin and the end of the arguments of a call: an object of JSON, or a key and a value."""
    key, value = next(iter(call[1].items()))
    if match := re.search(rf'\{{\s*"{re.escape(key)}"\s*:\s*"{re.escape(value)}"\s*\}}', text):
        return match.start(), match.end()
    # An object of JSON in a string.
    if match := re.search(rf'"\{{\\"{re.escape(key)}\\":\s*\\"{re.escape(value)}\\"\}}"', text):
        return match.start(), match.end()
    at = text.find(value)
    start, end = text.rfind(key, 0, max(at, 0)), at + len(value)
    return None if start < 0 else (start, end + (text[end : end + 1] in _QUOTES))


def _json_calls(parts: CallTexts, *, has_two: bool, has_name_last: bool) -> Iterator[CallFormat]:
    """Yield objects with the name and the arguments."""
    begin = re.search(rf'(\[?\s*)\{{\s*({_OTHER_KEYS})"({_KEYS["name"]})"\s*:\s*"\Z', parts.before)
    keys = re.fullmatch(rf'"\s*,\s*"({_KEYS["arguments"]})"\s*:\s*', parts.head)
    close = re.match(rf"\s*{_MORE_KEYS}\}}", parts.behind)
    if begin is None or keys is None or close is None or not parts.arguments.startswith(("{", '"{')):
        return
    marker, end = parts.before[: begin.start()].lstrip(), parts.behind[close.end() :].rstrip()
    ends = (mark,) if is_marker(mark := end.lstrip(" \n]}")) else ()
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
        prefixes=(marker.strip(),) if marker.startswith(_FENCE) else (),
        needs_declared=not is_marker(marker) or marker.startswith(_FENCE),
        is_block=is_block,
        has_name_last=has_name_last,
    )
    if marker.startswith(_FENCE):
        yield CallFormat(syntax, leads=(marker.strip(),))
    # A list may stand in another object.
    elif is_marker(marker) and (is_list or "{" not in marker):
        yield CallFormat(syntax, (marker.strip(),), ends)
    elif not marker.strip():
        yield CallFormat(syntax, (), ends, ("[" if is_list else "{",))


def _object_calls(parts: CallTexts) -> Iterator[CallFormat]:
    """Yield lists of objects with the name as key."""
    marker, end = parts.before.lstrip(), parts.behind.lstrip()
    if marker.endswith('[{"') and re.fullmatch(r'"\s*:\s*', parts.head) and end.startswith("}]"):
        marker, end = marker.removesuffix('[{"'), end.removeprefix("}]")
        if is_marker(marker) and is_marker(end):
            yield CallFormat(KeyedCalls(f"{marker}[", f"]{end}", (end.strip(),)), (marker.strip(),), (end.strip(),))


def _gemma_calls(one: WrittenTurn, parts: CallTexts, rich: Sequence[WrittenTurn]) -> Iterator[CallFormat]:
    """Yield names before an object with keys and strings in marks of their own."""
    key, value = next(iter(one.calls[0][1].items()))
    begin, end = parts.before.strip(), parts.behind.lstrip()
    if not begin.endswith("call:") or parts.head != "{" or not parts.arguments.startswith(f"{key}:"):
        return
    quote = parts.arguments.removeprefix(f"{key}:").removesuffix(value)
    begin, end = begin.removesuffix("call:"), end.removeprefix(quote).removeprefix("}").strip()
    written_keys = [[turn.text.find(f"{key}:") for key in turn.calls[0][1]] for turn in rich]
    sorts_keys = any(keys != sorted(keys) for keys in written_keys)
    if all(map(is_marker, (begin, quote, end))):
        yield CallFormat(GemmaCalls(begin, end, quote, sorts_keys), (begin,), (end,))


def _named_calls(name: str, parts: CallTexts) -> Iterator[CallFormat]:
    """Yield names before an object of JSON, also with an id before or behind the name, or a number behind it."""
    id_begin, _, arguments_begin = parts.head.rpartition(CALL_ID)
    if not parts.arguments.startswith("{") or not arguments_begin or "functions" in parts.head:
        return
    begin, call_begin, call_end, separator, end = section_of(parts)
    call_end = call_end.replace(name, NAME)
    call_begin, _, name_begin = call_begin.partition(CALL_ID)
    number = re.match(r"(\W)0(?=\W)", arguments_begin)
    words = re.search(r"[\w.]+\Z", call_begin) if number else None
    prefix = words[0] if words else ""
    call_begin = call_begin.removesuffix(prefix)
    # A tag with the name of the tool.
    needs_declared = not begin.strip() and bool(call_begin.strip()) and NAME in call_end and not is_marker(call_begin)
    if is_marker(call_begin) or needs_declared:
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
            needs_declared=needs_declared,
        )
        if needs_declared:
            yield CallFormat(syntax, leads=(call_begin.strip(),))
            return
        begins, ends = (begin.strip(), call_begin.strip()), (end.strip(), "" if NAME in call_end else call_end.strip())
        yield CallFormat(syntax, tuple(filter(is_marker, begins)), tuple(filter(is_marker, ends)))


def _python_calls(parts: CallTexts) -> Iterator[CallFormat]:
    """Yield calls in Python."""
    if not parts.head.endswith("(") or not re.search(r"=[\"']", parts.arguments):
        return
    prefix = _PYTHON_PREFIX.search(parts.before)
    call_begin = prefix[0] if prefix else ""
    call_end = ")" * call_begin.count("(")
    begin, end = parts.before.removesuffix(call_begin), parts.behind.lstrip().removeprefix(f"){call_end}")
    separator = parts.between.lstrip().removeprefix(f"){call_end}").removesuffix(call_begin) or ", "
    marker, ends = begin.strip().rstrip(" \n["), tuple(filter(is_marker, (end.lstrip(" \n]").rstrip(),)))
    syntax = PythonCalls(begin, end, separator, ends, call_begin=call_begin, call_end=call_end)
    if marker.startswith(_FENCE):
        yield CallFormat(replace(syntax, needs_declared=True, prefix=marker), leads=(marker,))
    elif is_marker(marker):
        yield CallFormat(syntax, (marker,), ends)
    elif begin.strip() == "[":
        yield CallFormat(PythonCalls(needs_declared=True, call_begin=call_begin, call_end=call_end), leads=("[",))
