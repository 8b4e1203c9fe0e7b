"""Views of webhook endpoints: create, read, change, delete, rotate the secret, and send a test."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import timezone

from responses_app.access import rate_limits
from responses_app.api.http import json_response
from responses_app.api.pagination import page_of_rows
from responses_app.errors import InvalidRequest, NotFound
from responses_app.models import ApiKey, WebhookEndpoint
from responses_app.runs.ids import is_id
from responses_app.schemas.parsing import webhook_endpoints as schemas
from responses_app.store import webhooks
from responses_app.validation.base import validate
from responses_app.webhooks.endpoints import new_endpoint, rotate
from responses_app.webhooks.sender import send_test
from responses_app.wire import request_body


async def event_types(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/webhook_event_types."""
    del request, key
    return json_response({"object": "list", "data": list(schemas.EVENT_TYPES)})


async def create(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """POST /v1/webhook_endpoints. Only this answer and that of a rotation contain the secret."""
    columns = await request_body.parse_body(request, key, schemas.parse_new)
    row, secret = new_endpoint(key.project, **columns)
    try:
        await sync_to_async(webhooks.create)(row)
    except webhooks.TooManyEndpoints:
        message = (
            f"The project has {webhooks.MAX_ENDPOINTS_PER_PROJECT} webhook endpoints, which is the limit. Delete one first."
        )
        raise InvalidRequest(message, code="webhook_endpoints_limit_exceeded") from None
    return json_response({**shape(row), "signing_secret": secret})


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/webhook_endpoints."""
    return await page_of_rows(request, webhooks.endpoints(key.project), shape)


async def retrieve(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """GET /v1/webhook_endpoints/{id}."""
    del request
    return json_response(shape(await _find(key, uid)))


async def update(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/webhook_endpoints/{id}: change name, URL or event types, and enable a disabled endpoint."""
    columns = await request_body.parse_body(request, key, schemas.parse_changes, b"{}")
    row = await _find(key, uid)
    changes = {name: value for name, value in {**columns, "disabled_at": None}.items() if getattr(row, name) != value}
    if changes:
        await webhooks.endpoints(key.project).filter(pk=row.pk).aupdate(**changes, updated_at=timezone.now())
        row = await _find(key, uid)
    return json_response(shape(row))


async def delete(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """DELETE /v1/webhook_endpoints/{id}, with all deliveries."""
    del request
    await (await _find(key, uid)).adelete()
    return json_response({"id": uid, "object": "webhook_endpoint.deleted", "deleted": True})


async def rotate_secret(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/webhook_endpoints/{id}/rotate_secret."""
    body = await request_body.parse_body(request, key, lambda raw: validate(schemas.RotateSecret, raw), b"{}")
    row = await _find(key, uid)
    secret = await sync_to_async(rotate)(row, keep_old=body.keep_old_secret_active_for_24_hours)
    return json_response({**shape(row), "signing_secret": secret})


async def test(request: HttpRequest, key: ApiKey, uid: str) -> HttpResponseBase:
    """POST /v1/webhook_endpoints/{id}/test: send a sample event now, once."""
    async with rate_limits.admit(key) as ticket:
        body = await request_body.parse_body(request, key, lambda raw: validate(schemas.SendTest, raw))
        answer = await send_test(await _find(key, uid), body.event_type)
        await ticket.release()
    if answer.status_code is None:
        raise InvalidRequest(f"The webhook endpoint did not answer. {answer.error}", code="webhook_endpoint_unreachable")
    result = {
        "object": "webhook_endpoint.test",
        "webhook_endpoint_id": uid,
        "event_type": body.event_type,
        "status_code": answer.status_code,
        "success": True,
    }
    return json_response(result, headers=ticket.headers)


def shape(row: WebhookEndpoint) -> dict[str, Any]:
    """Return the object of an endpoint, without the secret. `disabled_at` and `old_secret_active_until` are fields of this server."""
    old_secret_until = row.old_secret_until if row.has_old_secret else None
    return {
        "id": row.uid,
        "object": "webhook_endpoint",
        "created_at": int(row.created_at.timestamp()),
        "updated_at": int(row.updated_at.timestamp()),
        "name": row.name,
        "url": row.url,
        "event_types": row.event_types,
        "signing_secret_hint": row.secret_hint,
        "old_secret_active_until": None if old_secret_until is None else int(old_secret_until.timestamp()),
        "disabled_at": None if row.disabled_at is None else int(row.disabled_at.timestamp()),
    }


async def _find(key: ApiKey, uid: str) -> WebhookEndpoint:
    row = await webhooks.endpoints(key.project).filter(uid=uid).afirst() if is_id(uid) else None
    if row is None:
        raise NotFound(f"No webhook endpoint found with id '{uid}'.")
    return row
