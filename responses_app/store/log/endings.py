"""SQL of the last append of a log: status and usage of the response, output items, release of the lease, webhook deliveries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from responses_app.models import Response, Status
from responses_app.protocol.items.registry import FAMILIES
from responses_app.store import repeats
from responses_app.store.db import execute_prepared
from responses_app.store.limits import counters
from responses_app.store.limits.usage import Spent, spent
from responses_app.store.log.openings import ITEM_COLUMNS_SQL, ITEM_ROWS_SQL, dump_rows, item_rows
from responses_app.store.log.records import Append, Ending

MAX_NAME_LENGTH: Final = 200
# Columns of a response that its end sets, and their types.
ENDING_COLUMNS: Final = {
    "status": "text",
    "ended_at": "timestamptz",
    "error_code": "text",
    "input_tokens": "integer",
    "cached_tokens": "integer",
    "output_tokens": "integer",
    "reasoning_tokens": "integer",
    "time_to_first_token_ms": "integer",
    "generation_ms": "integer",
    "tools": "text[]",
    "fingerprint": "text",
}
# What the response used beside its tokens, for its row of usage.
USAGE_COLUMNS: Final = {"calls": "integer", "cost": "bigint"}
_TYPES: Final = ", ".join(f"{name} {type}" for name, type in {**ENDING_COLUMNS, **USAGE_COLUMNS}.items())
# One prepared statement with two parameters for all responses that end in a commit. Django's `bulk_update` writes a CASE for each
# column of every row, which took 1 ms per response. `epoch` is null for a response without a lease. Only the holder of a lease may
# end a response: `responses_app_check_leases` refuses the commit if too few leases are released.
# A subquery with LIMIT looks up each response, and arrays name the rows to update and to delete: the conditions go to an index whatever the
# statistics are. As joins they read a whole index after an analysis of emptied tables, and all responses while these are few.
# Deliveries of webhooks are rows of the same transaction: no event is lost, and none is sent before the commit.
END_SQL: Final = f"""
WITH given AS MATERIALIZED (SELECT * FROM json_to_recordset($1) AS given(
  place integer, uid text, epoch integer, background boolean, project text, {_TYPES})),
ending AS MATERIALIZED (
  SELECT response.*, given.* FROM given,
    LATERAL (SELECT id, key_id, user_id, model FROM responses_app_response WHERE uid = given.uid LIMIT 1) AS response
), released AS (
  DELETE FROM responses_app_lease lease USING ending WHERE lease.response_id = ending.id AND lease.epoch = ending.epoch
    AND lease.response_id = ANY(ARRAY(SELECT id FROM ending))
  RETURNING lease.response_id
), ended AS (
  UPDATE responses_app_response response SET {", ".join(f"{name} = ending.{name}" for name in ENDING_COLUMNS)}
  FROM ending WHERE response.id = ending.id AND response.id = ANY(ARRAY(SELECT id FROM ending))
), items AS (
  INSERT INTO {ITEM_COLUMNS_SQL} SELECT item.uid, ending.id, item.project, 'output', item.type, item.body
  FROM {ITEM_ROWS_SQL} JOIN ending ON ending.uid = item.response ORDER BY item.place RETURNING id
), events AS MATERIALIZED (
  SELECT 'evt_' || replace(gen_random_uuid()::text, '-', '') AS event, 'response.' || status AS type, uid, project, ended_at
  FROM given WHERE background
), deliveries AS (
  INSERT INTO responses_app_webhookdelivery (uid, endpoint_id, event_uid, event_type, response_uid, created_at, due_at, status)
  SELECT 'wh_' || replace(gen_random_uuid()::text, '-', ''), endpoint.id, event, type, events.uid, ended_at, clock_timestamp(), 'pending'
  FROM events JOIN responses_app_webhookendpoint endpoint
    ON endpoint.project = events.project AND type = ANY(endpoint.event_types) AND endpoint.disabled_at IS NULL
), usage AS (
  INSERT INTO responses_app_usagerecord
    (start, seconds, project, key, "user", model, requests, input_tokens, cached_tokens, output_tokens, tool_calls, cost)
  SELECT ended_at, 0, project, key_id, user_id, model, 1,
    coalesce(input_tokens, 0), coalesce(cached_tokens, 0), coalesce(output_tokens, 0), calls, cost FROM ending
)
SELECT (SELECT array_agg(id ORDER BY id) FROM items),
  responses_app_check_leases((SELECT count(epoch) FROM given), (SELECT count(*) FROM released))
