"""Changes of many responses in batches: small transactions, and none that waits for a locked response or ends at a damaged one."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

from django.db import DatabaseError, connection
from django.db.models import QuerySet

from responses_app.models import Response
from responses_app.store.db import durable_transaction, is_general_error

# Changes the responses of these keys, which are locked. Returns the keys of those that were changed.
Change: TypeAlias = Callable[[Sequence[int]], Collection[int]]

logger = logging.getLogger("responses.batches")

FIRST_BATCH: Final = 50
MAX_BATCH: Final = 400
# The size of a batch follows the length of its transaction, so that streams never wait long for Postgres. A part of the cost does not
# depend on the size, such as that of a long thread.
TARGET_S: Final = 0.1
MIN_BATCH: Final = 20
# For rows of a locked response, such as items. Responses that are locked themselves are passed over at once.
LOCK_TIMEOUT_SQL: Final = "SET LOCAL lock_timeout TO '200ms'"


def change_in_batches(
    rows: QuerySet[Response], change: Change, *, order: str = "pk", waits: bool = False, limit: int = MAX_BATCH
) -> Iterator[int]:
    """Apply `change` to `rows`, which lose the responses that were changed. Yield the number of responses of each transaction.

    `order` is a field with an index. The highest value comes first: the items of the newest response of a thread are deleted with it,
    while those of the oldest one are kept for the others until they are deleted.

    Locked responses are left to the next run, unless `waits`. A response whose change fails is named in the log and left. Raises
    DatabaseError if the fault does not come from a single response.
    """
    size, position, left = min(FIRST_BATCH, limit), None, dict[int, Any]()
    while True:
        due = rows.exclude(pk__in=left) if left else rows
        # Entries of the index above this position are dead, and would be read again by each batch.
        due = due if position is None else due.filter(**{f"{order}__lte": position})
        batch, began = list[tuple[int, Any]](), time.monotonic()
        try:
            with durable_transaction():
                batch = _lock(due.order_by(f"-{order}").values_list("pk", order), size, waits)
                changed = set(change([key for key, _ in batch])) if batch else set()
        except DatabaseError as error:
            if not batch or is_general_error(error):
                raise
            size = max(len(batch) // 4, 1)
            if len(batch) == 1:
                left |= dict(batch)
                warn_once(batch[0][0], str(error).strip())
            yield 0
            continue
        if not batch:
            return
        position = batch[-1][1]
        left = {key: at for key, at in [*left.items(), *batch] if at <= position and key not in changed}
        yield len(changed)
        size = _next_size(size, time.monotonic() - began, limit)


@lru_cache(maxsize=1000)
def warn_once(key: int, reason: str) -> None:
    """Write to the log that a response is left as it is, once, as maintenance finds the response again every half minute."""
    logger.warning("the response with the key %d is left as it is: %s", key, reason)


def _lock(rows: QuerySet[Response, tuple[int, Any]], size: int, waits: bool) -> list[tuple[int, Any]]:
    if not waits:
        with connection.cursor() as cursor:
            cursor.execute(LOCK_TIMEOUT_SQL)
    return list(rows.select_for_update(skip_locked=not waits)[:size])


def _next_size(size: int, seconds: float, limit: int) -> int:
    if seconds > TARGET_S:
        return max(size // 2, min(size, MIN_BATCH))
    return min(size * 2, limit) if seconds < TARGET_S / 2 else size
