"""Views of the files in vector stores, and of batches of files."""

from __future__ import annotations

from typing import Any

import orjson
from asgiref.sync import sync_to_async
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from responses_app.access import rate_limits
from responses_app.api import pagination, query
from responses_app.api.http import json_response
from responses_app.api.views import vector_stores
from responses_app.errors import InvalidRequest, NotFound, unknown_file
from responses_app.models import ApiKey, FileBatch, StoreFileStatus, VectorStore, VectorStoreFile
from responses_app.runs.ids import is_id, new_id
from responses_app.schemas.parsing import vector_stores as schemas
from responses_app.store.vector_stores import store_files
from responses_app.store.vector_stores.store_files import NewStoreFile
from responses_app.store.vector_stores.stores import FileCounts
from responses_app.tools.file_search import ingestion
from responses_app.validation.base import validate
from responses_app.wire import request_body


async def create(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/vector_stores/{id}/files."""
    async with rate_limits.admit(key) as ticket:
        new = await request_body.parse_body(request, key, schemas.parse_new_file)
        store = await vector_stores.find(key.project, uid)
        vector_stores.check_not_expired(store)
        await _add(store, [new], "file_id")
        row = await _find(store, new.file_id)
        await ticket.release()
    return json_response(_shape(store, row), headers=ticket.headers)


async def index(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/vector_stores/{id}/files."""
    return await _list(request, await vector_stores.find(key.project, uid))


async def retrieve(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """GET /v1/vector_stores/{id}/files/{file_id}."""
    store = await vector_stores.find(key.project, uid)
    return json_response(_shape(store, await _find(store, file)), headers=vector_stores.poll_headers(request))


async def update(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """POST /v1/vector_stores/{id}/files/{file_id}: replace the attributes."""
    attributes = await request_body.parse_body(request, key, _attributes)
    store = await vector_stores.find(key.project, uid)
    row = await _find(store, file)
    if not await sync_to_async(store_files.set_attributes)(row, attributes):
        raise _missing(store, file)
    return json_response(_shape(store, row))


async def delete(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """DELETE /v1/vector_stores/{id}/files/{file_id}: remove a file from the store. The file itself stays."""
    del request
    store = await vector_stores.find(key.project, uid)
    if not await sync_to_async(store_files.remove)(await _find(store, file)):
        raise _missing(store, file)
    return json_response({"id": file, "object": "vector_store.file.deleted", "deleted": True})


async def content(request: HttpRequest, key: ApiKey, uid: str, file: str) -> HttpResponseBase:
    """GET /v1/vector_stores/{id}/files/{file_id}/content: the text that was extracted, without the overlaps of chunks."""
    del request
    store = await vector_stores.find(key.project, uid)
    parts = await sync_to_async(store_files.text_parts)(await _find(store, file))
    data = [{"type": "text", "text": part} for part in parts]
    return json_response({"object": "vector_store.file_content.page", "data": data, "has_more": False, "next_page": None})


async def create_batch(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/vector_stores/{id}/file_batches: add files, all or none."""
    async with rate_limits.admit(key) as ticket:
        new = await request_body.parse_body(request, key, schemas.parse_batch)
        store = await vector_stores.find(key.project, uid)
        vector_stores.check_not_expired(store)
        batch = FileBatch(uid=new_id("vsfb_"), store=store, created_at=timezone.now())
        await _add(store, new, "file_ids", batch)
        shown = await _batch_shape(store, batch)
        await ticket.release()
    return json_response(shown, headers=ticket.headers)


async def retrieve_batch(request: HttpRequest, key: ApiKey, uid: str, batch: str) -> HttpResponseBase:
    """GET /v1/vector_stores/{id}/file_batches/{batch_id}."""
    store = await vector_stores.find(key.project, uid)
    stored_batch = await _find_batch(store, batch)
    return json_response(await _batch_shape(store, stored_batch), headers=vector_stores.poll_headers(request))


async def cancel_batch(request: HttpRequest, key: ApiKey, uid: str, batch: str) -> HttpResponseBase:
    """POST /v1/vector_stores/{id}/file_batches/{batch_id}/cancel."""
    del request
    store = await vector_stores.find(key.project, uid)
    stored_batch = await _find_batch(store, batch)
    await sync_to_async(store_files.cancel_batch)(stored_batch)
    return json_response(await _batch_shape(store, stored_batch))


async def list_batch_files(request: HttpRequest, key: ApiKey, uid: str, batch: str) -> HttpResponseBase:
    """GET /v1/vector_stores/{id}/file_batches/{batch_id}/files."""
    store = await vector_stores.find(key.project, uid)
    return await _list(request, store, await _find_batch(store, batch))


async def _list(request: HttpRequest, store: VectorStore, batch: FileBatch | None = None) -> HttpResponseBase:
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "desc", ("asc", "desc")) == "desc"
    status = query.choice(request, "filter", "", tuple(StoreFileStatus.values)) or None
    after, before = vector_stores.cursors(request)
    page = await sync_to_async(store_files.page)(
        store, status=status, limit=limit, newest_first=newest_first, after=after, before=before, batch=batch
    )
    if page is None:
        raise NotFound(f"No file found with id '{after or before}'.", param="after" if after else "before")
    bodies = [_shape(store, row) for row in page.rows]
    uids = [body["id"] for body in bodies]
    first, last = (uids[0], uids[-1]) if uids else (None, None)
    return pagination.list_object(map(orjson.dumps, bodies), first, last, more=page.more)


async def _add(store: VectorStore, new: list[NewStoreFile], param: str, batch: FileBatch | None = None) -> None:
    """Add files to a store. Raises NotFound, InvalidRequest."""
    limit = settings.RESPONSES_VECTOR_STORE_FILES
    try:
        await sync_to_async(store_files.add)(store, new, limit, batch)
    except store_files.MissingFile as error:
        raise unknown_file(error.file.file_id, error.file.path) from error
    except store_files.TooManyFiles as error:
        message = f"A vector store has at most {limit} files."
        raise InvalidRequest(message, param=param, code="vector_store_file_limit_exceeded") from error
    except VectorStore.DoesNotExist as error:
        raise vector_stores.missing(store.uid) from error
    ingestion.wake()


async def _find(store: VectorStore, file_id: str) -> VectorStoreFile:
    row = await sync_to_async(store_files.find)(store, file_id) if is_id(file_id) else None
    if row is None:
        raise _missing(store, file_id)
    return row


async def _find_batch(store: VectorStore, uid: str) -> FileBatch:
    stored_batch = await sync_to_async(store_files.find_batch)(store, uid) if is_id(uid) else None
    if stored_batch is None:
        raise NotFound(f"No file batch found with id '{uid}' in vector store '{store.uid}'.")
    return stored_batch


def _missing(store: VectorStore, file_id: str) -> NotFound:
    return NotFound(f"No file found with id '{file_id}' in vector store '{store.uid}'.")


def _attributes(raw: dict[str, Any]) -> dict[str, Any]:
    if "attributes" not in raw:
        raise InvalidRequest("Missing required parameter: 'attributes'.", param="attributes", code="missing_required_parameter")
    return schemas.parse_attributes(validate(schemas.UpdateStoreFile, raw).attributes)


def _shape(store: VectorStore, row: Any) -> dict[str, Any]:
    sizes = {"max_chunk_size_tokens": row.chunk_tokens, "chunk_overlap_tokens": row.overlap_tokens}
    return {
        "id": row.file.uid,
        "object": "vector_store.file",
        "created_at": int(row.created_at.timestamp()),
        "vector_store_id": store.uid,
        "usage_bytes": row.usage_bytes,
        "status": row.status,
        "last_error": {"code": row.error_code, "message": row.error_message} if row.error_code else None,
        "chunking_strategy": {"type": "static", "static": sizes},
        "attributes": row.attributes,
    }


async def _batch_shape(store: VectorStore, batch: FileBatch) -> dict[str, Any]:
    counts = await sync_to_async(store_files.count_batch)(batch)
    return {
        "id": batch.uid,
        "object": "vector_store.files_batch",
        "created_at": int(batch.created_at.timestamp()),
        "vector_store_id": store.uid,
        "status": _batch_status(batch, counts),
        "file_counts": counts.body(),
    }


def _batch_status(batch: FileBatch, counts: FileCounts) -> str:
    if batch.cancelled_at is not None:
        return "cancelled"
    if counts.by_status.get(StoreFileStatus.IN_PROGRESS):
        return "in_progress"
    return "failed" if counts.total and counts.by_status.get(StoreFileStatus.FAILED) == counts.total else "completed"
