"""Views of the Files API in the form of Anthropic's API: upload, list, retrieve, delete."""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.access import rate_limits
from responses_app.api import query
from responses_app.api.http import Handler, json_response
from responses_app.api.storage_share import call_in_thread
from responses_app.api.views import files as views
from responses_app.api_formats.messages.message import VERSION_HEADER
from responses_app.api_formats.paths import RequestPaths
from responses_app.errors import NotFound
from responses_app.models import ApiKey, File, FilePurpose
from responses_app.runs.ids import is_id
from responses_app.store.files import files
from responses_app.validation.errors import invalid, shorten, unknown_parameter

EXPIRY: Final = "expires_in_seconds"
PATHS: Final = RequestPaths({"expires_after.seconds": EXPIRY}, {})
# Parameters of lists besides `limit`; a page cursor is the id of a file with a prefix.
CURSORS: Final = ("page", "after_id", "before_id")
PAGE_PREFIX: Final = "page_"
# Filters of lists that this server does not have.
FILTERS: Final = ("ids", "ids[]", "scope_id")


def by_version(handler: Handler, message_handler: Handler) -> Handler:
    """Return a handler that calls `message_handler` for requests with the header `anthropic-version`, else `handler`."""

    async def handle(request: HttpRequest, key: ApiKey, **path: str) -> HttpResponseBase:
        return await (message_handler if VERSION_HEADER in request.headers else handler)(request, key, **path)

    return handle


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/files, without a purpose."""
    async with rate_limits.admit(key) as ticket:
        with PATHS.translated():
            row = await views.receive(request, key.project, {"purpose", EXPIRY}, _fields)
        await ticket.release()
    return json_response(_shape(row), headers=ticket.headers)


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/files, the newest first. Older clients turn pages by `after_id` and `before_id`, newer ones by `page`."""
    for name in FILTERS:
        if name in request.GET:
            raise unknown_parameter(name)
    limit = query.integer(request, "limit", 20, least=1, most=1000)
    cursors = {name: uid for name in CURSORS if (uid := query.text(request, name)) is not None}
    if len(cursors) > 1:
        raise invalid((list(cursors)[1],), f"it cannot be used together with '{next(iter(cursors))}'.")
    before = cursors.get("before_id")
    after = cursors.get("after_id", cursors.get("page", "").removeprefix(PAGE_PREFIX)) or None
    page = None
    if all(is_id(uid) for uid in (after, before) if uid is not None):
        page = await files.page(key.project, views.now(), limit=limit, after=after, before=before)
    if page is None:
        raise NotFound(f"No file found with id '{shorten(after or before)}'.", param=next(iter(cursors)))
    uids = [row.uid for row in page.rows]
    ends = {"first_id": uids[0], "last_id": uids[-1]} if uids else {"first_id": None, "last_id": None}
    next_page = f"{PAGE_PREFIX}{uids[-1]}" if page.more and before is None else None
    return json_response({"data": [_shape(row) for row in page.rows], "has_more": page.more, **ends, "next_page": next_page})


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/files/{id}."""
    del request
    return json_response(_shape(await views.find(key.project, uid)))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/files/{id}."""
    del request
    await call_in_thread(key.project, files.delete, await views.find(key.project, uid))
    return json_response({"id": uid, "type": "file_deleted"})


def _fields(fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a form with the names of OpenAI's API."""
    purpose = fields.get("purpose", FilePurpose.USER_DATA.value)
    expiry = {views.ANCHOR: "created_at", views.SECONDS: fields[EXPIRY]} if EXPIRY in fields else {}
    return {"purpose": purpose, **expiry}


def _shape(row: File) -> dict[str, Any]:
    return {
        "type": "file",
        "id": row.uid,
        "filename": row.filename,
        "mime_type": mimetypes.guess_type(row.filename)[0] or "application/octet-stream",
        "size_bytes": row.bytes,
        "created_at": _time(row.created_at),
        "expires_at": None if row.expires_at is None else _time(row.expires_at),
        "downloadable": True,
    }


def _time(value: datetime) -> str:
    return value.isoformat().replace("+00:00", "Z")
