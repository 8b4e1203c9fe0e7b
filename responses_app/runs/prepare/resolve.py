"""Stage `resolve`: fetches and decodes bytes, and is the only stage that does: images, files, pictures; also converts grammars."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote, urlsplit

from django.conf import settings

from responses_app.dialects.content import ImageReference
from responses_app.errors import MAX_ID, InvalidRequest, RateLimited, ServiceUnavailable, shorten
from responses_app.extraction.errors import INVALID, ExtractionError, ExtractorBusy, ExtractorUnavailable, invalid
from responses_app.extraction.limits import MAX_CHARS, MAX_FILE_BYTES, MIB
from responses_app.images import decode, decode_pool
from responses_app.images.decode import InvalidImage
from responses_app.images.decode_pool import DecoderBusy
from responses_app.models import File
from responses_app.outbound_http import download
from responses_app.runs.ids import is_id
from responses_app.runs.prepare.grammars import convert_grammars
from responses_app.runs.prepare.media import DecodedImages, Document, Items, NewMedia, image_fetcher, key_of
from responses_app.runs.prepare.prompt_context import PromptContext
from responses_app.store.content.images import ImageBytes
from responses_app.store.files import storage
from responses_app.tools.file_text import extract_file_text
from responses_app.tools.functions.as_functions import custom_tool_formats
from responses_app.tools.outputs.output_limit import PromptPictures, choose_pictures

# Bytes that one request may fetch: the same as the limit of a body.
MAX_FETCHED_BYTES = 64 * 1024 * 1024
MAX_PARALLEL_FETCHES = 8
# Longest side of an image with `detail: low` in pixels, as at OpenAI.
MAX_LOW_DETAIL_SIDE = 512
DEFAULT_NAME: Final = "file"
DIGEST_CHARS: Final = 16


async def resolve(context: PromptContext) -> PromptContext:
    """Fetch and decode all images and files that the items of the prompt show. Raises ApiError."""
    request, images = context.create_request, context.images
    if context.new_media is not None:
        images = {**images, **await resolve_new(request.project, context.new_media)}
    if context.data_urls:
        images = {**await asyncio.to_thread(_decoded, context.data_urls), **images}
    pictures = await _choose_pictures(context)
    references = [*context.references, *(ImageReference(item, "", url) for item, url in pictures.images)]
    formats = custom_tool_formats(request.tools, context.items)
    # Most requests are texts: a copy of the context costs more than these looks.
    if images is context.images and not (references or formats or context.pictures.shown):
        return context
    return replace(
        context,
        images=images,
        data_urls=(),
        new_media=None,
        pictures=pictures,
        decoded=await decode_images(request.project, references, {**images, **pictures.images}, context.decoded),
        grammars=await convert_grammars(request.project, formats),
    )


def storable(images: ImageBytes, items: Items) -> ImageBytes:
    """Return the images of `items` that must be stored beside these: items contain only URLs."""
    ids = {item["id"] for item in items}
    return {key: data for key, data in images.items() if key[0] in ids and not decode.is_data_url(key[1])}


def _decoded(shown: Sequence[ImageReference]) -> ImageBytes:
    return {(image.item, image.url): decode.decode_data_url(image.url) for image in shown}


async def _choose_pictures(context: PromptContext) -> PromptPictures:
    """Choose the pictures in outputs of server tools that the prompt shows; none for a model without vision. Raises RateLimited."""
    if not context.dialect.supports_images:
        return PromptPictures()
    try:
        return await choose_pictures(context.create_request.project, context.items)
    except DecoderBusy as error:
        raise RateLimited(str(error)) from error


async def resolve_new(project: str, media: NewMedia) -> ImageBytes:
    """Fetch and check the images of `media`, and extract the texts of the files. Raises InvalidRequest with the path, RateLimited."""
    texts = await extract_texts(project, media) if media.documents else {}
    bytes_by_url = await _load_images(project, media)
    keys = [(image.item, image.url) for image in media.images]
    return {**texts, **{key: media.stored.get(key) or bytes_by_url[key[1]] for key in keys}}


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


async def _load_images(project: str, media: NewMedia) -> Mapping[str, bytes]:
    """Load the missing images side by side. The first failure cancels the others. Raises InvalidRequest, RateLimited."""
    budget, tasks = _FetchBudget(), dict[str, asyncio.Task[bytes]]()
    try:
        async with asyncio.TaskGroup() as group:
            for url, image in media.missing_images.items():
                tasks[url] = group.create_task(_load_image(project, image, media, budget))
    # No `except*`: Python 3.11.2 wraps what is raised there in a group.
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {url: task.result() for url, task in tasks.items()}


async def _load_image(project: str, image: ImageReference, media: NewMedia, budget: _FetchBudget) -> bytes:
    """Load the bytes of a data URL, an uploaded file or a web address. Raises InvalidRequest, RateLimited."""
    where = f"{media.param}{image.path.removeprefix('input')}.{'file_id' if is_id(image.url) else 'image_url'}"
    try:
        if decode.is_data_url(image.url):
            data = await asyncio.to_thread(decode.decode_data_url, image.url)
        elif is_id(image.url):
            data = await read_file(media.files, image.url, decode.MAX_BYTES)
        else:
            data = await budget.fetch(image.url)
        await decode_pool.check(project, data)
    except (InvalidImage, ExtractionError) as error:
        raise InvalidRequest(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    except DecoderBusy as error:
        raise RateLimited(str(error)) from error
    return data


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
            data = await image_fetcher().fetch(url)
            self._left -= len(data)
            return data


async def extract_texts(project: str, media: NewMedia) -> ImageBytes:
    """Extract the texts of the files of `media`; those of stored items are there already. Raises InvalidRequest, RateLimited."""
    texts = {document.key: media.stored[document.key] for document in media.documents if document.key in media.stored}
    budget = _FileBudget()
    for document in media.documents:
        if document.key not in media.stored:
            texts[document.key] = (await _text(project, document, media, budget)).encode()
    return texts


@dataclass(slots=True)
class _FileBudget:
    """Bytes and characters that the files of a request may still have."""

    size: int = MAX_FILE_BYTES
    chars: int = MAX_CHARS

    def take(self, size: int, chars: int) -> None:
        """Count a file. Raises ExtractionError."""
        self.size -= size
        self.chars -= chars
        if self.size < 0 or self.chars < 0:
            raise invalid(f"The files of a request may have {MAX_FILE_BYTES // MIB} MiB and {MAX_CHARS:,} characters together.")


async def _text(project: str, document: Document, media: NewMedia, budget: _FileBudget) -> str:
    """Load a file and return the text as the model reads it. Raises InvalidRequest, RateLimited, ServiceUnavailable."""
    where = f"{media.param}{document.path.removeprefix('input')}.{document.source}"
    try:
        name, data = await _load_file(document, media.files, budget.size)
        budget.take(len(data), 0)
        extracted = await extract_file_text(project, data, name)
        budget.take(0, len(extracted.text))
    except ExtractionError as error:
        raise InvalidRequest(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    except download.DownloadFailed as error:
        message = f"Invalid '{where}'. The file could not be downloaded: {error}."
        raise InvalidRequest(message, param=where, code=INVALID) from error
    except ExtractorUnavailable as error:
        raise ServiceUnavailable(str(error)) from error
    except ExtractorBusy as error:
        raise RateLimited(str(error)) from error
    return text_block(name, extracted.text, extracted.is_cut)


def text_block(name: str, text: str, is_cut: bool) -> str:
    """Return the text of a file between delimiters with the name. A text cannot contain the delimiter, which has its hash."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
    notice = f"\n[The text was cut after {len(text):,} characters.]" if is_cut else ""
    return f"<file {digest} name={json.dumps(name, ensure_ascii=False)}>\n{text.rstrip()}{notice}\n</file {digest}>"


