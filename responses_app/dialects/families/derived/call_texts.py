"""Texts around names and arguments of the calls in a turn, from which an output format is derived."""

from __future__ import annotations

import re
from dataclasses import dataclass

# Ends of tags, before the tag that begins a key or a call.
_TAG_ENDS = " \n|｜>])}⟫▷"
_END_OF_TAG = re.compile(r"\A[^<\[{(◁⟪]*[>\]⟫▷]")
# Fewest characters of a marker: other text is not certain to begin a call.
MIN_MARKER = 3


@dataclass(frozen=True, slots=True)
class CallTexts:
    """Texts around the two calls of a turn: before the first name, around the arguments, between the calls, and behind.

    `head` is the text between the first name and the arguments, `between` that from the first arguments to the second name, and
    `arguments` the text of the first arguments.
    """

    before: str
    head: str
    arguments: str
    between: str
    behind: str


def section_of(parts: CallTexts) -> tuple[str, str, str, str, str]:
    """Split the texts around names: begin of a section, begin and end of a call, separator, and end of the section."""
    if not parts.between:
        return "", parts.before, parts.behind, "", ""
    call_begin = common_end(parts.before, parts.between)
    begin, between = parts.before.removesuffix(call_begin), parts.between.removesuffix(call_begin)
    call_end = between.rstrip()
    if not parts.behind.startswith(call_end):
        # A separator without white space before.
        call_end = common_begin(between, parts.behind) or call_end
    separator = between.removeprefix(call_end)
    end = parts.behind.removeprefix(call_end)
    if not begin.strip():
        return "", call_begin, call_end or parts.behind, separator, ""
    return begin, call_begin, call_end, separator, end


def common_begin(one: str, other: str) -> str:
    """Return the text with which both begin."""
    size = next((at for at, (first, second) in enumerate(zip(one, other, strict=False)) if first != second), None)
    return one[: min(len(one), len(other)) if size is None else size]


def common_end(one: str, other: str) -> str:
    """Return the text with which both end, without the end of a tag before."""
    return _END_OF_TAG.sub("", common_begin(one[::-1], other[::-1])[::-1]).lstrip(_TAG_ENDS)


def is_marker(text: str) -> bool:
    """Return True for a text with other characters than words have, which is certain to begin or end a call."""
    return len(text.strip()) >= MIN_MARKER and re.search(r"[^\w\s.,]", text) is not None
