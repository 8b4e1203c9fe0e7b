"""Encoded events, and the templates from which delta events are encoded without a dict.

The bytes are those that orjson makes of the event: keys in order, no spaces, text outside of ASCII as UTF-8.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import NamedTuple, TypeAlias

from responses_app.protocol.events import Event

Encoder: TypeAlias = Callable[[Event], bytes]
"""Return the JSON of a numbered event."""


class EventFrame(NamedTuple):
    """Encoded event: the same `data`, in JSON, goes to the log and to every subscriber.

    `ms` is the time in milliseconds since the response was created; the publisher sets it.
    """

    number: int
    type: str
    data: bytes
    ms: int = 0


class DeltaTemplate:
    """Bytes that all delta events of an open part or argument stream share: everything but the number and the text."""

    __slots__ = ("_before_number", "_before_text", "_end", "type")

    def __init__(self, event: Event) -> None:
        self.type: str = event["type"]
        keys = [key for key in event if key != "type"]
        split = keys.index("delta")
        before, after = ({key: event[key] for key in part} for part in (keys[:split], keys[split + 1 :]))
        self._before_number = f'{{"type":{encode_basestring(self.type)},"sequence_number":'.encode()
        self._before_text = f',{_members(before)},"delta":'.encode()
        self._end = f",{_members(after)}}}".encode() if after else b"}"

    def encode(self, number: int, text: str) -> EventFrame:
        """Return the delta event `number` with `text`."""
        data = b"".join((self._before_number, b"%d" % number, self._before_text, encode_basestring(text).encode(), self._end))
        return EventFrame(number, self.type, data)


def _members(event: Event) -> str:
    """Return the keys and values of `event` in JSON, without the braces. The values are ids, indexes and empty lists."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"))[1:-1]
