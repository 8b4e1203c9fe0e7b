"""Image decoding: extracts the bytes of a data URL, checks and shrinks images."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterator
from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

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


FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
# `image/jpg` is a common misspelling of `image/jpeg`.
_MEDIA_TYPES = frozenset({*TYPES, "image/jpg"})
_DATA_URL = re.compile(r"data:(?P<type>[^;,]*)(?P<parameters>(?:;[^;,]*)*),", re.IGNORECASE)
MAX_BYTES = 20 * 1024 * 1024
# Photos of the largest cameras have fewer pixels. The file size is no bound: a kilobyte of PNG can decode to gigabytes.
MAX_PIXELS = 50_000_000


# MIME encoders insert white space into base64.
_WHITE_SPACE = b" \t\n\r\v\f"
# The headers of most images are within so many characters of base64.
HEADER_CHARS = 65_536
_ORIENTATION_TAG = 0x0112
# Orientations of EXIF that turn an image by 90 degrees.
_TURNED = range(5, 9)


class ImageSize(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int

    @property
    def area(self) -> int:
        """The number of pixels."""
        return self.width * self.height


class InvalidImage(ValueError):
    """The image is invalid or unsupported. The message begins with a capital letter; `code` is the error code of the API."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def is_data_url(url: str) -> bool:
    """Return True for a data URL."""
    return url[:5].lower() == "data:"


def media_type(url: str) -> str:
    """Return the media type of a data URL. Raises InvalidImage unless base64-encoded and of a supported type."""
    head = _DATA_URL.match(url)
    if head is None or not head["parameters"].lower().endswith(";base64"):
        raise InvalidImage(
            "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=').",
            "invalid_image_url",
        )
    if head["type"].lower() not in _MEDIA_TYPES:
        kinds = ", ".join(f"'{each}'" for each in TYPES)
        raise InvalidImage(
            f"Unsupported media type '{head['type'][:64]}'. Supported media types are: {kinds}.", "unsupported_image_media_type"
        )
    return head["type"].lower()


def decode_data_url(url: str) -> bytes:
    """Decode the bytes of a data URL. Raises InvalidImage."""
    media_type(url)
    try:
        return b64decode(url.partition(",")[2].encode("ascii").translate(None, _WHITE_SPACE), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidImage(
            "Expected a base64-encoded data URL with an image MIME type, but got an invalid base64-encoded value.",
            "invalid_image_url",
        ) from error


def header_size(url: str) -> ImageSize | None:
    """Return the size in the header of a data URL, turned by the EXIF orientation. Decode no pixels. None if the header does not parse."""
    try:
        start = decode_data_url(url[: url.find(",") + 1 + HEADER_CHARS])
    except InvalidImage:
        return None
    return size_of(start)


def size_of(start: bytes) -> ImageSize | None:
    """Return the size in the header of an image that begins with `start`, as `header_size` does."""
    try:
        with _open(start) as image:
            is_turned = image.format == "JPEG" and image.getexif().get(_ORIENTATION_TAG) in _TURNED
            return ImageSize(*(image.size[::-1] if is_turned else image.size))
    except Exception:  # Pillow's parsers raise exceptions of any class.
        return None


def check_length(picture: bytes) -> None:
    """Check the number of bytes of an image. Raises InvalidImage."""
    if not picture:
        raise InvalidImage("The image is empty.", "empty_image_file")
    if len(picture) > MAX_BYTES:
        raise InvalidImage(f"The image has {len(picture)} bytes; up to {MAX_BYTES} are taken.", "image_file_too_large")


def check(picture: bytes) -> ImageSize:
    """Check an image (the first frame of an animation) by decoding. Raises InvalidImage.

    The sender determines how long this takes, within limits: call it in a worker process (images/decode_pool.py).
    """
    check_length(picture)
    try:
        with _open(picture) as image:
            size = ImageSize(image.width, image.height)
            if size.area > MAX_PIXELS:
                raise _too_large(f"{image.width} x {image.height}")
            check_jpeg(picture, size.area)
            image.load()
            return size
    except InvalidImage:
        raise
    except TooMuchWork as error:
        raise InvalidImage(f"The image {error}, which takes too long to decode.", "image_too_large") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise _too_large("too many") from error
    except UnidentifiedImageError as error:
        kinds = ", ".join(f"'{each}'" for each in TYPES)
        message = f"The data is no image of a format that is taken. Supported formats are: {kinds}."
        raise InvalidImage(message, "invalid_image_format") from error
    except Exception as error:  # Pillow's decoders raise exceptions of any class.
        raise InvalidImage(f"The image cannot be decoded ({type(error).__name__}).", "image_parse_error") from error


def shrink(picture: bytes, side: int) -> bytes:
    """Shrink a checked image to at most `side` pixels per side; return smaller images unchanged."""
    with _open(picture) as image:
        if max(image.size) <= side:
            return picture
        # Apply the EXIF orientation, which PNG would lose, and convert palettes, which cannot be resampled.
        upright = ImageOps.exif_transpose(image).convert("RGBA" if image.has_transparency_data else "RGB")
        upright.thumbnail((side, side))
        out = BytesIO()
        upright.save(out, "PNG")
        return out.getvalue()


def _open(picture: bytes) -> Image.Image:
    return Image.open(BytesIO(picture), formats=FORMATS)


def _too_large(size: str) -> InvalidImage:
    return InvalidImage(f"The image has {size} pixels; up to {MAX_PIXELS:,} in all are taken.", "image_too_large")