"""  # noqa: S608 - names of columns
# Appends input and output items to the conversations, without conversations deleted meanwhile. An input item with the id of an item
# of the conversation has the existing position.
ADD_ITEMS_SQL: Final = """
WITH locked AS MATERIALIZED (
  SELECT id FROM responses_app_conversation
  WHERE id IN (SELECT conversation_id FROM responses_app_response WHERE uid = ANY($1::text[])) ORDER BY id FOR UPDATE
)
INSERT INTO responses_app_conversationitem (conversation_id, item_id, uid)
SELECT locked.id, item.id, item.uid
FROM responses_app_response response
JOIN locked ON locked.id = response.conversation_id
JOIN responses_app_item item ON item.response_id = response.id
WHERE response.uid = ANY($1::text[]) ORDER BY item.id ON CONFLICT DO NOTHING
"""
# A failed or cancelled response adds nothing to its conversation.
ADDED_STATUSES: Final = (Status.COMPLETED, Status.INCOMPLETE)


def tool_names(items: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the names of the called functions, and the kinds of the called tools without a name, each once."""
    calls = ((item, FAMILIES[item["type"]].tool) for item in items if item["type"] in FAMILIES)
    names = {item.get("name") or tool for item, tool in calls if tool}
    # Postgres cannot store NUL, and a model may generate one.
    return sorted(name.replace("\0", "\ufffd")[:MAX_NAME_LENGTH] for name in names)


def end_logs(appends: Sequence[Append]) -> None:
    """End the responses of `appends`. Raises IntegrityError if a different worker holds a lease."""
    if not appends:
        return
    ((item_keys, _),) = execute_prepared(END_SQL, [text.decode() for text in end_parameters(appends)])
    note_ended(appends, item_keys)
    if uids := extends_conversation(appends):
        execute_prepared(ADD_ITEMS_SQL, [uids])
    if charged := [append for append in appends if append.log.charges]:
        counters.settle(settlement(charged))


def end_parameters(appends: Sequence[Append]) -> list[bytes]:
    """Return the parameters of END_SQL, in JSON, and set the columns of the rows."""
    rows, items = list[dict[str, Any]](), list[dict[str, Any]]()
    for append in appends:
        log, ending = append.log, _ending(append)
        _set_columns(log.row, ending)
        # The client has the end of the stream from the process to which the request was sent.
        log.row.fingerprint = repeats.after_end(log.row, in_first_process=log.epoch == 1)
        values = {name: getattr(log.row, name) for name in ENDING_COLUMNS}
        total, epoch = _spent(append), None if log.request is None else log.epoch
        other = {"background": log.row.background, "project": log.row.project, "calls": total.calls, "cost": total.cost}
        rows.append({"uid": log.row.uid, "epoch": epoch, **other, **values})
        items += item_rows(log, ending.items)
    return [dump_rows(rows), dump_rows(items)]


def settlement(appends: Sequence[Append]) -> bytes:
    """Return the parameter of SETTLE_SQL for responses with reservations, in JSON."""
    return counters.dump_differences(
        (charge, amounts) for append in appends for amounts in (_spent(append).amounts,) for charge in append.log.charges
    )


def _spent(append: Append) -> Spent:
    log, ending = append.log, _ending(append)
    return spent(log.row.model if log.request is None else log.request.model, ending.usage, ending.items)


def note_ended(appends: Sequence[Append], item_keys: Sequence[int] | None) -> None:
    """Note the primary keys of the items that END_SQL returned."""
    inserted = iter(item_keys or ())
    for append in appends:
        append.log.output_keys = [next(inserted) for _ in _ending(append).items]


def extends_conversation(appends: Sequence[Append]) -> list[str]:
    """Return the ids of the responses whose items are added to a conversation."""
    rows = [append.log.row for append in appends]
    return [row.uid for row in rows if row.conversation_id is not None and row.status in ADDED_STATUSES]


def _ending(append: Append) -> Ending:
    assert append.ending is not None  # noqa: S101 - of an append that ends a response
    return append.ending


def _set_columns(row: Response, ending: Ending) -> None:
    row.status, row.ended_at, row.error_code = ending.status, ending.ended_at, ending.error_code
    row.tools = tool_names(ending.items)
    _set_usage(row, ending.usage)


def _set_usage(row: Response, usage: Mapping[str, Any] | None) -> None:
    if usage is None:
        return
    row.input_tokens = usage["input_tokens"]
    row.cached_tokens = usage["input_tokens_details"]["cached_tokens"]
    row.output_tokens = usage["output_tokens"]
    row.reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"]
