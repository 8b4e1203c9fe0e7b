"""Page codec: events of an archived log as lines of text, compressed by zstandard with a trained dictionary.

Each line is an event: the difference to the previous number, the difference to the previous time in milliseconds, the type and the
JSON. The usual opening `{"type":…,"sequence_number":…` of the JSON is omitted, because type and number determine the opening.

The header of a page holds the id of the dictionary. Pages depend on every byte of the dictionary, so `page_dictionary.zdict` never
changes. A better dictionary gets a new file and a new id. `bench.page_dictionary` trains a dictionary.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from functools import cache
from pathlib import Path

from zstandard import ZstdCompressionDict, ZstdCompressor, ZstdDecompressor, ZstdError

from responses_app.protocol.encoding import EventFrame

DICTIONARY_ID = 1
# Level 12 saves two percent and takes three times as long; level 6 costs five percent and saves a third of the time.
LEVEL = 9
# The first bytes of JSON whose opening was left out. No JSON text begins with them.
CONTINUATIONS = (b",", b"}")


class UnreadablePage(ValueError):
    """Page damaged, or written with an unknown dictionary."""


def new_compressor() -> ZstdCompressor:
    """Return a compressor for the pages of a batch. It is not safe to share between threads; the dictionary is."""
    return ZstdCompressor(level=LEVEL, dict_data=_dictionary())


def pack(frames: Sequence[EventFrame], compressor: ZstdCompressor | None = None) -> bytes:
    """Encode frames as a page. Raises ValueError if the data of a frame is not JSON on a single line."""
    return (compressor or new_compressor()).compress(b"".join(format_lines(frames)))


def unpack(page: bytes, only: Container[int] | None = None) -> list[EventFrame]:
    """Decode the frames of a page, all or only the numbers in `only`. Raises UnreadablePage."""
    return [
        EventFrame(number, kind, add_opening(kind, number, body), ms)
        for number, kind, ms, body in parse_lines(_decompress(page))
        if only is None or number in only
    ]


def unpack_headers(page: bytes) -> Iterator[tuple[int, str, int]]:
    """Decode number, type and time of each frame. Raises UnreadablePage."""
    return ((number, kind, ms) for number, kind, ms, _ in parse_lines(_decompress(page)))


def load_dictionary() -> ZstdCompressionDict:
    """Load a copy of the dictionary, whose tables for compression can be computed for a single level."""
    return ZstdCompressionDict(Path(__file__).with_name("page_dictionary.zdict").read_bytes())


def format_lines(frames: Sequence[EventFrame], last_number: int = 0, last_ms: int = 0) -> Iterator[bytes]:
    """Format frames as lines behind an event with number and time. Raises ValueError as `pack`."""
    for number, kind, data, ms in frames:
        if b"\n" in data or kind.split() != [kind] or data.startswith(CONTINUATIONS):
            raise ValueError(f"event {number} is not JSON on one line")
        body = cut_opening(kind, number, data)
        yield b"%d %d %b %b\n" % (number - last_number, ms - last_ms, kind.encode(), body)
        last_number, last_ms = number, ms


def parse_lines(lines: bytes, number: int = 0, ms: int = 0) -> Iterator[tuple[int, str, int, bytes]]:
    """Decode number, type, time and stored JSON of each frame from lines behind an event with number and time."""
    for line in lines.split(b"\n")[:-1]:
        number_step, ms_step, kind, body = line.split(b" ", 3)
        number, ms = number + int(number_step), ms + int(ms_step)
        yield number, kind.decode(), ms, body


def cut_opening(kind: str, number: int, data: bytes) -> bytes:
    """Return the JSON without its opening, if it has the usual one."""
    body = data.removeprefix(_opening(kind, number))
    return body if body.startswith(CONTINUATIONS) else data


def add_opening(kind: str, number: int, body: bytes) -> bytes:
    """Return the JSON that `cut_opening` got."""
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
    dictionary = load_dictionary()
    dictionary.precompute_compress(level=LEVEL)
    return dictionary
