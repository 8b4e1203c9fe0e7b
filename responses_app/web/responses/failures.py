"""Error messages of failed responses, and the search in these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import orjson

from responses_app.models import Response, Status
from responses_app.store.log import reader

# The number of newest failed responses whose messages are searched: each is read from the end of a log.
MAX_SEARCHED: Final = 200


def error_messages(keys: Sequence[int]) -> dict[int, str]:
    """Return the error messages of failed responses by primary key. The last event of the log has the message."""
    if not keys:
        return {}
    failed = reader.with_last_event(Response.objects.filter(pk__in=keys)).only("pk")
    snapshots = ((row.pk, reader.terminal_snapshot(row)) for row in failed)
    errors = ((pk, orjson.loads(snapshot).get("error") or {}) for pk, snapshot in snapshots if snapshot)
    return {pk: str(error.get("message") or "") for pk, error in errors}


def search_errors(text: str, keys: Sequence[int]) -> list[int]:
    """Return the keys of the newest failed responses of `keys` with `text` in the error message."""
    failed = Response.objects.filter(pk__in=keys, status=Status.FAILED).order_by("-pk").values_list("pk", flat=True)
    messages = error_messages(list(failed[:MAX_SEARCHED]))
    return [key for key, message in messages.items() if text.casefold() in message.casefold()]
