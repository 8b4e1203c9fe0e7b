"""Decoded images: the bytes and the number of pixels of each image as a prompt shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

from responses_app.dialects.content import ImageReference
from responses_app.errors import RateLimited
from responses_app.images import decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.images.decode_pool import DecoderBusy
from responses_app.store.content.images import ImageBytes

# Longest side of an image with `detail: low` in pixels, as at OpenAI.
MAX_LOW_DETAIL_SIDE = 512
# Bytes and number of pixels by reference without a path. An image that cannot be decoded is an error only if the prompt shows it.
DecodedImages: TypeAlias = Mapping[ImageReference, tuple[bytes, int] | InvalidImage]


def key_of(image: ImageReference) -> ImageReference:
    """Return the key of an image among the decoded images."""
    return replace(image, path="")


async def decode_images(
    project: str, references: Iterable[ImageReference], images: ImageBytes, known: DecodedImages
) -> DecodedImages:
    """Decode those images of `references` that are not `known`, and shrink those of low detail. Raises RateLimited.

    An image without bytes in `images` is left out.
    """
    decoded = dict(known)
    for image in references:
        key, data = key_of(image), images.get((image.item, image.url))
        if key not in decoded and data is not None:
            decoded[key] = await _decode(project, data, image.detail)
    return decoded


async def _decode(project: str, data: bytes, detail: str) -> tuple[bytes, int] | InvalidImage:
    try:
        if detail == "low":
            data = await decode_pool.shrink(project, data, MAX_LOW_DETAIL_SIDE)
        return data, (await decode_pool.check(project, data)).area
    except InvalidImage as error:
        # Without the frames, which hold the bytes.
        return error.with_traceback(None)
    except DecoderBusy as error:
        raise RateLimited(str(error)) from error
