"""Images of a context as bytes, and texts of its files: loaded for the request, or from the store for the history."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from django.conf import settings

from responses_app.dialects.content import ImageReference, iter_images
from responses_app.errors import InvalidRequest, RateLimited
from responses_app.extraction.errors import ExtractionError
from responses_app.images import decode, decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.images.decode_pool import DecoderBusy
from responses_app.images.fetch import ImageFetcher
from responses_app.outbound_http import download
from responses_app.runs.ids import is_id
from responses_app.runs.prepare import long_work
from responses_app.runs.prepare.files import documents
from responses_app.store.content import images as store
from responses_app.store.content.images import ImageBytes

Items: TypeAlias = Sequence[Mapping[str, Any]]

SCHEMES: Mapping[str, Sequence[str]] = {"https": ("https",), "http": ("https", "http"), "none": ()}
# Bytes that one request may fetch: the same as the limit of a body.
MAX_FETCHED_BYTES = 64 * 1024 * 1024
MAX_PARALLEL_FETCHES = 8
# The limit of the OpenAI API.
MAX_IMAGES = 500


def web() -> ImageFetcher:
    """Return the fetcher with the schemes and hosts that the settings allow."""
    return ImageFetcher(SCHEMES[settings.RESPONSES_IMAGE_URLS], settings.RESPONSES_IMAGE_HOSTS)


def file_url_problem(url: str) -> str | None:
    """Return why a file may not be downloaded from `url`, by the settings of images, or None."""
    if settings.RESPONSES_IMAGE_URLS == "none":
        return "this server does not download files; send the file in 'file_data', or upload the file"
    return download.url_problem(url, settings.RESPONSES_IMAGE_HOSTS)


def fetched(found: ImageBytes) -> ImageBytes:
    """Return the images that must be stored beside the items: items contain only URLs."""
    return {key: data for key, data in found.items() if not decode.is_data_url(key[1])}


async def new_images(project: str, given: Items, items: Items, param: str = "input") -> ImageBytes:
    """Load and check the images and files of the items that a client sends. Those of stored items come from the store.

    `items` are the `given` items with resolved references. Raises InvalidRequest with the path of the URL.
    """
    shown = await long_work.apart(project, len(items) > long_work.LONG_ITEMS, partial(_listed, items))
    has_files = any(True for _ in documents.iter_documents(items))
    if not shown and not has_files:
        return {}
    stored = [raw["id"] for raw in given if "id" in raw]
    stored_images = await store.by_ids(project, stored) if stored else {}
    texts = await documents.new_texts(project, items, stored_images, param) if has_files else {}
    wanted = {image.url: image for image in reversed(shown) if (image.item, image.url) not in stored_images}
    if len(wanted) > MAX_IMAGES:
        message = f"Invalid '{param}': too many images. Expected at most {MAX_IMAGES} images, but got {len(wanted)}."
        raise InvalidRequest(message, param=param, code="array_above_max_length")
    found = await _all(project, wanted, param)
    loaded = {(image.item, image.url): stored_images.get((image.item, image.url)) or found[image.url] for image in shown}
    return {**texts, **loaded}


async def previous_images(keys: Sequence[int], items: Items) -> ImageBytes:
    """Load the images and the texts of files of the history. Images that were deleted are left out."""
    shown = await asyncio.to_thread(_listed, items) if len(items) > long_work.LONG_ITEMS else _listed(items)
    is_stored = any(not decode.is_data_url(image.url) for image in shown) or any(True for _ in documents.iter_documents(items))
    stored_images = await store.by_keys(keys) if is_stored else {}
    clear = [image for image in shown if decode.is_data_url(image.url)]
    return {**stored_images, **await asyncio.to_thread(_decoded, clear)} if clear else stored_images


def _listed(items: Items) -> list[ImageReference]:
    return list(iter_images(items))


def _decoded(shown: Sequence[ImageReference]) -> ImageBytes:
    return {(image.item, image.url): decode.decode_data_url(image.url) for image in shown}


async def _all(project: str, wanted: Mapping[str, ImageReference], param: str) -> Mapping[str, bytes]:
    """Load all URLs side by side. The first failure cancels the others. Raises InvalidRequest, RateLimited."""
    budget, tasks = _FetchBudget(), dict[str, asyncio.Task[bytes]]()
    try:
        async with asyncio.TaskGroup() as group:
            for url, image in wanted.items():
                tasks[url] = group.create_task(_one(project, image, param, budget))
    # No `except*`: Python 3.11.2 wraps what is raised there in a group.
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {url: task.result() for url, task in tasks.items()}


async def _one(project: str, image: ImageReference, param: str, budget: _FetchBudget) -> bytes:
    where = f"{param}{image.path.removeprefix('input')}.{'file_id' if is_id(image.url) else 'image_url'}"
    try:
        data = await _load(project, image.url, budget)
        await decode_pool.check(project, data)
    except InvalidImage as error:
        raise InvalidRequest(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    except ExtractionError as error:
        raise InvalidRequest(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    except DecoderBusy as error:
        raise RateLimited(str(error)) from error
    return data


async def _load(project: str, url: str, budget: _FetchBudget) -> bytes:
    """Load the bytes of a data URL, an uploaded file or a web address. Raises InvalidImage, ExtractionError."""
    if decode.is_data_url(url):
        return await asyncio.to_thread(decode.decode_data_url, url)
    if is_id(url):
        return await documents.read_file(await documents.find_file(project, url), decode.MAX_BYTES)
    return await budget.fetch(url)


class _FetchBudget:
    """Fetch budget of a request: MAX_PARALLEL_FETCHES fetches side by side, MAX_FETCHED_BYTES in total."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore(MAX_PARALLEL_FETCHES)
        self._left = MAX_FETCHED_BYTES

    async def fetch(self, url: str) -> bytes:
        async with self._turn:
            if self._left <= 0:
                raise InvalidImage(
                    f"The images of one request have more than {MAX_FETCHED_BYTES} bytes.", "image_file_too_large"
                )
            data = await web().fetch(url)
            self._left -= len(data)
            return data
