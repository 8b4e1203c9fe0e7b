"""How a part of a log that has ended is packed: what its events share is written once, the rest column by column, compressed.

An event is `{"type":…,"sequence_number":…`, a head, a body and a tail. Events of one kind share head and tail (of a delta all but its
text is the same for a whole item), so a page has a table of forms, and for each event: which form, its number, its time, its body. The
numbers count up and the times nearly do, so their differences are kept. Bodies stand one behind the other, as the text that they are, and
a text that is repeated at the end of an item compresses to nothing.

The first byte is the version of the layout. Version 1 is compressed by raw deflate with the phrases of
`store.log.page_dictionary` known to both
sides, version 2, for pages too large for the window of deflate, by LZMA.
"""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from responses_app.store.log.page_dictionary import PHRASES
from responses_app.store.log.records import EventFrame

DEFLATE, LZMA = 1, 2
# Deflate sees 32 KiB back. An item that closes repeats its text twice, the response once more.
WINDOW = 32 * 1024
LEVEL = 9
FILTERS: Final = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1024 * 1024}]
DELTA = ".delta"
HEAD = b'"delta":"'
TAILS = (b'","logprobs":[]}', b'"}')
BYTE = 0x80


class UnknownVersion(ValueError):
    """The page was written by a later version of this server."""


class EventTemplate(NamedTuple):
    """What events of a page share. One that does not begin like an event is all body: `numbered` is false."""

    type: bytes
    numbered: bool
    head: bytes
    tail: bytes

    def opening(self, number: int) -> bytes:
        """Everything before the body."""
        return b'{"type":"%b","sequence_number":%d%b' % (self.type, number, self.head) if self.numbered else b""


def pack(frames: Sequence[EventFrame]) -> bytes:
    """The frames as one page."""
    forms: dict[EventTemplate, int] = {}
    which, bodies = [], []
    for frame in frames:
        form, body = _split(frame)
        which.append(forms.setdefault(form, len(forms)))
        bodies.append(body)
    columns = (
        _forms(forms),
        _varints(which),
        _varints(_steps(frame.number for frame in frames)),
        _varints(_steps(frame.ms for frame in frames)),
        _varints(map(len, bodies)),
        b"".join(bodies),
    )
    # One event alone, as the terminal one is, repeats nothing that is far away, and is read again and again.
    return _compressed(b"".join(_length_prefixed(columns)), quick=len(frames) == 1)


def unpack(page: bytes, only: Container[int] | None = None) -> list[EventFrame]:
    """The frames of a page, or those of these numbers, exactly as they were. Raises UnknownVersion."""
    table, which, numbers, times, lengths, bodies = _columns(_expanded(page))
    forms = _read_forms(table)
    ends = accumulate(_read_integers(lengths), initial=0)
    rows = zip(_read_integers(which), _unzigzag(numbers), _unzigzag(times), pairwise(ends), strict=True)
    return [
        _join(forms[form], number, ms, bodies[start:end])
        for form, number, ms, (start, end) in rows
        if only is None or number in only
    ]


def outline(page: bytes) -> Iterator[tuple[int, str, int]]:
    """Number, type and time of each frame, without putting together what it says. Raises UnknownVersion."""
    table, which, numbers, times, _, _ = _columns(_expanded(page))
    types = [form.type.decode() for form in _read_forms(table)]
    return zip(_unzigzag(numbers), (types[form] for form in _read_integers(which)), _unzigzag(times), strict=True)


def _split(frame: EventFrame) -> tuple[EventTemplate, bytes]:
    kind, data = frame.type.encode(), frame.data
    plain = EventTemplate(kind, True, b"", b"")
    opening = plain.opening(frame.number)
    if not data.startswith(opening):
        return plain._replace(numbered=False), data
    start, end, tail = len(opening), len(data), b""
    at = data.find(HEAD, start) if frame.type.endswith(DELTA) else -1
    if at >= 0:
        start = at + len(HEAD)
        tail = next((tail for tail in TAILS if data.endswith(tail, start)), b"")
        end -= len(tail)
    return plain._replace(head=data[len(opening) : start], tail=tail), data[start:end]


def _join(form: EventTemplate, number: int, ms: int, body: bytes) -> EventFrame:
    return EventFrame(number, form.type.decode(), b"%b%b%b" % (form.opening(number), body, form.tail), ms)


def _compressed(raw: bytes, *, quick: bool) -> bytes:
    if len(raw) > WINDOW and not quick:
        return bytes([LZMA]) + lzma.compress(raw, lzma.FORMAT_RAW, filters=FILTERS)
    deflate = zlib.compressobj(LEVEL, wbits=-zlib.MAX_WBITS, zdict=PHRASES)
    return bytes([DEFLATE]) + deflate.compress(raw) + deflate.flush()


def _expanded(page: bytes) -> bytes:
    if page[0] == DEFLATE:
        return zlib.decompressobj(-zlib.MAX_WBITS, zdict=PHRASES).decompress(page[1:])
    if page[0] == LZMA:
        return lzma.decompress(page[1:], lzma.FORMAT_RAW, filters=FILTERS)
    raise UnknownVersion(f"a page of version {page[0]}")


def _length_prefixed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Each part behind its length."""
    for part in parts:
        yield _varints([len(part)])
        yield part


def _columns(raw: bytes) -> list[bytes]:
    """The parts of what `_sized` made."""
    parts, at = [], 0
    while at < len(raw):
        length, at = _integer(raw, at)
        parts.append(raw[at : at + length])
        at += length
    return parts


def _forms(forms: Iterable[EventTemplate]) -> bytes:
    return b"".join(
        _length_prefixed(part for form in forms for part in (form.type, b"1" * form.numbered, form.head, form.tail))
    )


def _read_forms(table: bytes) -> list[EventTemplate]:
    parts = iter(_columns(table))
    return [
        EventTemplate(kind, bool(numbered), head, tail)
        for kind, numbered, head, tail in zip(parts, parts, parts, parts, strict=True)
    ]


def _steps(numbers: Iterable[int]) -> Iterator[int]:
    """From each number to the next, the first from 0; a step back is odd, one ahead even."""
    before = 0
    for number in numbers:
        step, before = number - before, number
        yield -2 * step - 1 if step < 0 else 2 * step


def _unzigzag(column: bytes) -> Iterator[int]:
    """The numbers again whose steps the column has."""
    return accumulate(-(step + 1) // 2 if step & 1 else step // 2 for step in _read_integers(column))


def _varints(numbers: Iterable[int]) -> bytes:
    """Seven bits a byte, the low ones first; all bytes of a number but the last have the eighth."""
    out = bytearray()
    for number in numbers:
        rest = number
        while rest >= BYTE:
            out.append(rest % BYTE | BYTE)
            rest //= BYTE
        out.append(rest)
    return bytes(out)


def _read_integers(column: bytes) -> list[int]:
    if column.isascii():
        return list(column)
    numbers, at = [], 0
    while at < len(column):
        number, at = _integer(column, at)
        numbers.append(number)
    return numbers


def _integer(column: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, and where the next one begins."""
    number = shift = 0
    while column[at] >= BYTE:
        number |= (column[at] - BYTE) << shift
        at, shift = at + 1, shift + 7
    return number | column[at] << shift, at + 1
