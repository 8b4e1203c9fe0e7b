"""The header of a harmony message: which ones are well formed, and what can be saved from the others."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"[\w.\-:]+"
_TYPE = r"(?:\s*<\|constrain\|>\s*\w+|\s+(?:json|code|text))"
_WELL_FORMED = re.compile(
    rf"\s*(?P<first>to={_NAME}\s*)?<\|channel\|>\s*(?:analysis|commentary|final)\s*(?(first)|(?:\s*to={_NAME})?){_TYPE}?\s*"
)
_PART = re.compile(
    rf"\s*to=(?P<recipient>{_NAME})|\s*<\|channel\|>\s*(?P<channel>analysis|commentary|final|\w*)|(?P<type>{_TYPE})(?!\w)"
)
_LATE_TYPE = re.compile(r"\s*<\|constrain\|>\s*\w*")


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """Where a message goes. `stray` is text that stands in the header but is no part of one."""

    channel: str | None
    recipient: str | None
    stray: str = ""


def well_formed(header: str) -> bool:
    """Whether the text between the role and `<|message|>` is a header that the harmony library reads rightly."""
    return _WELL_FORMED.fullmatch(header) is not None


def parse_lenient(header: str) -> MessageHeader:
    """The most that a malformed or unfinished header can mean, its parts in any order (F4); never raises, loses no word."""
    at, channel, recipient = 0, None, None
    while (match := _PART.match(header, at)) and not (match["type"] and at == 0):
        at, channel, recipient = match.end(), match["channel"] or channel, recipient or match["recipient"]
    return MessageHeader(channel, recipient, _LATE_TYPE.sub("", header[at:]).lstrip())
