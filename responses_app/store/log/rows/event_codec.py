"""Packed form of events in a row: lines as in a page, compressed by zstandard with the dictionary of the pages.

The first byte is the form. The consecutive events of an append share a row. A row, the entry of its index and its deletion cost more
than a delta, and the events at the end of an item have the same text.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from django.db.models import BinaryField, F, Func, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast, Coalesce, Concat
from zstandard import (
    FORMAT_ZSTD1_MAGICLESS,
    ZstdCompressionDict,
    ZstdCompressionParameters,
    ZstdCompressor,
    ZstdDecompressor,
)

from responses_app.models import Event
from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.page_codec import add_opening, format_lines, load_dictionary, parse_lines
from responses_app.store.log.records import Append

# No JSON begins with these bytes. A different form or dictionary gets another byte. An earlier version packed each event by itself.
EVENT_FORM, LINES_FORM, ID_FORM = b"\x01", b"\x02", b"\x03"
# Compressed, the digits of an id take 32 bytes, half of a delta. ID_FORM has those of the first id as bytes before the lines, and a mark
# in each of their places, which JSON never contains.
_DIGITS: Final = re.compile(rb"(?<=_)[0-9a-f]{48}(?=\")")
_DIGITS_BYTES: Final = 24
_MARK: Final = b"\x03"
# Content of the column `data` of a packed row: a process of an earlier version refuses to archive it.
NO_DATA: Final = b"\n"
# Level 6 saves eight percent and takes four times as long.
LEVEL: Final = 3
# Longer JSON would hold up the event loop. Postgres compresses it.
MAX_PACKED_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class Packing:
    """Whether this process packs rows: not while a process of an earlier version runs, which cannot read rows of several events."""

    allowed: bool = False

    def stop(self) -> None:
        """Write JSON, until the next heartbeat allows more."""
        self.allowed = False


packing: Final = Packing()


class EventRow(NamedTuple):
    """Columns of a row of events, apart from the response."""

    number: int
    type: str
    data: bytes
    ms: int
    tokens: bytes | None
    packed: bytes | None = None
    events: int | None = None


def _utf8(text: F | Concat) -> Func:
    return Func(text, Value("UTF8"), function="convert_to", output_field=BinaryField())


# The content of a row in any form.
_STORED: Final = Coalesce(F("packed"), _utf8(F("data")))
STORED_SQL: Final = "COALESCE(packed, convert_to(data, 'UTF8'))"
# For `unpack_row`.
ROW: Final = ("number", "type", _STORED, "ms")
# Number, type and content in one value, for `unpack_line`.
_HEAD: Final = Concat(Cast("number", TextField()), Value(" "), F("type"), Value(" "), output_field=TextField())
LINE: Final = Func(_utf8(_HEAD), _STORED, arg_joiner=" || ", template="(%(expressions)s)", output_field=BinaryField())
# The number of the last event of a row.
LAST: Final = F("number") + Coalesce(F("events"), 1) - 1


def rows_from(pk: int, number: int) -> QuerySet[Event]:
    """Return the rows of the event `number` of a log and of all events behind it, in order."""
    rows = Event.objects.filter(response_id=pk)
    first = rows.filter(number__lte=number).order_by("-number").values("number")[:1]
    return rows.filter(number__gte=Coalesce(Subquery(first), number)).order_by("number")


def event_rows(append: Append) -> list[EventRow]:
    """Return the rows of an append. The last row has the tokens."""
    packs = packing.allowed
    groups = list(_groups(append.frames)) if packs else [[frame] for frame in append.frames]
    tokens = [*[None] * (len(groups) - 1), append.tokens]
    return [_row(group, packs, one) for group, one in zip(groups, tokens[: len(groups)], strict=True)]


def pack_events(frames: Sequence[EventFrame]) -> bytes:
    """Pack consecutive events, for a row with number and time of the first."""
    lines = b"".join(format_lines(frames, frames[0].number, frames[0].ms))
    match = _DIGITS.search(lines)
    if match is None or _MARK in lines:
        return LINES_FORM + _threads.compressor.compress(lines)
    digits = match[0]
    return ID_FORM + bytes.fromhex(digits.decode()) + _threads.compressor.compress(lines.replace(digits, _MARK))


def unpack_row(number: int, kind: str, stored: bytes | memoryview, ms: int) -> list[EventFrame]:
    """Return the events of a row from the values of ROW. Raises ZstdError for a damaged row."""
    value = bytes(stored)
    form = value[:1]
    if form == EVENT_FORM:
        return [EventFrame(number, kind, add_opening(kind, number, _threads.event_decompressor.decompress(value[1:])), ms)]
    if form not in (LINES_FORM, ID_FORM):
        return [EventFrame(number, kind, value, ms)]
    return [
        EventFrame(place, type, add_opening(type, place, body), time)
        for place, type, time, body in parse_lines(_unpack_lines(value), number, ms)
    ]


def unpack_line(line: bytes | memoryview) -> list[EventFrame]:
    """Return the events of a row, without times, from the value of LINE. Raises ZstdError for a damaged row."""
    number, kind, stored = bytes(line).split(b" ", 2)
    return unpack_row(int(number), kind.decode(), stored, 0)


def _unpack_lines(value: bytes) -> bytes:
    if value.startswith(LINES_FORM):
        return _threads.decompressor.decompress(value[1:])
    start = 1 + _DIGITS_BYTES
    return _threads.decompressor.decompress(value[start:]).replace(_MARK, value[1:start].hex().encode())


def _groups(frames: Sequence[EventFrame]) -> Iterator[list[EventFrame]]:
    """Split frames into those of rows. A frame above the limit has a row of its own."""
    group, size = list[EventFrame](), 0
    for frame in frames:
        if group and size + len(frame.data) > MAX_PACKED_BYTES:
            yield group
            group, size = [], 0
        group.append(frame)
        size += len(frame.data)
    if group:
        yield group


def _row(group: Sequence[EventFrame], packs: bool, tokens: bytes | None) -> EventRow:
    first = group[0]
    if not packs or len(first.data) > MAX_PACKED_BYTES:
        return EventRow(first.number, first.type, first.data, first.ms, tokens)
    return EventRow(first.number, "", NO_DATA, first.ms, tokens, pack_events(group), len(group) if len(group) > 1 else None)


class _ThreadCodecs(threading.local):
    """Compressor and decompressor of each thread: neither is safe to share."""

    def __init__(self) -> None:
        self.compressor = ZstdCompressor(dict_data=_dictionary, compression_params=_PARAMETERS)
        self.decompressor = ZstdDecompressor(dict_data=_dictionary, format=FORMAT_ZSTD1_MAGICLESS)
        self.event_decompressor = ZstdDecompressor(dict_data=_dictionary)


def _load() -> ZstdCompressionDict:
    dictionary = load_dictionary()
    dictionary.precompute_compress(compression_params=_PARAMETERS)
    return dictionary


# Without the four bytes by which programs recognise the format.
_PARAMETERS: Final = ZstdCompressionParameters.from_level(LEVEL, format=FORMAT_ZSTD1_MAGICLESS, write_dict_id=False)
_dictionary: Final = _load()
_threads: Final = _ThreadCodecs()
