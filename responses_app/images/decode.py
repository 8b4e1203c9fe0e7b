"""A picture's bytes: out of a data URL, and found to be one that can be decoded."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageOps, UnidentifiedImageError

from responses_app.images.limits import TooMuchWork, check_jpeg

FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif")
# What clients call image/jpeg, too.
_NAMES = frozenset({*TYPES, "image/jpg"})
_DATA = re.compile(r"data:(?P<type>[^;,]*)(?P<parameters>(?:;[^;,]*)*),", re.IGNORECASE)
MOST_BYTES = 20 * 1024 * 1024
# A photo of the largest cameras in use. A kilobyte of PNG can say much more: its decoded size is what costs memory.
MOST_PIXELS = 50_000_000


# White space inside base64 is what MIME encoders put there.
_SPACE = b" \t\n\r\v\f"


class Size(NamedTuple):
    """Width and height in pixels."""

    width: int
    height: int

    @property
    def area(self) -> int:
        """The number of pixels."""
        return self.width * self.height


class InvalidImage(ValueError):
    """There is no picture to be had; the message begins with a capital letter, `code` is the API's word for it."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def is_data(url: str) -> bool:
    """Whether the URL holds the picture itself."""
    return url[:5].lower() == "data:"


def media_type(url: str) -> str:
    """The media type that a data URL names. Raises BadImage for one that is no base64 picture of a kind that is taken."""
    head = _DATA.match(url)
    if head is None or not head["parameters"].lower().endswith(";base64"):
        raise InvalidImage(
            "Expected a base64-encoded data URL with an image MIME type (e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=').",
            "invalid_image_url",
        )
    if head["type"].lower() not in _NAMES:
        kinds = ", ".join(f"'{each}'" for each in TYPES)
        raise InvalidImage(
            f"Unsupported media type '{head['type'][:64]}'. Supported media types are: {kinds}.", "unsupported_image_media_type"
        )
    return head["type"].lower()


def data(url: str) -> bytes:
    """The bytes in a data URL. Raises BadImage."""
    media_type(url)
    try:
        return b64decode(url.partition(",")[2].encode("ascii").translate(None, _SPACE), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidImage(
            "Expected a base64-encoded data URL with an image MIME type, but got an invalid base64-encoded value.",
            "invalid_image_url",
        ) from error


def check(picture: bytes) -> Size:
    """See that a picture can be decoded; of an animation that is its first frame. Raises BadImage.

    How long this takes is the sender's choice, within limits: to be called in a process of its own (images/decode_pool.py).
    """
    if not picture:
        raise InvalidImage("The image is empty.", "empty_image_file")
    if len(picture) > MOST_BYTES:
        raise InvalidImage(f"The image has {len(picture)} bytes; up to {MOST_BYTES} are taken.", "image_file_too_large")
    try:
        with _opened(picture) as image:
            size = Size(image.width, image.height)
            if size.area > MOST_PIXELS:
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
    except Exception as error:  # Pillow's decoders raise whatever they like, some of it derived from Exception alone.
        raise InvalidImage(f"The image cannot be decoded ({type(error).__name__}).", "image_parse_error") from error


def reduced(picture: bytes, side: int) -> bytes:
    """A picture that was checked, no wider and no higher than `side` pixels; it itself if it is small enough."""
    with _opened(picture) as image:
        if max(image.size) <= side:
            return picture
        # What the camera says of how it was held would be lost, and a palette cannot be blended.
        upright = ImageOps.exif_transpose(image).convert("RGBA" if image.has_transparency_data else "RGB")
        upright.thumbnail((side, side))
        out = BytesIO()
        upright.save(out, "PNG")
        return out.getvalue()


def _opened(picture: bytes) -> Image.Image:
    return Image.open(BytesIO(picture), formats=FORMATS)


def _too_large(size: str) -> InvalidImage:
    return InvalidImage(f"The image has {size} pixels; up to {MOST_PIXELS:,} in all are taken.", "image_too_large")
