"""Views of the Files API: upload, list, retrieve, delete, content."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

import orjson
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import rate_limits
from responses_app.api import pagination, query
from responses_app.api.http import json_response
from responses_app.api.storage_share import call_in_thread
from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import MAX_FILENAME_CHARS, ApiKey, File, FilePurpose
from responses_app.protocol.ids import PREFIXES
from responses_app.runs.ids import is_id, new_id
from responses_app.store.files import files, quota, storage
from responses_app.store.files.pending import part_path, pending
from responses_app.validation.errors import invalid_value
from responses_app.wire.file_download import download_response
from responses_app.wire.multipart import FileForm, Readable, body_stream, parse_form

FormFields: TypeAlias = Mapping[str, str]
MAX_PAGE: Final = 10_000
MIN_EXPIRY_S, MAX_EXPIRY_S = 3600, 30 * 24 * 3600
ANCHOR, SECONDS = "expires_after[anchor]", "expires_after[seconds]"
FIELDS: Final = frozenset({"purpose", ANCHOR, SECONDS})
INTEGER: Final = re.compile(r"[0-9]{1,12}")


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/files."""
    async with rate_limits.admit(key) as ticket:
        row = await receive(request, key.project, FIELDS)
        await ticket.release()
    return json_response(_shape(row), headers=ticket.headers)


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/files."""
    limit = query.integer(request, "limit", MAX_PAGE, least=1, most=MAX_PAGE)
    newest_first = query.choice(request, "order", "desc", ("asc", "desc")) == "desc"
    purpose = query.choice(request, "purpose", "", tuple(FilePurpose.values)) or None
    after = query.cursor(request)
    page = None
    if after is None or is_id(after):
        page = await files.page(key.project, now(), purpose=purpose, limit=limit, newest_first=newest_first, after=after)
    if page is None:
        raise NotFound(f"No file found with id '{after}'", param="after")
    uids = [row.uid for row in page.rows]
    bodies = [orjson.dumps(_shape(row)) for row in page.rows]
    return pagination.list_object(bodies, uids[0] if uids else None, uids[-1] if uids else None, more=page.more)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/files/{id}."""
    del request
    return json_response(_shape(await find(key.project, uid)))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/files/{id}."""
    del request
    await call_in_thread(key.project, files.delete, await find(key.project, uid))
    return json_response({"id": uid, "object": "file", "deleted": True})


async def content(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/files/{id}/content: the bytes, always as a download."""
    del request
    row = await find(key.project, uid)
    return await file_response(row.storage_name, row.filename, row.bytes, row.uid)


async def file_response(storage_name: str, filename: str, size: int, uid: str) -> HttpResponseBase:
    """Return a response that streams the bytes of the file `uid`. Raises NotFound if the storage lost the file."""
    try:
        return await download_response(storage_name, filename, size)
    except FileNotFoundError:
        raise _missing(uid) from None


async def find(project: str, uid: str) -> File:
    """Return the file `uid` of the project. Raises NotFound."""
    row = await files.find(project, uid, now()) if is_id(uid) else None
    if row is None:
        raise _missing(uid)
    return row


async def receive(
    request: HttpRequest, project: str, known: Collection[str], translate: Callable[[FormFields], FormFields] = dict
) -> File:
    """Store the file of a form and return the row. Raises ApiError, WriteRefused.

    `known` are the names of the fields of the form besides the file; `translate` returns these under the names in `FIELDS`.
    """
    content_type = request.headers.get("Content-Type", "")
    return await call_in_thread(project, _receive, project, content_type, body_stream(request), known, translate)


def _receive(
    project: str,
    content_type: str,
    body: Readable,
    known: Collection[str],
    translate: Callable[[FormFields], FormFields],
) -> File:
    """Parse the form, store the file and insert the row. Raises ApiError, WriteRefused."""
    quota.check_disk()
    quota.check_files(project, 0)
    uid = new_id(PREFIXES["file"])
    with pending(uid):
        path = part_path(uid)
        form = parse_form(content_type, body, path, known, settings.RESPONSES_FILE_MIB * quota.MIB)
        row = _row(uid, project, replace(form, fields=translate(form.fields)))
        quota.check_disk()
        quota.check_files(project, row.bytes)
        storage.save(path, uid)
        # Uploads at the same time have passed the check too. This one counts again, in turn.
        files.create(row)
    return row


def _row(uid: str, project: str, form: FileForm) -> File:
    """Return the row of a new file. Raises InvalidRequest."""
    check_filename(form.filename)
    if not form.size:
        raise InvalidRequest("Invalid 'file': the file is empty.", param="file", code="invalid_value")
    created_at = now()
    return File(
        uid=uid,
        project=project,
        filename=form.filename,
        purpose=_purpose(form),
        bytes=form.size,
        created_at=created_at,
        expires_at=_expires_at(form, created_at),
        storage_name=uid,
        sha256=form.sha256,
    )


def check_filename(name: str) -> None:
    """Check the length of the name of a file. Raises InvalidRequest."""
    if len(name) > MAX_FILENAME_CHARS:
        message = f"Invalid 'file': the name of the file has {len(name)} characters. The limit is {MAX_FILENAME_CHARS}."
        raise InvalidRequest(message, param="file", code="string_above_max_length")


def _purpose(form: FileForm) -> str:
    purpose = form.fields.get("purpose")
    if purpose is None:
        raise InvalidRequest("Missing required parameter: 'purpose'.", param="purpose", code="missing_required_parameter")
    if purpose not in FilePurpose.values:
        raise invalid_value("purpose", purpose, FilePurpose.values)
    return purpose


def _expires_at(form: FileForm, created_at: datetime) -> datetime | None:
    anchor, seconds = form.fields.get(ANCHOR), form.fields.get(SECONDS)
    if anchor is None and seconds is None:
        return None
    for name, value in ((ANCHOR, anchor), (SECONDS, seconds)):
        if value is None:
            where = name.replace("[", ".").rstrip("]")
            raise InvalidRequest(f"Missing required parameter: '{where}'.", param=where, code="missing_required_parameter")
    if anchor != "created_at":
        raise invalid_value("expires_after.anchor", anchor, "'created_at'")
    if not INTEGER.fullmatch(str(seconds)) or not MIN_EXPIRY_S <= int(str(seconds)) <= MAX_EXPIRY_S:
        message = f"Invalid 'expires_after.seconds': expected an integer from {MIN_EXPIRY_S} to {MAX_EXPIRY_S}."
        raise InvalidRequest(message, param="expires_after.seconds", code="invalid_value")
    return created_at + timedelta(seconds=int(str(seconds)))


def _missing(uid: str) -> NotFound:
    return NotFound(f"No such File object: {uid}", param="id")


def _shape(row: File) -> dict[str, Any]:
    return {
        "id": row.uid,
        "object": "file",
        "bytes": row.bytes,
        "created_at": int(row.created_at.timestamp()),
        "expires_at": int(row.expires_at.timestamp()) if row.expires_at is not None else None,
        "filename": row.filename,
        "purpose": row.purpose,
        "status": row.status,
        "status_details": row.status_details or None,
    }


def now() -> datetime:
    """Return the current time in whole seconds, as the API shows times."""
    return datetime.fromtimestamp(int(time.time()), UTC)
