"""The images of a context as bytes: those of the request decoded or fetched, those of its history as they were kept."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from django.conf import settings

from responses_app.dialects.parts import Image, images
from responses_app.errors import Busy, Invalid
from responses_app.images import decoder, picture
from responses_app.images.decoder import DecoderBusy
from responses_app.images.fetch import Web
from responses_app.images.picture import BadImage
from responses_app.runs import long_work
from responses_app.store import images as store
from responses_app.store.records import Images

Items: TypeAlias = Sequence[Mapping[str, Any]]

SCHEMES: Mapping[str, Sequence[str]] = {"https": ("https",), "http": ("https", "http"), "none": ()}
# Of one request, in bytes, as a body may have.
MOST_FETCHED = 64 * 1024 * 1024
AT_ONCE = 8
# As many as OpenAI takes.
MOST_IMAGES = 500


def web() -> Web:
    """What may be fetched, by the settings."""
    return Web(SCHEMES[settings.RESPONSES_IMAGE_URLS], settings.RESPONSES_IMAGE_HOSTS)


def fetched(found: Images) -> Images:
    """Those that have to be kept beside their items, which only name their addresses."""
    return {key: data for key, data in found.items() if not picture.is_data(key[1])}


async def new(project: str, given: Items, items: Items, param: str = "input") -> Images:
    """The images of items that a client gives, each seen to be one. Those of an item of the store, named by its id, are as they were kept.

    `items` are those that were `given`, with references resolved. Raises Invalid with the path of the URL.
    """
    shown = await long_work.apart(project, len(items) > long_work.LONG_ITEMS, partial(_listed, items))
    if not shown:
        return {}
    stored = [raw["id"] for raw in given if "id" in raw]
    kept = await store.of_items(project, stored) if stored else {}
    wanted = {image.url: image for image in reversed(shown) if (image.item, image.url) not in kept}
    if len(wanted) > MOST_IMAGES:
        message = f"Invalid '{param}': too many images. Expected at most {MOST_IMAGES} images, but got {len(wanted)}."
        raise Invalid(message, param=param, code="array_above_max_length")
    found = await _all(project, wanted, param)
    return {(image.item, image.url): kept.get((image.item, image.url)) or found[image.url] for image in shown}


async def before(keys: Sequence[int], items: Items) -> Images:
    """The images of the history. One that is there no more is not among them."""
    shown = await asyncio.to_thread(_listed, items) if len(items) > long_work.LONG_ITEMS else _listed(items)
    kept = await store.of_keys(keys) if any(not picture.is_data(image.url) for image in shown) else {}
    clear = [image for image in shown if picture.is_data(image.url)]
    return {**kept, **await asyncio.to_thread(_decoded, clear)}


def _listed(items: Items) -> list[Image]:
    return list(images(items))


def _decoded(shown: Sequence[Image]) -> Images:
    return {(image.item, image.url): picture.data(image.url) for image in shown}


async def _all(project: str, wanted: Mapping[str, Image], param: str) -> Mapping[str, bytes]:
    """The bytes of every URL. The first failure ends the others. Raises Invalid, Busy."""
    room, tasks = _Room(), dict[str, asyncio.Task[bytes]]()
    try:
        async with asyncio.TaskGroup() as group:
            for url, image in wanted.items():
                tasks[url] = group.create_task(_one(project, image, param, room))
    except* (Invalid, Busy) as errors:
        raise errors.exceptions[0] from None
    return {url: task.result() for url, task in tasks.items()}


async def _one(project: str, image: Image, param: str, room: _Room) -> bytes:
    where = f"{param}{image.path.removeprefix('input')}.image_url"
    try:
        data = await (asyncio.to_thread(picture.data, image.url) if picture.is_data(image.url) else room.fetch(image.url))
        await decoder.check(project, data)
    except BadImage as error:
        raise Invalid(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    except DecoderBusy as error:
        raise Busy(str(error)) from error
    return data


class _Room:
    """What one request may fetch: so many at once, so many bytes in all."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(AT_ONCE)
        self._left = MOST_FETCHED

    async def fetch(self, url: str) -> bytes:
        async with self._turn:
            if self._left <= 0:
                raise BadImage(f"The images of one request have more than {MOST_FETCHED} bytes.", "image_file_too_large")
            data = await web().fetch(url)
            self._left -= len(data)
            return data
