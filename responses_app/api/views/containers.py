"""Views of containers: create, read, list, delete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from responses_app.access import rate_limits
from responses_app.api import pagination, query
from responses_app.api.http import json_response
from responses_app.api.storage_share import call_in_thread
from responses_app.errors import NotFound, unknown_file
from responses_app.models import ApiKey, Container, File
from responses_app.runs.ids import is_id, new_id
from responses_app.schemas.parsing.containers import ContainerRequest, parse_container
from responses_app.store.files import container_files, containers, files
from responses_app.tools.code_interpreter import sandboxes
from responses_app.wire import request_body

KNOWN = frozenset({"limit", "order", "after", "name"})


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/containers."""
    async with rate_limits.admit(key) as ticket:
        requested: ContainerRequest = await request_body.parse_body(request, key, parse_container, b"{}")
        uploads = await _uploads(key.project, requested.file_ids)
        now = timezone.now().replace(microsecond=0)
        row = Container(
            uid=new_id("cntr_"),
            project=key.project,
            name=requested.name,
            memory_limit=requested.memory_limit,
            expires_after_minutes=requested.minutes,
            created_at=now,
            last_active_at=now,
        )
        try:
            await sync_to_async(container_files.create_container)(row, uploads, new_id)
        except File.DoesNotExist:
            # An upload was deleted since. The second look names its place in the request.
            await _uploads(key.project, requested.file_ids)
            raise
        await ticket.release()
    return json_response(shape(row), headers=ticket.headers)


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/containers."""
    query.check_known(request, KNOWN)
    rows = containers.of_project(key.project)
    name = query.text(request, "name")
    if name is not None:
        # No name has NUL. Those of earlier versions have U+FFFD in its place.
        rows = rows.filter(name=name.replace("\0", "\ufffd"))
    return await pagination.page_of_rows(request, rows, shape)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/containers/{id}."""
    del request
    return json_response(shape(await find(key.project, uid)))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/containers/{id}."""
    del request
    row = await find(key.project, uid)
    await sandboxes.end_container(row)
    await call_in_thread(key.project, container_files.delete_container, row)
    await sandboxes.end_container(row)
    return json_response({"id": uid, "object": "container.deleted", "deleted": True})


async def find(project: str, uid: str) -> Container:
    """Find a container of the project. Raises NotFound."""
    row = await containers.find(project, uid) if is_id(uid) else None
    if row is None:
        raise not_found(uid)
    return row


def not_found(uid: str) -> NotFound:
    """Return the error for an id that no container of the project has."""
    return NotFound(f"No container found with id '{uid}'.")


async def _uploads(project: str, file_ids: Sequence[str]) -> list[File]:
    """Return the uploaded files of `file_ids`. Raises InvalidRequest."""
    rows_by_id = {row.uid: row async for row in files.visible(project, timezone.now()).filter(uid__in=file_ids)}
    for index, uid in enumerate(file_ids):
        if uid not in rows_by_id:
            raise unknown_file(uid, f"file_ids[{index}]")
    return [rows_by_id[uid] for uid in dict.fromkeys(file_ids)]


def shape(row: Container) -> dict[str, Any]:
    """Return the container object of the API."""
    expired = containers.is_expired(row, timezone.now())
    return {
        "id": row.uid,
        "object": "container",
        "created_at": int(row.created_at.timestamp()),
        "status": "expired" if expired else "running",
        "expires_after": {"anchor": "last_active_at", "minutes": row.expires_after_minutes},
        "last_active_at": int(row.last_active_at.timestamp()),
        "memory_limit": row.memory_limit,
        "name": row.name,
        "network_policy": {"type": "disabled"},
    }
