"""GET /v1/responses: the responses of a project in pages, an extension of OpenAI's API."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import UTC, datetime

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from responses_app.api import pagination, query
from responses_app.errors import NotFound
from responses_app.models import ApiKey, Status
from responses_app.runs.ids import is_id
from responses_app.store import response_list as content_responses
from responses_app.store.response_list import ResponseFilter
from responses_app.validation.errors import unknown_parameter
from responses_app.wire import profiles
from responses_app.wire.event_stream import partial_snapshot

METADATA = re.compile(r"metadata\[(.*)\]", re.DOTALL)
KNOWN = frozenset({"limit", "order", "after", "model", "status", "conversation", "created_after", "created_before"})
LATEST = 253_402_300_799


async def index(request: HttpRequest, key: ApiKey) -> HttpResponseBase:
    """GET /v1/responses."""
    limit = query.integer(request, "limit", 20, least=1, most=100)
    newest_first = query.choice(request, "order", "desc", ("asc", "desc")) == "desc"
    filters = _filter(request)
    after = query.text(request, "after")
    known = after is None or is_id(after)
    page = (
        await content_responses.page(key.project, filters, limit=limit, newest_first=newest_first, after=after)
        if known
        else None
    )
    if page is None:
        raise NotFound(f"No response found with id '{after}'", param="after")
    snapshots = [snapshot or await partial_snapshot(row) for row, snapshot in page.rows]
    bodies = (profiles.to_profile(request, snapshot) for snapshot in snapshots)
    uids = [row.uid for row, _ in page.rows]
    ends = (uids[0], uids[-1]) if uids else (None, None)
    return await pagination.encode_list(key, sum(map(len, snapshots)), bodies, *ends, more=page.more)


def _filter(request: HttpRequest) -> ResponseFilter:
    """Return the filters of the query. Raises InvalidRequest, also for an unknown parameter."""
    metadata = metadata_filter(request, KNOWN)
    return ResponseFilter(
        model=query.text(request, "model"),
        status=query.choice(request, "status", "", tuple(Status.values)) or None,
        conversation=_id(query.text(request, "conversation")),
        metadata=metadata,
        since=_time(request, "created_after"),
        until=_time(request, "created_before"),
    )


def metadata_filter(request: HttpRequest, known: Collection[str]) -> dict[str, str]:
    """Return the pairs of `metadata[name]=value` in the query. Raises InvalidRequest for a parameter that is not `known`."""
    metadata: dict[str, str] = {}
    for name in request.GET:
        pair = METADATA.fullmatch(name)
        if pair is not None:
            metadata[pair[1]] = query.single(request, name) or ""
        elif name not in known:
            raise unknown_parameter(name)
    return metadata


def _id(uid: str | None) -> str | None:
    # An impossible id matches nothing; Postgres would reject some of the characters.
    return None if not uid else uid if is_id(uid) else "-"


def _time(request: HttpRequest, name: str) -> datetime | None:
    """Read a Unix time in seconds. Raises InvalidRequest."""
    seconds = query.integer(request, name, -1, least=0, most=LATEST)
    return None if seconds < 0 else datetime.fromtimestamp(seconds, UTC)
