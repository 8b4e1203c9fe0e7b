"""Upper bounds of the work that an image takes to decode, read from its structure before it is decoded."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A camera's progressive JPEG has about ten scans. Each scan visits every pixel again, whatever its length in bytes.
MOST_SCANS = 100
MOST_SCANNED_PIXELS = 1_000_000_000
# Cameras and editors write some dozens. Programs in Python read them one by one.
MOST_SEGMENTS = 10_000

_JPEG = b"\xff\xd8"
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
# Markers without a length: TEM, the start and the end of the image.
_BARE = frozenset({0x01, 0xD8, 0xD9})
# In compressed data 0xFF is followed by zero or by a restart marker; anything else begins a segment.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")


class TooMuchWork(ValueError):
    """The structure of the image asks for more work than is allowed; the message says which."""


def check_jpeg(data: bytes, pixels: int) -> None:
    """Count the segments and the scans of a JPEG of so many pixels; any other data passes. Raises TooMuchWork."""
    scans = 0
    for count, marker in enumerate(_segments(data), 1):
        scans += marker == _START_OF_SCAN
        if scans > MOST_SCANS:
            raise TooMuchWork(f"has more than {MOST_SCANS} scans")
        if scans * pixels > MOST_SCANNED_PIXELS:
            raise TooMuchWork(f"has more than {MOST_SCANNED_PIXELS:,} pixels in all its scans together")
        if count > MOST_SEGMENTS:
            raise TooMuchWork(f"has more than {MOST_SEGMENTS:,} segments")


def _segments(data: bytes) -> Iterator[int]:
    """The markers of a JPEG up to its end. The contents of segments, such as a preview in an APP segment, are passed over."""
    if not data.startswith(_JPEG):
        return
    found = _MARKER.search(data)
    while found is not None and found[1][0] != _END_OF_IMAGE:
        marker, at = found[1][0], found.end()
        if marker not in _BARE:
            at += max(int.from_bytes(data[at : at + 2], "big"), 2)
        yield marker
        found = _MARKER.search(data, at)
