"""The header of a harmony message: which ones are well formed, and what can be saved from the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"[\w.\-:]+"
_TYPE = r"(?:\s*<\|constrain\|>\s*\w+|\s+(?:json|code|text))"
_WELL_FORMED = re.compile(
    rf"\s*(?P<first>to={_NAME}\s*)?<\|channel\|>\s*(?:analysis|commentary|final)\s*(?(first)|(?:\s*to={_NAME})?){_TYPE}?\s*"
)
_PARTS = re.compile(
    rf"\s*(?:to=(?P<before>{_NAME}))?\s*"
    rf"(?:<\|channel\|>\s*(?P<channel>analysis|commentary|final|\w*))?\s*"
    rf"(?:to=(?P<after>{_NAME}))?(?:{_TYPE}(?!\w))?(?P<stray>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Header:
    """Where a message goes. `stray` is text that stands in the header but is no part of one."""

    channel: str | None
    recipient: str | None
    stray: str = ""


def well_formed(header: str) -> bool:
    """Whether the text between the role and `<|message|>` is a header that the harmony library reads rightly."""
    return _WELL_FORMED.fullmatch(header) is not None


def salvage(header: str) -> Header:
    """The most that a malformed or unfinished header can mean (F4); never raises, loses no word."""
    match = _PARTS.fullmatch(header)
    if match is None:
        return Header(None, None, header)
    recipient = match["before"] or match["after"]
    return Header(match["channel"] or None, recipient, match["stray"].lstrip())
