"""Schemas of webhook endpoints: requests to create, update, rotate and test an endpoint."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from django.conf import settings
from pydantic import Field

from responses_app.models import MAX_WEBHOOK_NAME_CHARS
from responses_app.outbound_http.download import url_problem
from responses_app.validation.base import Array, StoredText, StrictModel, validate
from responses_app.validation.errors import invalid

EventType: TypeAlias = Literal["response.completed", "response.failed", "response.incomplete", "response.cancelled"]
EVENT_TYPES: Final[tuple[str, ...]] = get_args(EventType)
Name: TypeAlias = Annotated[StoredText, Field(min_length=1, max_length=MAX_WEBHOOK_NAME_CHARS)]
EventTypes: TypeAlias = Annotated[Array[EventType], Field(min_length=1, max_length=len(EVENT_TYPES))]


class CreateEndpoint(StrictModel):
    """Body of POST /v1/webhook_endpoints."""

    name: Name
    url: str
    event_types: EventTypes


class UpdateEndpoint(StrictModel):
    """Body of POST /v1/webhook_endpoints/{id}: the fields to change."""

    name: Name | None = None
    url: str | None = None
    event_types: EventTypes | None = None


class RotateSecret(StrictModel):
    """Body of POST /v1/webhook_endpoints/{id}/rotate_secret."""

    keep_old_secret_active_for_24_hours: bool = False


class SendTest(StrictModel):
    """Body of POST /v1/webhook_endpoints/{id}/test."""

    event_type: EventType


def parse_new(raw: object) -> dict[str, Any]:
    """Return the columns of a new endpoint. Raises InvalidRequest."""
    return _columns(validate(CreateEndpoint, raw))


def parse_changes(raw: object) -> dict[str, Any]:
    """Return the columns that an update changes. Raises InvalidRequest."""
    return _columns(validate(UpdateEndpoint, raw))


def endpoint_url_problem(url: str) -> str | None:
    """Return why events may not be sent to `url`, without network access, or None."""
    problem = url_problem(url, settings.RESPONSES_WEBHOOK_PRIVATE_HOSTS)
    return None if problem is None else "expected the https URL of a host on the public internet, without a user name."


def _columns(body: CreateEndpoint | UpdateEndpoint) -> dict[str, Any]:
    columns = body.model_dump(exclude_none=True)
    if "event_types" in columns:
        columns["event_types"] = sorted(set(columns["event_types"]), key=EVENT_TYPES.index)
    if body.url is not None and (problem := endpoint_url_problem(body.url)):
        raise invalid(("url",), problem, "invalid_url")
    return columns
