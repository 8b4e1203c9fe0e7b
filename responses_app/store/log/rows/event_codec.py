"""Packed form of the JSON of an event in a row: without the opening, compressed by zstandard with the dictionary of the pages.

The first byte is the form. A packed delta takes a third of the space of its JSON, in the table and in the WAL of Postgres.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Final

from django.db.models import BinaryField, F, Func, TextField, Value
from django.db.models.functions import Cast, Coalesce, Concat
from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor

from responses_app.protocol.encoding import EventFrame
from responses_app.store.log.page_codec import add_opening, cut_opening, load_dictionary

# No JSON begins with this byte. A different form or dictionary gets another byte.
FORM: Final = b"\x01"
# Content of the column `data` of a packed row: a process of an earlier version refuses to archive it.
NO_DATA: Final = b"\n"
# Level 6 saves eight percent and takes four times as long.
LEVEL: Final = 3
# Longer JSON would hold up the event loop. Postgres compresses it.
MAX_PACKED_BYTES: Final = 64 * 1024


@dataclass(slots=True)
class Packing:
    """Whether this process packs rows: not while a process of an earlier version runs, which cannot read packed rows."""

    allowed: bool = False

    def stop(self) -> None:
        """Write JSON, until the next heartbeat allows more."""
        self.allowed = False


packing: Final = Packing()


def _utf8(text: F | Concat) -> Func:
    return Func(text, Value("UTF8"), function="convert_to", output_field=BinaryField())


# The stored JSON of an event in either form, for `unpack_event`.
STORED: Final = Coalesce(F("packed"), _utf8(F("data")))
STORED_SQL: Final = "COALESCE(packed, convert_to(data, 'UTF8'))"
# Number, type and stored JSON in one value, for `unpack_line`.
_HEAD: Final = Concat(Cast("number", TextField()), Value(" "), F("type"), Value(" "), output_field=TextField())
LINE: Final = Func(_utf8(_HEAD), STORED, arg_joiner=" || ", template="(%(expressions)s)", output_field=BinaryField())


def pack_event(frame: EventFrame) -> bytes | None:
    """Return the packed JSON of an event; None if the row gets the JSON itself."""
    if not packing.allowed or len(frame.data) > MAX_PACKED_BYTES:
        return None
    return FORM + _threads.compressor.compress(cut_opening(frame.type, frame.number, frame.data))


def unpack_event(number: int, kind: str, stored: bytes | memoryview) -> bytes:
    """Return the JSON of an event from the value of STORED. Raises ZstdError for a damaged row."""
    value = bytes(stored)
    if not value.startswith(FORM):
        return value
    return add_opening(kind, number, _threads.decompressor.decompress(value[1:]))


def unpack_line(line: bytes | memoryview) -> bytes:
    """Return the JSON of an event from the value of LINE. Raises ZstdError for a damaged row."""
    number, kind, stored = bytes(line).split(b" ", 2)
    return unpack_event(int(number), kind.decode(), stored)


class _ThreadCodecs(threading.local):
    """Compressor and decompressor of each thread: neither is safe to share."""

    def __init__(self) -> None:
        self.compressor = ZstdCompressor(level=LEVEL, dict_data=_dictionary, write_dict_id=False)
        self.decompressor = ZstdDecompressor(dict_data=_dictionary)


def _load() -> ZstdCompressionDict:
    dictionary = load_dictionary()
    dictionary.precompute_compress(level=LEVEL)
    return dictionary


_dictionary: Final = _load()
_threads: Final = _ThreadCodecs()
