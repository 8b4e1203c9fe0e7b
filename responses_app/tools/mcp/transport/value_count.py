"""Number of values in the JSON of an MCP server, counted before the JSON is parsed: parsing many values blocks the process."""

from __future__ import annotations

import re

MAX_VALUES = 100_000
# A string without escapes, up to its quote or to a line break, which ends it: JSON has no line breaks in strings.
_STRING = re.compile(rb'"[^"\r\n]*+(?:"|(?=[\r\n]))')
# Separator of server-sent events.
_EVENT_END = re.compile(rb"(?>\r\n|\n|\r){2,}")


class ValueCount:
    """Number of values outside of strings, of a body or of each event of a stream, up to the factor two."""

    def __init__(self, *, is_stream: bool = False) -> None:
        self.is_stream = is_stream
        self._count = 0
        self._open = b""  # beginning of a string that has not ended, without its letters

    def is_exceeded_by(self, chunk: bytes) -> bool:
        """Add the next bytes. Return True if there are too many values."""
        data = self._open + chunk
        # An odd number of backslashes escapes the next letter.
        backslash = b"\\" * ((len(data) - len(data.rstrip(b"\\"))) % 2)
        unescaped = data[: len(data) - len(backslash)].replace(b"\\\\", b"").replace(b'\\"', b"")
        # The last quote that is left begins a string which has not ended.
        outside, quote, _ = _STRING.sub(b"", unescaped).partition(b'"')
        self._open = quote + backslash
        parts = _EVENT_END.split(outside) if self.is_stream else [outside]
        counts = [sum(map(part.count, (b",", b"[", b"{"))) for part in parts]
        counts[0] += self._count
        self._count = counts[-1]
        return max(counts) > MAX_VALUES
