"""SQL of the last append of a log: status and usage of the response, output items, release of the lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from responses_app.models import Conversation, ConversationItem, Item, Response, Status
from responses_app.store.content.tool_names import tool_names
from responses_app.store.db import execute_prepared
from responses_app.store.log.openings import ITEM_COLUMNS_SQL, ITEM_ROWS_SQL, dump_rows, item_rows
from responses_app.store.log.records import Append, Ending, Fenced, ResponseLog

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
    "tools": "text[]",
}
_TYPES: Final = ", ".join(f"{name} {type}" for name, type in ENDING_COLUMNS.items())
# One prepared statement with two parameters for all responses that end in a commit. Django's `bulk_update` writes a CASE for each
# column of every row, which took 1 ms per response. `epoch` is null for a response without a lease.
END_SQL: Final = f"""
WITH ending AS MATERIALIZED (SELECT * FROM json_to_recordset(%s) AS ending(place integer, id bigint, epoch integer, {_TYPES})),
released AS (
  DELETE FROM responses_app_lease lease USING ending WHERE lease.response_id = ending.id AND lease.epoch = ending.epoch
  RETURNING lease.response_id
), ended AS (
  UPDATE responses_app_response response SET {", ".join(f"{name} = ending.{name}" for name in ENDING_COLUMNS)}
  FROM ending WHERE response.id = ending.id
), items AS (
  INSERT INTO {ITEM_COLUMNS_SQL} SELECT item.uid, item.response::bigint, item.project, 'output', item.type, item.body
  FROM {ITEM_ROWS_SQL} ORDER BY item.place RETURNING id
)
SELECT (SELECT count(*) FROM released), (SELECT array_agg(id ORDER BY id) FROM items)
"""  # noqa: S608 - names of columns


def end_logs(appends: Sequence[Append]) -> None:
    """End the responses of `appends`. Raises Fenced if a different worker holds a lease."""
    if not appends:
        return
    ends = [(append.log, append.ending) for append in appends if append.ending is not None]
    for log, ending in ends:
        _set_columns(log.row, ending)
    items = [item for log, ending in ends for item in item_rows(log, log.row.pk, ending.items)]
    ((released, item_keys),) = execute_prepared(END_SQL, [dump_rows(_ending(log) for log, _ in ends), dump_rows(items)])
    leased = sum(log.request is not None for log, _ in ends)
    if released != leased:
        # Only the holder of a lease may end a response. The exception rolls the transaction back.
        raise Fenced(f"{leased - released} of {leased} leases are held by another worker")
    inserted = iter(item_keys or ())
    for log, ending in ends:
        log.output_keys = [next(inserted) for _ in ending.items]
    _add_to_conversation([log.row for log, _ in ends])


def _ending(log: ResponseLog) -> dict[str, Any]:
    values = {name: getattr(log.row, name) for name in ENDING_COLUMNS}
    return {"id": log.row.pk, "epoch": None if log.request is None else log.epoch, **values}


def _set_columns(row: Response, ending: Ending) -> None:
    row.status, row.ended_at, row.error_code = ending.status, ending.ended_at, ending.error_code
    row.tools = tool_names(ending.items)
    _set_usage(row, ending.usage)


def _add_to_conversation(rows: Sequence[Response]) -> None:
    """Append input and output items to the conversations. A failed or cancelled response adds nothing."""
    rows = [row for row in rows if row.conversation_id is not None and row.status in ADDED_STATUSES]
    if not rows:
        return
    # Without conversations deleted meanwhile.
    locked = Conversation.objects.select_for_update().filter(pk__in=[row.conversation_id for row in rows])
    conversations = {
        row.pk: row.conversation_id for row in rows if row.conversation_id in set(locked.values_list("pk", flat=True))
    }
    items = Item.objects.filter(response_id__in=conversations).order_by("pk").values_list("pk", "uid", "response_id")
    entries = [
        ConversationItem(conversation_id=conversations[response], item_id=pk, uid=uid)
        for pk, uid, response in items
        if response is not None
    ]
    # An input item with the id of an item of the conversation has the existing position.
    ConversationItem.objects.bulk_create(entries, ignore_conflicts=True)


ADDED_STATUSES = (Status.COMPLETED, Status.INCOMPLETE)


def _set_usage(row: Response, usage: Mapping[str, Any] | None) -> None:
    if usage is None:
        return
    row.input_tokens = usage["input_tokens"]
    row.cached_tokens = usage["input_tokens_details"]["cached_tokens"]
    row.output_tokens = usage["output_tokens"]
    row.reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"]
