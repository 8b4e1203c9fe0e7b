"""Error messages of failed responses, the search in these, and reasons of incomplete responses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from responses_app.models import Response, Status
from responses_app.store.log import reader
from responses_app.web.responses.search import HasKey

# The number of newest failed responses whose messages are searched: each is read from the end of a log.
MAX_SEARCHED: Final = 200


def last_snapshots(keys: Sequence[int]) -> dict[int, dict[str, Any]]:
    """Return the last snapshot of ended responses by primary key. The last event of each log has the snapshot."""
    if not keys:
        return {}
    ended = reader.with_last_event(Response.objects.filter(pk__in=keys)).only("pk")
    snapshots = ((row.pk, reader.terminal_snapshot(row)) for row in ended)
    return {pk: orjson.loads(snapshot) for pk, snapshot in snapshots if snapshot}


def message_of(snapshot: Mapping[str, Any]) -> str:
    """Return the error message of a failed response, or nothing."""
    return str((snapshot.get("error") or {}).get("message") or "")


def reason_of(snapshot: Mapping[str, Any]) -> str:
    """Return the reason of an incomplete response in the words of the API, or nothing."""
    return str((snapshot.get("incomplete_details") or {}).get("reason") or "")


def search_errors(text: str, keys: Sequence[int]) -> list[int]:
    """Return the keys of the newest failed responses of `keys` with `text` in the error message."""
    failed = Response.objects.filter(HasKey(keys), status=Status.FAILED).order_by("-pk").values_list("pk", flat=True)
    snapshots = last_snapshots(list(failed[:MAX_SEARCHED]))
    return [key for key, snapshot in snapshots.items() if text.casefold() in message_of(snapshot).casefold()]
