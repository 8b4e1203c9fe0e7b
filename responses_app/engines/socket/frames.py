"""Frames of the socket between a web process and an engine worker: a JSON array of messages, and bytes behind the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any

import orjson

# Bytes of the messages, and bytes of the body.
HEADER = Struct(">II")
# Longest frame. A prompt of a million tokens takes 4 MB; images and schemas are limited by the API.
MAX_FRAME_BYTES = 1 << 28


class InvalidFrame(Exception):
    """The other end sent bytes that are no frame."""


def encode(messages: Sequence[Any], body: bytes = b"") -> bytes:
    """Encode a frame. Raises TypeError for a value without a JSON representation."""
    content = orjson.dumps(messages, option=orjson.OPT_NON_STR_KEYS)
    return HEADER.pack(len(content), len(body)) + content + body


class FrameSplitter:
    """Splits a stream of bytes, received in parts of any size, into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[list[Any], bytes]]:
        """Yield messages and body of each frame that `data` completes. Raises InvalidFrame."""
        buffer = self._buffer
        buffer += data
        begin = 0
        while len(buffer) - begin >= HEADER.size:
            length, body_length = HEADER.unpack_from(buffer, begin)
            if length + body_length > MAX_FRAME_BYTES:
                raise InvalidFrame(f"a frame of {length + body_length} bytes; the limit is {MAX_FRAME_BYTES}")
            middle = begin + HEADER.size + length
            end = middle + body_length
            if len(buffer) < end:
                break
            yield _messages(buffer[begin + HEADER.size : middle]), bytes(buffer[middle:end])
            begin = end
        del buffer[:begin]


def _messages(content: bytearray) -> list[Any]:
    try:
        messages = orjson.loads(content)
    except ValueError as error:
        raise InvalidFrame("a frame without JSON") from error
    if not isinstance(messages, list):
        raise InvalidFrame("a frame without an array of messages")
    return messages
