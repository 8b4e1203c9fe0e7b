"""Requests that are sent again: the response to the first one, if the process that answered it has died.

Libraries repeat a request whose connection broke. With an idempotency key the repeated request belongs to the response of the
first one. Without a key, that is so only if the process of the first one is gone: two equal requests of a living process are two.
A process holds a lock of Postgres for as long as its connection for notifications lives.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final
from uuid import UUID

from responses_app.models import Response, Status
from responses_app.store.db import execute_prepared

# Seconds after its end in which the response of a request without a key is found.
WINDOW_S: Final = 60.0
# First letter of a fingerprint: of an idempotency key, or of a body.
KEY, BODY = "k", "b"
# Error codes of a request that fails each time.
LASTING_ERRORS: Final = frozenset({"invalid_prompt"})
# Condition that the process with the id in a column holds its lock. `pg_locks` has the two halves of the number of an advisory lock.
HOLDS_LOCK_SQL: Final = """EXISTS (
  SELECT FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1
  AND (classid::bigint << 32) | objid::bigint = ('x' || left(replace({column}::text, '-', ''), 16))::bit(64)::bigint
)"""
# Primary keys in the order of the fingerprints, null for none. An empty fingerprint is none, which names the partial index.
FIND_SQL: Final = f"""
SELECT array_agg((
  SELECT response.id FROM responses_app_response response LEFT JOIN responses_app_lease lease ON lease.response_id = response.id
  WHERE response.fingerprint = asked.fingerprint AND response.fingerprint <> '' AND (
    left(response.fingerprint, 1) = '{KEY}' OR response.ended_at > clock_timestamp() - make_interval(secs => {WINDOW_S})
    OR (response.ended_at IS NULL AND (lease.epoch > 1 OR lease.worker IS NULL
      OR NOT {HOLDS_LOCK_SQL.format(column="lease.worker")}))
  ) ORDER BY response.id DESC LIMIT 1
) ORDER BY asked.place) FROM unnest($1::text[]) WITH ORDINALITY AS asked(fingerprint, place)
"""  # noqa: S608 - constants of this module alone
HOLD_SQL: Final = "SELECT pg_advisory_lock_shared(%s)"


def fingerprint(letter: str, *parts: bytes) -> str:
    """Return the hash of a request: KEY or BODY, and what identifies the sender and the request."""
    digest = blake2b(digest_size=24)
    for part in parts:
        digest.update(b"%d:" % len(part))
        digest.update(part)
    return letter + digest.hexdigest()


def after_end(row: Response, *, in_first_process: bool) -> str:
    """Return the fingerprint of a response that has ended: empty if no repeated request shall get the response.

    In the first process the client got the end, and only an idempotency key stays. Neither fingerprint stays if the client has no
    answer and may send the request again: the connection broke and the response was cancelled, or the server or the engine failed.
    """
    has_failed = row.status == Status.FAILED and row.error_code not in LASTING_ERRORS
    if not row.background and (has_failed or row.status == Status.CANCELLED):
        return ""
    return "" if in_first_process and not row.fingerprint.startswith(KEY) else row.fingerprint


def lock_number(worker: UUID) -> int:
    """Return the number of the lock of a process, as HOLDS_LOCK_SQL computes it: the first eight bytes, signed."""
    return int.from_bytes(worker.bytes[:8], signed=True)


def forget(pk: int) -> None:
    """Forget the fingerprint of a body, because the client has the whole response."""
    Response.objects.filter(pk=pk, fingerprint__startswith=BODY).update(fingerprint="")


def find(fingerprints: Sequence[str]) -> list[int | None]:
    """Find the responses to which repeated requests belong. Return the primary key for each fingerprint."""
    ((keys,),) = execute_prepared(FIND_SQL, [list(fingerprints)])
    return list(keys)
