"""Decode job: checks or shrinks an image in a worker process."""

from __future__ import annotations

from PIL import Image

from responses_app.images import decode
from responses_app.images.decode import InvalidImage

# Load the formats before the memory of the process is limited.
Image.preinit()
Image.init()


def handle(payload: bytes) -> bytes:
    """Handle a request: return `=` and the size or the smaller image, or `!`, the error code and the message."""
    side, data = int.from_bytes(payload[:4], "big"), payload[4:]
    try:
        return b"=" + (_shrink(data, side) if side else _check(data))
    except InvalidImage as error:
        return f"!{error.code} {error}".encode(errors="replace")


def _check(data: bytes) -> bytes:
    size = decode.check(data)
    return size.width.to_bytes(4, "big") + size.height.to_bytes(4, "big")


def _shrink(data: bytes, side: int) -> bytes:
    """Shrink the image; return an empty result if the image is small enough already."""
    try:
        smaller = decode.shrink(data, side)
    except (OSError, ValueError, MemoryError) as error:
        raise InvalidImage(f"The image cannot be decoded ({type(error).__name__}).", "image_parse_error") from error
    return b"" if smaller is data else smaller
