"""What a worker process does with one image: check it, or make it smaller."""

from __future__ import annotations

from PIL import Image

from responses_app.images import decode
from responses_app.images.decode import InvalidImage

# The formats are loaded before the memory of the process is limited.
Image.preinit()
Image.init()


def handle(payload: bytes) -> bytes:
    """The answer to a request: `=` and the size or the smaller image, or `!`, the code and the reason why the image is refused."""
    side, data = int.from_bytes(payload[:4], "big"), payload[4:]
    try:
        return b"=" + (_reduce(data, side) if side else _check(data))
    except InvalidImage as error:
        return f"!{error.code} {error}".encode(errors="replace")


def _check(data: bytes) -> bytes:
    size = decode.check(data)
    return size.width.to_bytes(4, "big") + size.height.to_bytes(4, "big")


def _reduce(data: bytes, side: int) -> bytes:
    """The smaller image; nothing if it is small enough already."""
    try:
        smaller = decode.reduced(data, side)
    except (OSError, ValueError, MemoryError) as error:
        raise InvalidImage(f"The image cannot be decoded ({type(error).__name__}).", "image_parse_error") from error
    return b"" if smaller is data else smaller
