"""Texts of the files that a client sends, extracted once and stored beside the item as images are."""

from __future__ import annotations

import asyncio
import binascii
import hashlib
import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote, urlsplit

from django.conf import settings

from responses_app.errors import MAX_ID, InvalidRequest, RateLimited, shorten
from responses_app.extraction.errors import INVALID, ExtractionError, ExtractorBusy, invalid
from responses_app.extraction.limits import MAX_CHARS, MAX_FILE_BYTES, MIB
from responses_app.models import File
from responses_app.outbound_http.download import DownloadFailed, download
from responses_app.runs.prepare.media.documents import Document
from responses_app.runs.prepare.media.rows import NewMedia
from responses_app.store.content.images import ImageBytes
from responses_app.store.files import storage
from responses_app.tools.file_text import extract_file_text

# Bytes of all files, and characters of all texts, of one request.
MAX_BYTES: Final = MAX_FILE_BYTES
DEFAULT_NAME: Final = "file"
DIGEST_CHARS: Final = 16


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

    size: int = MAX_BYTES
    chars: int = MAX_CHARS

    def take(self, size: int, chars: int) -> None:
        """Count a file. Raises ExtractionError."""
        self.size -= size
        self.chars -= chars
        if self.size < 0 or self.chars < 0:
            raise invalid(f"The files of a request may have {MAX_BYTES // MIB} MiB and {MAX_CHARS:,} characters together.")


async def _text(project: str, document: Document, media: NewMedia, budget: _FileBudget) -> str:
    """Load a file and return the text as the model reads it. Raises InvalidRequest, RateLimited."""
    where = f"{media.param}{document.path.removeprefix('input')}.{document.source}"
    try:
        name, data = await _load(document, media.files, budget.size)
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


async def _load(document: Document, files: Mapping[str, File], limit: int) -> tuple[str, bytes]:
    """Return the name and the bytes of a file. Raises ExtractionError, DownloadFailed."""
    part, source = document.part, document.source
    name = part.get("filename")
    if source == "file_id":
        data = await read_file(files, part["file_id"], limit)
        return str(name or files[part["file_id"]].filename), data
    if source == "file_url":
        url = part["file_url"]
        downloaded = await download(url, limit, settings.RESPONSES_IMAGE_HOSTS)
        return str(name or unquote(urlsplit(url).path).rpartition("/")[2] or DEFAULT_NAME), downloaded
    return str(name or DEFAULT_NAME), await asyncio.to_thread(_decode, part["file_data"])


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
        return await asyncio.to_thread(storage.read, row.storage_name, limit)
    except FileNotFoundError:
        raise ExtractionError(f"No such File object: {row.uid}", "file_not_found") from None


def _decode(url: str) -> bytes:
    try:
        return b64decode(url.partition(",")[2].encode("ascii").translate(None, b" \t\n\r\v\f"), validate=True)
    except (binascii.Error, ValueError) as error:
        raise invalid("The data URL has an invalid base64-encoded value.") from error
