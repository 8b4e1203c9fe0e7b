"""Views of vector stores: create, read, change, delete and search."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from responses_app.access import rate_limits
from responses_app.api import pagination, query
from responses_app.api.http import json_response
from responses_app.errors import InvalidRequest, NotFound, unknown_file
from responses_app.models import ApiKey, VectorStore
from responses_app.runs.ids import is_id, new_id
from responses_app.schemas.parsing import vector_stores as schemas
from responses_app.store.vector_stores import store_files, stores
from responses_app.store.vector_stores.search import ChunkResult
from responses_app.store.vector_stores.stores import FileCounts
from responses_app.tools.file_search import ingestion
from responses_app.tools.file_search.service import StoreSearchOptions, search
from responses_app.validation.base import parse_metadata, validate
from responses_app.wire import request_body


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/vector_stores."""
    async with rate_limits.admit(key) as ticket:
        body, metadata = await request_body.parse_body(request, key, _new, b"{}")
        now = timezone.now()
        row = VectorStore(
            uid=new_id("vs_"),
            project=key.project,
            name=body.name,
            description=body.description,
            metadata=metadata,
            text_config=settings.RESPONSES_FILE_SEARCH_LANGUAGE,
            expires_after_days=body.expires_after.days if body.expires_after else None,
            created_at=now,
            last_active_at=now,
        )
        await sync_to_async(_insert)(row, body.new_files)
        ingestion.wake()
        shown = await sync_to_async(shape)(row)
        await ticket.release()
    return json_response(shown, headers=ticket.headers)


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/vector_stores."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "desc", ("asc", "desc")) == "desc"
    after, before = cursors(request)
    page = await sync_to_async(stores.page)(key.project, limit=limit, newest_first=newest_first, after=after, before=before)
    if page is None:
        raise NotFound(f"No vector store found with id '{after or before}'.", param="after" if after else "before")
    bodies = await sync_to_async(_shapes)(page.rows)
    uids = [body["id"] for body in bodies]
    first, last = (uids[0], uids[-1]) if uids else (None, None)
    return pagination.list_object(map(orjson.dumps, bodies), first, last, more=page.more)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/vector_stores/{id}."""
    row = await find(key.project, uid)
    return json_response(await sync_to_async(shape)(row), headers=poll_headers(request))


async def update(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/vector_stores/{id}: change name, description, expiry or metadata."""
    changes = await request_body.parse_body(request, key, _changes, b"{}")
    row = await find(key.project, uid)
    for name, value in changes.items():
        setattr(row, name, value)
    if not await sync_to_async(stores.update)(row, list(changes)):
        raise missing(uid)
    return json_response(await sync_to_async(shape)(row))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/vector_stores/{id}. The files stay."""
    del request
    await sync_to_async(stores.delete)(await find(key.project, uid))
    return json_response({"id": uid, "object": "vector_store.deleted", "deleted": True})


async def search_results(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/vector_stores/{id}/search."""
    async with rate_limits.admit(key) as ticket:
        texts, body, filters = await request_body.parse_body(request, key, schemas.parse_search)
        row = await find(key.project, uid)
        check_not_expired(row)
        options = StoreSearchOptions.parse(body.max_num_results, body.ranking_options.model_dump(exclude_none=True), filters)
        results = await search([row], texts, options)
        await ticket.release()
    page = {
        "object": "vector_store.search_results.page",
        "search_query": texts,
        "data": [_result_shape(result) for result in results],
        "has_more": False,
        "next_page": None,
    }
    return json_response(page, headers=ticket.headers)


async def find(project: str, uid: str) -> VectorStore:
    """Find a vector store of a project. Raises NotFound."""
    row = await sync_to_async(stores.find)(project, uid) if is_id(uid) else None
    if row is None:
        raise missing(uid)
    return row


def missing(uid: str) -> NotFound:
    """Return the error for an unknown vector store."""
    return NotFound(f"No vector store found with id '{uid}'.")


def check_not_expired(row: VectorStore) -> None:
    """Raise InvalidRequest if the vector store has expired."""
    problem = stores.expiry_problem(row, timezone.now())
    if problem is not None:
        raise InvalidRequest(problem, code="vector_store_expired")


def cursors(request: HttpRequest) -> tuple[str | None, str | None]:
    """Return `after` and `before`; ids of another shape become an id that nothing has."""
    after, before = (query.text(request, name) for name in ("after", "before"))
    return tuple(None if cursor is None else cursor if is_id(cursor) else "-" for cursor in (after, before))  # type: ignore[return-value]


def poll_headers(request: HttpRequest) -> dict[str, str]:
    """Return the header with the pause between polls in milliseconds, for the polling helpers of the openai clients."""
    return {"openai-poll-after-ms": "100"} if request.headers.get("X-Stainless-Poll-Helper") == "true" else {}


def shape(row: VectorStore) -> dict[str, Any]:
    """Return the object of a vector store."""
    return _shapes([row])[0]


def _shapes(rows: Any) -> list[dict[str, Any]]:
    counts = stores.count_files(rows)
    return [_shape(row, counts[row.pk]) for row in rows]


def _shape(row: VectorStore, counts: FileCounts) -> dict[str, Any]:
    expires_at, days = stores.expires_at(row), row.expires_after_days
    return {
        "id": row.uid,
        "object": "vector_store",
        "created_at": int(row.created_at.timestamp()),
        "name": row.name,
        "description": row.description or None,
        "usage_bytes": counts.usage_bytes,
        "file_counts": counts.body(),
        "status": stores.status_of(row, counts, timezone.now()),
        "expires_after": None if days is None else {"anchor": "last_active_at", "days": days},
        "expires_at": None if expires_at is None else int(expires_at.timestamp()),
        "last_active_at": int(row.last_active_at.timestamp()),
        "metadata": orjson.loads(row.metadata),
    }


def _result_shape(result: ChunkResult) -> dict[str, Any]:
    return {
        "file_id": result.file_id,
        "filename": result.filename,
        "score": result.score,
        "attributes": orjson.loads(result.attributes),
        "content": [{"type": "text", "text": result.text}],
    }


def _insert(row: VectorStore, files: list[store_files.NewStoreFile]) -> None:
    try:
        with transaction.atomic():
            stores.create(row, settings.RESPONSES_VECTOR_STORES_PER_PROJECT)
            if files:
                store_files.add(row, files, settings.RESPONSES_VECTOR_STORE_FILES)
    except stores.TooManyStores as error:
        limit = settings.RESPONSES_VECTOR_STORES_PER_PROJECT
        message = f"The project has {limit} vector stores, which is the limit. Delete vector stores that you do not need."
        raise InvalidRequest(message, code="vector_stores_limit_exceeded") from error
    except store_files.MissingFile as error:
        raise unknown_file(error.file.file_id, error.file.path) from error


def _new(raw: dict[str, Any]) -> tuple[schemas.CreateVectorStore, str]:
    body = validate(schemas.CreateVectorStore, raw)
    return body, _dump(body.metadata)


def _changes(raw: dict[str, Any]) -> dict[str, Any]:
    """Return the fields to change. `expires_after: null` removes the expiry."""
    body = validate(schemas.UpdateVectorStore, raw)
    changes: dict[str, Any] = {}
    for name in ("name", "description"):
        if name in raw:
            changes[name] = getattr(body, name) or ""
    if "expires_after" in raw:
        changes["expires_after_days"] = body.expires_after.days if body.expires_after else None
    if raw.get("metadata") is not None:
        changes["metadata"] = _dump(body.metadata)
    return changes


def _dump(metadata: object) -> str:
    return orjson.dumps(parse_metadata(metadata)).decode()