async def _load_file(document: Document, files: Mapping[str, File], limit: int) -> tuple[str, bytes]:
    """Return the name and the bytes of a file. Raises ExtractionError, DownloadFailed."""
    part, source = document.part, document.source
    name = part.get("filename")
    if source == "file_id":
        data = await read_file(files, part["file_id"], limit)
        return str(name or files[part["file_id"]].filename), data
    if source == "file_url":
        url = part["file_url"]
        downloaded = await download.download(url, limit, settings.RESPONSES_IMAGE_HOSTS)
        return str(name or unquote(urlsplit(url).path).rpartition("/")[2] or DEFAULT_NAME), downloaded
    return str(name or DEFAULT_NAME), await asyncio.to_thread(_file_data, part["file_data"])


async def read_file(files: Mapping[str, File], uid: str, limit: int) -> bytes:
    """Read the bytes of the uploaded file `uid`; `files` are the records by id.

    Raises ExtractionError for a file that is not in `files`, and for a file of more than `limit` bytes.
    """
    row = files.get(uid)
    if row is None:
        raise ExtractionError(f"No such File object: {shorten(uid, MAX_ID)}", "file_not_found")
    if row.bytes > limit:
        raise invalid(f"The file has {row.bytes:,} bytes. The limit is {limit:,} bytes.")
    try:
        return await storage.read_async(row.storage_name, limit)
    except FileNotFoundError:
        raise ExtractionError(f"No such File object: {row.uid}", "file_not_found") from None


def _file_data(url: str) -> bytes:
    try:
        return b64decode(url.partition(",")[2].encode("ascii").translate(None, b" \t\n\r\v\f"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("The data URL has an invalid base64-encoded value.") from error
