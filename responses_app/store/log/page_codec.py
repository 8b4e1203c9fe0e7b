"""Codec of pages: the events of an ended log as lines of text, compressed by zstandard with a trained dictionary.

A line is one event: the step from the number before, the step from the time before in milliseconds, the type, and the JSON. The JSON
is stored without its opening, `{"type":…,"sequence_number":…`, which the type and the number repeat; without that opening, as a whole.

The header of a page holds the id of the dictionary. Every page depends on every byte of the dictionary, so `page_dictionary.zdict` never
changes; a better one gets a file and an id of its own. `bench.page_dictionary` trains one.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cache
from pathlib import Path

from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor, ZstdError

from responses_app.store.log.records import EventFrame

DICTIONARY_ID = 1
# Higher levels save one percent and take twice as long.
LEVEL = 12
# The first bytes of JSON whose opening was left out. No JSON text begins with them.
CONTINUATIONS = (b",", b"}")


class UnreadablePage(ValueError):
    """Page that is damaged, or that was written with another dictionary."""


def pack(frames: Sequence[EventFrame]) -> bytes:
    """Encode the frames as one page. Raises ValueError for data that is not JSON on one line."""
    # Compressors and decompressors are not safe to share between threads; the dictionary is.
    return ZstdCompressor(level=LEVEL, dict_data=_dictionary()).compress(b"".join(_lines(frames)))


def unpack(page: bytes, only: Container[int] | None = None) -> list[EventFrame]:
    """Decode the frames of a page, or those with the numbers `only`, byte for byte. Raises UnreadablePage."""
    return [
        EventFrame(number, kind, _join(kind, number, body), ms)
        for number, kind, ms, body in _records(page)
        if only is None or number in only
    ]


def outline(page: bytes) -> Iterator[tuple[int, str, int]]:
    """Decode number, type and time of each frame. Raises UnreadablePage."""
    return ((number, kind, ms) for number, kind, ms, _ in _records(page))


def _lines(frames: Sequence[EventFrame]) -> Iterator[bytes]:
    last_number = last_ms = 0
    for number, kind, data, ms in frames:
        if b"\n" in data or kind.split() != [kind] or data.startswith(CONTINUATIONS):
            raise ValueError(f"event {number} is not JSON on one line")
        body = _split(kind, number, data)
        yield b"%d %d %b %b\n" % (number - last_number, ms - last_ms, kind.encode(), body)
        last_number, last_ms = number, ms


def _records(page: bytes) -> Iterator[tuple[int, str, int, bytes]]:
    """Decode number, type, time and stored JSON of each frame."""
    number = ms = 0
    for line in _decompress(page).split(b"\n")[:-1]:
        number_step, ms_step, kind, body = line.split(b" ", 3)
        number, ms = number + int(number_step), ms + int(ms_step)
        yield number, kind.decode(), ms, body


def _split(kind: str, number: int, data: bytes) -> bytes:
    body = data.removeprefix(_opening(kind, number))
    return body if body.startswith(CONTINUATIONS) else data


def _join(kind: str, number: int, body: bytes) -> bytes:
    return _opening(kind, number) + body if body.startswith(CONTINUATIONS) else body


def _opening(kind: str, number: int) -> bytes:
    return b'{"type":"%b","sequence_number":%d' % (kind.encode(), number)


def _decompress(page: bytes) -> bytes:
    try:
        return ZstdDecompressor(dict_data=_dictionary()).decompress(page)
    except ZstdError as error:
        raise UnreadablePage(str(error)) from error


@cache
def _dictionary() -> ZstdCompressionDict:
    dictionary = ZstdCompressionDict(Path(__file__).with_name("page_dictionary.zdict").read_bytes())
    dictionary.precompute_compress(level=LEVEL)
    return dictionary
