"""SQL of the last append of a log: status and usage of the response, output items, release of the lease."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from django.db.backends.utils import CursorWrapper

from responses_app.models import Conversation, ConversationItem, Direction, Item, Response, Status
from responses_app.store.content.tool_names import tool_names
from responses_app.store.log.openings import build_items
from responses_app.store.log.records import Append, Fenced, ResponseLog

# One statement with one parameter for all responses that end in a commit. Django's `bulk_update` writes a CASE for each of nine
# columns of every row, which took 1 ms per response.
END_SQL = """UPDATE responses_app_response SET status = ending.status, ended_at = ending.ended_at, error_code = ending.error_code,
  input_tokens = ending.input_tokens, cached_tokens = ending.cached_tokens, output_tokens = ending.output_tokens,
  reasoning_tokens = ending.reasoning_tokens, time_to_first_token_ms = ending.time_to_first_token_ms, tools = ending.tools
FROM json_to_recordset(%s) AS ending(id bigint, status text, ended_at timestamptz, error_code text, input_tokens integer,
  cached_tokens integer, output_tokens integer, reasoning_tokens integer, time_to_first_token_ms integer, tools text[])
WHERE responses_app_response.id = ending.id
"""
RELEASE_SQL = (
    "DELETE FROM responses_app_lease WHERE (response_id, epoch) IN (SELECT * FROM unnest(%s::bigint[], %s::integer[]))"
)


def end_logs(cursor: CursorWrapper, appends: Sequence[Append]) -> None:
    """End the responses of `appends`. Raises Fenced if a different worker holds a lease."""
    if not appends:
        return
    _release_leases(cursor, [append.log for append in appends if append.log.request is not None])
    outputs: list[tuple[ResponseLog, list[Item]]] = []
    for append in appends:
        row, ending = append.log.row, append.ending
        assert ending is not None  # noqa: S101 - chosen by the caller
        row.status, row.ended_at, row.error_code = ending.status, ending.ended_at, ending.error_code
        _set_usage(row, ending.usage)
        row.tools = tool_names(ending.items)
        outputs.append((append.log, build_items(row, ending.items, Direction.OUTPUT)))
    Item.objects.bulk_create([item for _, items in outputs for item in items])
    for log, items in outputs:
        log.output_keys = [item.pk for item in items]
    ends = [{field: getattr(append.log.row, field) for field in ENDING_FIELDS} for append in appends]
    cursor.execute(END_SQL, [orjson.dumps(ends).decode()])
    _add_to_conversation([append.log.row for append in appends])


def _release_leases(cursor: CursorWrapper, logs: Sequence[ResponseLog]) -> None:
    """Delete the leases. Raises Fenced if a different worker holds a lease: only the holder may end a response."""
    if not logs:
        return
    cursor.execute(RELEASE_SQL, [[log.row.pk for log in logs], [log.epoch for log in logs]])
    released = cursor.rowcount
    if released != len(logs):
        raise Fenced(f"{len(logs) - released} of {len(logs)} leases are held by another worker")


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
ENDING_FIELDS = (
    "id",
    "status",
    "ended_at",
    "error_code",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "reasoning_tokens",
    "time_to_first_token_ms",
    "tools",
)


def _set_usage(row: Response, usage: Mapping[str, Any] | None) -> None:
    if usage is None:
        return
    row.input_tokens = usage["input_tokens"]
    row.cached_tokens = usage["input_tokens_details"]["cached_tokens"]
    row.output_tokens = usage["output_tokens"]
    row.reasoning_tokens = usage["output_tokens_details"]["reasoning_tokens"]
