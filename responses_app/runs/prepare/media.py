"""Images and files of a context: the bytes and texts that the store has, and the records of uploaded files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final, TypeAlias

from django.conf import settings

from responses_app.dialects.content import ImageReference, iter_images
from responses_app.errors import InvalidRequest
from responses_app.images import decode
from responses_app.images.decode import InvalidImage
from responses_app.images.fetch import ImageFetcher
from responses_app.models import File
from responses_app.runs.ids import is_id
from responses_app.runs.prepare import long_work
from responses_app.store.content import images as store
from responses_app.store.content.images import ImageBytes
from responses_app.store.files import files

Items: TypeAlias = Sequence[Mapping[str, Any]]
# Bytes and number of pixels by reference without a path. An image that cannot be decoded is an error only if the prompt shows it.
DecodedImages: TypeAlias = Mapping[ImageReference, tuple[bytes, int] | InvalidImage]

# The limit of the OpenAI API.
MAX_IMAGES = 500
MAX_FILES = 50
FILE: Final = "input_file"
SOURCES: Final = ("file_id", "file_data", "file_url")
# Key of a text among the images of an item; no URL of an image begins so.
KEY_PREFIX: Final = "text:"
SCHEMES: Final[Mapping[str, Sequence[str]]] = {"https": ("https",), "http": ("https", "http"), "none": ()}


def image_fetcher() -> ImageFetcher:
    """Return the fetcher with the schemes and hosts that the settings allow."""
    return ImageFetcher(SCHEMES[settings.RESPONSES_IMAGE_URLS], settings.RESPONSES_IMAGE_HOSTS)


def key_of(image: ImageReference) -> ImageReference:
    """Return the key of an image among the decoded images."""
    return replace(image, path="")


@dataclass(frozen=True, slots=True)
class Document:
    """Part `input_file` of an item, with the JSON path as in `input[0].content[1]`."""

    item: str
    path: str
    place: str
    part: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """Key of the text among the images of the context."""
        return self.item, f"{KEY_PREFIX}{self.place}"

    @property
    def source(self) -> str:
        """Name of the field with the file."""
        return next(name for name in SOURCES if name in self.part)


@dataclass(frozen=True, slots=True)
class NewMedia:
    """Images and files of the items that a client sends, in the request parameter `param`.

    `stored` are the bytes and texts that the store has of these. `files` are the records of uploaded files by id.
    """

    images: Sequence[ImageReference]
    documents: Sequence[Document]
    stored: ImageBytes
    files: Mapping[str, File]
    param: str

    @property
    def missing_images(self) -> Mapping[str, ImageReference]:
        """First image of each URL whose bytes are not stored."""
        return {image.url: image for image in reversed(self.images) if (image.item, image.url) not in self.stored}


async def load_new(project: str, sent_items: Items, items: Items, param: str = "input") -> NewMedia | None:
    """Load the rows for the items that a client sends; None without images and files. Those of stored items come from the store.

    `items` are the `sent_items` with resolved references. Raises InvalidRequest for too many images or files.
    """
    shown, documents = await long_work.apart(project, long_work.has_many(items), partial(_list_media, items))
    if not shown and not documents:
        return None
    uids = [raw["id"] for raw in sent_items if "id" in raw]
    stored = await store.by_ids(project, uids) if uids else {}
    missing = [document for document in documents if document.key not in stored]
    media = NewMedia(shown, documents, stored, {}, param)
    for kind, count, most in (("files", len(missing), MAX_FILES), ("images", len(media.missing_images), MAX_IMAGES)):
        if count > most:
            message = f"Invalid '{param}': too many {kind}. Expected at most {most} {kind}, but got {count}."
            raise InvalidRequest(message, param=param, code="array_above_max_length")
    file_ids = {uid for uid in [*media.missing_images, *(str(one.part.get("file_id")) for one in missing)] if is_id(uid)}
    records = await files.find_all(project, file_ids, datetime.now(UTC)) if file_ids else {}
    return NewMedia(shown, documents, stored, records, param)


async def load_past(keys: Sequence[int], items: Items) -> tuple[ImageBytes, Sequence[ImageReference]]:
    """Load the images and the texts of files of stored items, by the keys of these. Return also the data URLs, to be decoded.

    Deleted images are left out.
    """
    shown, documents = await asyncio.to_thread(_list_media, items) if long_work.has_many(items) else _list_media(items)
    data_urls = [image for image in shown if decode.is_data_url(image.url)]
    is_stored = len(data_urls) < len(shown) or bool(documents)
    return await store.by_keys(keys) if is_stored else {}, data_urls


def _list_media(items: Items) -> tuple[list[ImageReference], list[Document]]:
    return list(iter_images(items)), list(iter_documents(items))


def iter_documents(items: Items) -> Iterator[Document]:
    """Yield all files of a context."""
    for index, item in enumerate(items):
        key = "output" if "output" in item else "content"
        content = item.get(key)
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, Mapping) and part.get("type") == FILE:
                place = f"{key}[{at}]"
                yield Document(str(item.get("id")), f"input[{index}].{place}", place, part)
