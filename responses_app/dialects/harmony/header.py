"""Header of a harmony message: validation, and lenient parsing of malformed headers."""

from __future__ import annotations

import re
from dataclasses import dataclass

from responses_app.protocol.output_problems import MALFORMED_HEADER, UNKNOWN_CHANNEL

_NAME = r"[\w.\-:]+"
_TYPE = r"(?:\s*<\|constrain\|>\s*\w+|\s+(?:json|code|text))"
_WELL_FORMED = re.compile(
    rf"\s*(?P<first>to={_NAME}\s*)?<\|channel\|>\s*(?:analysis|commentary|final)\s*(?(first)|(?:\s*to={_NAME})?){_TYPE}?\s*"
)
_PART = re.compile(
    rf"\s*to=(?P<recipient>{_NAME})|\s*<\|channel\|>\s*(?P<channel>analysis|commentary|final|\w*)|(?P<type>{_TYPE})(?!\w)"
)
_LATE_TYPE = re.compile(r"\s*<\|constrain\|>\s*\w*")


_CHANNELS = frozenset({"analysis", "commentary", "final"})


@dataclass(frozen=True, slots=True)
class MessageHeader:
    """Channel and recipient of a message. `stray` is misplaced text in the header."""

    channel: str | None
    recipient: str | None
    stray: str = ""


def is_well_formed(header: str) -> bool:
    """Return True if the harmony library parses `header`, the text between the role and `<|message|>`, correctly."""
    return _WELL_FORMED.fullmatch(header) is not None


def header_problem(header: str) -> tuple[str, str] | None:
    """Return type and text of the problem of a header: an unknown channel, or another form. Return None without a problem."""
    channel = parse_lenient(header).channel
    if channel and channel not in _CHANNELS:
        return UNKNOWN_CHANNEL, channel
    return None if is_well_formed(header) else (MALFORMED_HEADER, header.strip())


def parse_lenient(header: str) -> MessageHeader:
    """Parse a malformed or unfinished header, parts in any order. Never raises, and loses no word."""
    at, channel, recipient = 0, None, None
    while (match := _PART.match(header, at)) and not (match["type"] and at == 0):
        at, channel, recipient = match.end(), match["channel"] or channel, recipient or match["recipient"]
    return MessageHeader(channel, recipient, _LATE_TYPE.sub("", header[at:]).lstrip())
