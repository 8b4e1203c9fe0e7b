"""Documents of a context: the text of `input_file` parts, extracted once and stored beside the item as images are."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from urllib.parse import unquote, urlsplit

from django.conf import settings

from responses_app.dialects.base import UnsupportedInput
from responses_app.errors import MAX_ID, InvalidRequest, RateLimited, shorten
from responses_app.extraction.errors import INVALID, ExtractionError, ExtractorBusy, invalid
from responses_app.extraction.limits import MAX_CHARS, MAX_FILE_BYTES, MIB
from responses_app.models import File
from responses_app.outbound_http.download import DownloadFailed, download
from responses_app.runs.ids import is_id
from responses_app.store.content.images import ImageBytes
from responses_app.store.files import files, storage
from responses_app.tools.file_text import extract_file_text

Item: TypeAlias = Mapping[str, Any]

FILE: Final = "input_file"
SOURCES: Final = ("file_id", "file_data", "file_url")
# Key of a text among the images of an item; no URL of an image begins so.
KEY_PREFIX: Final = "text:"
MAX_FILES: Final = 50
# Bytes of all files, and characters of all texts, of one request.
MAX_BYTES: Final = MAX_FILE_BYTES
DEFAULT_NAME: Final = "file"
DIGEST_CHARS: Final = 16


@dataclass(frozen=True, slots=True)
class Document:
    """Part `input_file` of an item, with the JSON path as in `input[0].content[1]`."""

    item: str
    path: str
    place: str
    part: Item

    @property
    def key(self) -> tuple[str, str]:
        """Key of the text among the images of the context."""
        return self.item, f"{KEY_PREFIX}{self.place}"

    @property
    def source(self) -> str:
        """Name of the field with the file."""
        return next(name for name in SOURCES if name in self.part)


def iter_documents(items: Sequence[Item]) -> Iterator[Document]:
    """Yield all files of a context."""
    for index, item in enumerate(items):
        key = "output" if "output" in item else "content"
        content = item.get(key)
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, Mapping) and part.get("type") == FILE:
                place = f"{key}[{at}]"
                yield Document(str(item.get("id")), f"input[{index}].{place}", place, part)


async def new_texts(project: str, items: Sequence[Item], stored: ImageBytes, param: str) -> ImageBytes:
    """Extract the texts of the files that a client sends; `stored` has those of stored items. Raises InvalidRequest, RateLimited."""
    shown = list(iter_documents(items))
    wanted = [document for document in shown if document.key not in stored]
    if len(wanted) > MAX_FILES:
        message = f"Invalid '{param}': too many files. Expected at most {MAX_FILES} files, but got {len(wanted)}."
        raise InvalidRequest(message, param=param, code="array_above_max_length")
    found = {document.key: stored[document.key] for document in shown if document.key in stored}
    budget = _FileBudget()
    for document in wanted:
        found[document.key] = (await _text(project, document, param, budget)).encode()
    return found


def with_texts(items: Sequence[Item], texts: ImageBytes) -> Sequence[Item]:
    """Return the items with each file replaced by its text. Raises UnsupportedInput for a text that is not stored."""
    blocks: dict[int, dict[str, str]] = {}
    for document in iter_documents(items):
        text = texts.get(document.key)
        if text is None:
            raise UnsupportedInput("The text of the file is not stored any more.", document.path, "file_not_found")
        index = int(document.path[len("input[") :].partition("]")[0])
        blocks.setdefault(index, {})[document.place] = text.decode()
    return (
        [_with_blocks(item, blocks[index]) if index in blocks else item for index, item in enumerate(items)]
        if blocks
        else items
    )


def _with_blocks(item: Item, blocks: Mapping[str, str]) -> Item:
    key = "output" if "output" in item else "content"
    parts = [
        {"type": "input_text", "text": blocks[f"{key}[{at}]"]} if f"{key}[{at}]" in blocks else part
        for at, part in enumerate(item[key])
    ]
    return {**item, key: parts}


@dataclass(slots=True)
class _FileBudget:
    """Bytes and characters that the files of a request may still have."""

    size: int = MAX_BYTES
    chars: int = MAX_CHARS

    def take(self, size: int, chars: int) -> None:
        """Count a file. Raises ExtractionError."""
        self.size -= size
        self.chars -= chars
        if self.size < 0 or self.chars < 0:
            raise invalid(f"The files of a request may have {MAX_BYTES // MIB} MiB and {MAX_CHARS:,} characters together.")


async def _text(project: str, document: Document, param: str, budget: _FileBudget) -> str:
    """Load a file and return the text as the model reads it. Raises InvalidRequest, RateLimited."""
    where = f"{param}{document.path.removeprefix('input')}.{document.source}"
    try:
        name, data = await _load(project, document, budget.size)
        budget.take(len(data), 0)
        extracted = await extract_file_text(project, data, name)
        budget.take(0, len(extracted.text))
    except ExtractionError as error:
        raise InvalidRequest(f"Invalid '{where}'. {error}", param=where, code=error.code) from error
    except DownloadFailed as error:
        message = f"Invalid '{where}'. The file could not be downloaded: {error}."
        raise InvalidRequest(message, param=where, code=INVALID) from error
    except ExtractorBusy as error:
        raise RateLimited(str(error)) from error
    return text_block(name, extracted.text, extracted.is_cut)


def text_block(name: str, text: str, is_cut: bool) -> str:
    """Return the text of a file between delimiters with the name. A text cannot contain the delimiter, which has its hash."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
    notice = f"\n[The text was cut after {len(text):,} characters.]" if is_cut else ""
    return f"<file {digest} name={json.dumps(name, ensure_ascii=False)}>\n{text.rstrip()}{notice}\n</file {digest}>"


async def _load(project: str, document: Document, limit: int) -> tuple[str, bytes]:
    """Return the name and the bytes of a file. Raises ExtractionError, DownloadFailed."""
    part, source = document.part, document.source
    name = part.get("filename")
    if source == "file_id":
        row = await find_file(project, part["file_id"])
        return str(name or row.filename), await read_file(row, limit)
    if source == "file_url":
        url = part["file_url"]
        found = await download(url, limit, settings.RESPONSES_IMAGE_HOSTS)
        return str(name or unquote(urlsplit(url).path).rpartition("/")[2] or DEFAULT_NAME), found
    return str(name or DEFAULT_NAME), await asyncio.to_thread(_decode, part["file_data"])


async def find_file(project: str, uid: str) -> File:
    """Return an uploaded file of the project. Raises ExtractionError."""
    row = await files.find(project, uid, datetime.now(UTC)) if is_id(uid) else None
    if row is None:
        raise ExtractionError(f"No such File object: {shorten(uid, MAX_ID)}", "file_not_found")
    return row


async def read_file(row: File, limit: int) -> bytes:
    """Read the bytes of an uploaded file. Raises ExtractionError for a file of more than `limit` bytes."""
    if row.bytes > limit:
        raise invalid(f"The file has {row.bytes:,} bytes. The limit is {limit:,} bytes.")
    try:
        return await asyncio.to_thread(storage.read, row.storage_name, limit)
    except FileNotFoundError:
        raise ExtractionError(f"No such File object: {row.uid}", "file_not_found") from None


def _decode(url: str) -> bytes:
    try:
        return b64decode(url.partition(",")[2].encode("ascii").translate(None, b" \t\n\r\v\f"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("The data URL has an invalid base64-encoded value.") from error
