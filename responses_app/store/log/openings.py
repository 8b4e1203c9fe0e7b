"""SQL of the first append of a log: rows of the response, the input items, the request and the lease."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import orjson

from responses_app.models import Status
from responses_app.store.content import images
from responses_app.store.db import execute_prepared
from responses_app.store.log.records import Append, ResponseLog
from responses_app.store.log.token_log import encode_tokens

# Columns of a new response and their types. The other columns have their defaults.
RESPONSE_COLUMNS: Final = {
    "uid": "text",
    "request_id": "text",
    "project": "text",
    "key_id": "bigint",
    "model": "text",
    "status": "text",
    "background": "boolean",
    "streamed": "boolean",
    "stored": "boolean",
    "thread": "text",
    "previous_uid": "text",
    "rerun_of": "text",
    "api_format": "text",
    "fingerprint": "text",
    "user_id": "integer",
    "history": "bigint[]",
    "conversation_id": "bigint",
    "metadata": "jsonb",
    "error_code": "text",
    "created_at": "timestamptz",
}
# Columns of the lease and of the request, and the slot and the reservation that the row of the response replaces. `served`
# is null for a response without a request.
REQUEST_COLUMNS: Final = {
    "served": "text",
    "worker": "uuid",
    "epoch": "integer",
    "priority": "integer",
    "secrets": "text",
    "create_request": "text",
    "prompt_tokens": "text",
    "slot": "bigint",
    "reservation": "bigint",
}
_NAMES: Final = ", ".join(RESPONSE_COLUMNS)
_TYPES: Final = ", ".join(
    f"{name} {type}" for name, type in {"place": "integer", **RESPONSE_COLUMNS, **REQUEST_COLUMNS}.items()
)
# Rows of items in the order of the JSON array in a parameter, which becomes the order of the primary keys.
ITEM_ROWS_SQL: Final = (
    "json_to_recordset($2) AS item(place integer, uid text, response text, project text, type text, body text)"
)
ITEM_COLUMNS_SQL: Final = "responses_app_item (uid, response_id, project, direction, type, body)"
# One prepared statement with two parameters for all responses that begin in a commit. Four statements of Django's `bulk_create`
# took 0.3 ms per response in Python.
OPEN_SQL: Final = f"""
WITH given AS MATERIALIZED (SELECT * FROM json_to_recordset($1) AS given({_TYPES})),
response AS (
  INSERT INTO responses_app_response ({_NAMES}, tools, log_form) SELECT {_NAMES}, '{{}}', 0 FROM given ORDER BY place RETURNING id, uid
), request AS (
  INSERT INTO responses_app_storedrequest (response_id, create_request, prompt_tokens)
  SELECT response.id, create_request, decode(prompt_tokens, 'base64') FROM given JOIN response USING (uid) WHERE served IS NOT NULL
), lease AS (
  INSERT INTO responses_app_lease
    (response_id, worker, epoch, model, waiting, cancelled, priority, last_number, secrets, stalled_takeovers)
  SELECT response.id, worker, epoch, served, worker IS NULL, FALSE, priority, -1, decode(secrets, 'base64'), 0
  FROM given JOIN response USING (uid) WHERE served IS NOT NULL
), slot AS (
  DELETE FROM responses_app_concurrencyslot WHERE id = ANY(ARRAY(SELECT slot FROM given WHERE slot IS NOT NULL))
), reservation AS (
  DELETE FROM responses_app_openreservation WHERE id = ANY(ARRAY(SELECT reservation FROM given WHERE reservation IS NOT NULL))
  RETURNING id
), items AS (
  INSERT INTO {ITEM_COLUMNS_SQL} SELECT item.uid, response.id, item.project, 'input', item.type, item.body
  FROM {ITEM_ROWS_SQL} JOIN response ON response.uid = item.response ORDER BY item.place RETURNING id
)
SELECT (SELECT array_agg(id ORDER BY id) FROM response), (SELECT array_agg(id ORDER BY id) FROM items),
  (SELECT array_agg(id) FROM reservation)
"""  # noqa: S608 - names of columns

START_SQL: Final = f"""
WITH started AS (UPDATE responses_app_response SET status = '{Status.IN_PROGRESS}' WHERE uid = ANY($1::text[]) RETURNING id)
UPDATE responses_app_lease SET waiting = FALSE, started_at = clock_timestamp() FROM started WHERE response_id = started.id
"""  # noqa: S608 - a constant

# A response of a conversation must have read all items, and the history of any response must be stored still.
CHECK_HISTORY_SQL: Final = "SELECT responses_app_check_history($1::text[])"


def open_logs(appends: Sequence[Append]) -> None:
    """Insert the responses of `appends` with input items, requests and leases."""
    if not appends:
        return
    logs = [append.log for append in appends]
    (row,) = execute_prepared(OPEN_SQL, [text.decode() for text in open_parameters(logs)])
    note_opened(logs, *row)
    if uids := continuing(logs):
        execute_prepared(CHECK_HISTORY_SQL, [uids])
    for log in logs:
        if log.images:
            images.insert([(key, item["id"]) for key, item in zip(log.input_keys, log.input, strict=True)], log.images)


def open_parameters(logs: Sequence[ResponseLog]) -> list[bytes]:
    """Return the parameters of OPEN_SQL, in JSON."""
    items = [item for log in logs for item in item_rows(log, log.input)]
    return [dump_rows(map(_opening, logs)), dump_rows(items)]


def continuing(logs: Iterable[ResponseLog]) -> list[str]:
    """Return the ids of the responses with a conversation or a history."""
    return [log.row.uid for log in logs if log.row.conversation_id is not None or log.row.history]


def note_opened(
    logs: Sequence[ResponseLog], keys: Sequence[int], item_keys: Sequence[int] | None, reservations: Sequence[int] | None
) -> None:
    """Note the primary keys that OPEN_SQL returned for `logs`, and which of their reservations counted until now."""
    inserted = iter(item_keys or ())
    for log, key in zip(logs, keys, strict=True):
        log.row.pk = key
        log.input_keys = [next(inserted) for _ in log.input]
        if log.reservation is not None and log.reservation not in (reservations or ()):
            # This process hung, and another one gave the reservation back: the end must not give it back again.
            log.charges = [replace(charge, reserved=0) for charge in log.charges]


def _opening(log: ResponseLog) -> dict[str, Any]:
    row, request = log.row, log.request
    values = {name: getattr(row, name) for name in RESPONSE_COLUMNS}
    if request is None:
        return values
    return {
        **values,
        "served": request.model,
        "worker": log.worker,
        "epoch": log.epoch,
        "priority": request.priority,
        "secrets": None if request.secrets is None else b64encode(request.secrets).decode(),
        "create_request": request.create_request,
        "prompt_tokens": b64encode(encode_tokens(request.prompt_tokens)).decode(),
        "slot": log.slot,
        "reservation": log.reservation,
    }


def start_queued(uids: Sequence[str]) -> None:
    """Mark queued responses as running."""
    if uids:
        execute_prepared(START_SQL, [list(uids)])


def item_rows(log: ResponseLog, bodies: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return the columns of items; the id of the response identifies it in the statement."""
    for body in bodies:
        yield {
            "uid": body["id"],
            "response": log.row.uid,
            "project": log.row.project,
            "type": body["type"],
            "body": orjson.dumps(body).decode(),
        }


def dump_rows(rows: Iterable[dict[str, Any]]) -> bytes:
    """Return the JSON array of rows, each with the `place`."""
    return orjson.dumps([{"place": place, **row} for place, row in enumerate(rows)])
