"""Views of the files of containers: upload, list, read, download, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from responses_app.access import rate_limits
from responses_app.api import pagination, query
from responses_app.api.http import json_response
from responses_app.api.storage_share import call_in_thread
from responses_app.api.views.containers import find, not_found
from responses_app.api.views.files import check_filename, file_response
from responses_app.errors import InvalidRequest, NotFound, PayloadTooLarge, unknown_file
from responses_app.models import ApiKey, Container, ContainerFile, File, FileSource
from responses_app.runs.ids import is_id, new_id
from responses_app.store.files import container_files, files, quota
from responses_app.store.files.pending import part_path
from responses_app.tools.code_interpreter import sandboxes
from responses_app.validation import json_body
from responses_app.validation.errors import shorten, wrong_type
from responses_app.wire.multipart import Readable, body_stream, parse_form

KNOWN = frozenset({"limit", "order", "after"})
FIELDS = frozenset({"file_id"})
MAX_JSON_BYTES = 64 * 1024


async def index(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/containers/{id}/files."""
    query.check_known(request, KNOWN)
    row = await find(key.project, uid)
    return await pagination.page_of_rows(request, row.files.select_related("container"), shape)


async def create(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/containers/{id}/files: a form with the part `file`, or a form or JSON with `file_id`."""
    container = await find(key.project, uid)
    async with rate_limits.admit(key) as ticket:
        try:
            row = await _add(request, key, container)
        except Container.DoesNotExist:
            # Deleted since.
            raise not_found(uid) from None
        try:
            await sandboxes.put_file(container, row)
        except sandboxes.FileRefused as error:
            await call_in_thread(key.project, container_files.delete, row)
            raise InvalidRequest(str(error), param="file", code="invalid_value") from error
        await ticket.release()
    return json_response(shape(row), headers=ticket.headers)


async def content(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """GET /v1/containers/{id}/files/{file_id}/content: the bytes, always as a download."""
    del request
    row = await _find_file(key.project, uid, file)
    return await file_response(row.storage_name, row.filename, row.bytes, row.uid)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """GET /v1/containers/{id}/files/{file_id}."""
    del request
    return json_response(shape(await _find_file(key.project, uid, file)))


async def delete(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """DELETE /v1/containers/{id}/files/{file_id}."""
    del request
    row = await _find_file(key.project, uid, file)
    await sandboxes.delete_file(row.container, row.path)
    await call_in_thread(key.project, container_files.delete, row)
    return json_response({"id": file, "object": "container.file.deleted", "deleted": True})


async def _add(request: HttpRequest, key: ApiKey, container: Container) -> ContainerFile:
    """Add the file of a request to the storage and the rows. Raises ApiError, WriteRefused, Container.DoesNotExist."""
    content_type = request.headers.get("Content-Type", "")
    if content_type.lower().startswith("multipart/"):
        row = await call_in_thread(key.project, _receive, container, content_type, body_stream(request))
    else:
        data = await asyncio.to_thread(body_stream(request).read, MAX_JSON_BYTES + 1)
        if len(data) > MAX_JSON_BYTES:
            raise PayloadTooLarge(
                f"The body of your request is larger than {MAX_JSON_BYTES // 1024} KiB; send a file as a form."
            )
        row = _file_id(json_body.parse(data or b"{}"))
    return await _copy(container, row) if isinstance(row, str) else row


def _receive(container: Container, content_type: str, body: Readable) -> ContainerFile | str:
    """Parse the form, and store the file and the row. Return the id of an uploaded file if the form has no file.

    Raises ApiError, WriteRefused, Container.DoesNotExist.
    """
    name = container_files.new_name()
    path = part_path(name)
    try:
        quota.check_disk()
        limit = settings.RESPONSES_FILE_MIB * quota.MIB
        form = parse_form(content_type, body, path, FIELDS, limit, needs_file=False)
        if not form.filename:
            return _file_id(dict(form.fields))
        check_filename(form.filename)
        target = container_files.work_path(form.filename)
        row = container_files.new_row(container, new_id("cfile_"), target, FileSource.USER, form.size, name)
        container_files.insert(row)
    finally:
        path.unlink(missing_ok=True)
    return row


def _file_id(fields: Mapping[str, object]) -> str:
    """Return the id of an uploaded file. Raises InvalidRequest."""
    for name in fields:
        if name not in FIELDS:
            raise InvalidRequest(f"Unknown parameter: '{shorten(name)}'.", param=name, code="unknown_parameter")
    file_id = fields.get("file_id")
    if file_id is None:
        message = "Missing required parameter: 'file' or 'file_id'."
        raise InvalidRequest(message, param="file", code="missing_required_parameter")
    if not isinstance(file_id, str):
        raise wrong_type("file_id", "a string", file_id)
    return file_id


async def _copy(container: Container, uid: str) -> ContainerFile:
    """Add the uploaded file `uid` to the container. Raises InvalidRequest."""
    upload = await files.find(container.project, uid, timezone.now()) if is_id(uid) else None
    try:
        if upload is not None:
            return await sync_to_async(container_files.copy_upload)(container, new_id("cfile_"), upload)
    except File.DoesNotExist:
        # Deleted since.
        pass
    raise unknown_file(uid, "file_id")


async def _find_file(project: str, uid: str, file: str) -> ContainerFile:
    row = await find(project, uid)
    stored_file = await row.files.select_related("container").filter(uid=file).afirst() if is_id(file) else None
    if stored_file is None:
        raise NotFound(f"No file with id '{file}' found in container '{uid}'.")
    return stored_file


def shape(row: ContainerFile) -> dict[str, Any]:
    """Return the container file object of the API."""
    return {
        "id": row.uid,
        "object": "container.file",
        "created_at": int(row.created_at.timestamp()),
        "bytes": row.bytes,
        "container_id": row.container.uid,
        "path": row.path,
        "source": row.source,
    }
