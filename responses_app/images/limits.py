"""Upper bounds for the work of decoding an image, checked on the file structure before decoding."""

from __future__ import annotations

import re
from collections.abc import Iterator

# A camera's progressive JPEG has about ten scans. Each scan visits every pixel again, whatever its length in bytes.
MAX_SCANS = 100
MAX_SCANNED_PIXELS = 1_000_000_000
# Cameras and editors write some dozens of segments. Python code reads them one by one.
MAX_SEGMENTS = 10_000

_JPEG = b"\xff\xd8"
_START_OF_SCAN, _END_OF_IMAGE = 0xDA, 0xD9
# Markers without a length: TEM, the start and the end of the image.
_WITHOUT_LENGTH = frozenset({0x01, 0xD8, 0xD9})
# In compressed data 0xFF is followed by zero or by a restart marker; any other byte begins a segment.
_MARKER = re.compile(rb"\xff([\x01-\xcf\xd8-\xfe])")


class TooMuchWork(ValueError):
    """The image structure exceeds a limit; the message names the limit."""


def check_jpeg(data: bytes, pixels: int) -> None:
    """Count the segments and the scans of a JPEG with `pixels` pixels. Raises TooMuchWork.

    Other formats pass.
    """
    scans = 0
    for count, marker in enumerate(_segments(data), 1):
        scans += marker == _START_OF_SCAN
        if scans > MAX_SCANS:
            raise TooMuchWork(f"has more than {MAX_SCANS} scans")
        if scans * pixels > MAX_SCANNED_PIXELS:
            raise TooMuchWork(f"has more than {MAX_SCANNED_PIXELS:,} pixels in all its scans together")
        if count > MAX_SEGMENTS:
            raise TooMuchWork(f"has more than {MAX_SEGMENTS:,} segments")


def _segments(data: bytes) -> Iterator[int]:
    """Yield the markers of a JPEG up to the end marker, skipping the contents of segments (e.g. previews in APP segments)."""
    if not data.startswith(_JPEG):
        return
    match = _MARKER.search(data)
    while match is not None and match[1][0] != _END_OF_IMAGE:
        marker, at = match[1][0], match.end()
        if marker not in _WITHOUT_LENGTH:
            at += max(int.from_bytes(data[at : at + 2], "big"), 2)
        yield marker
        match = _MARKER.search(data, at)
