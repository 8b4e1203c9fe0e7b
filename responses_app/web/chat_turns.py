"""A thread as the chat page shows it: the responses from the first to one of them, each with its input, its end and its branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import orjson
from django.db.models import Q

from responses_app.models import Direction, Item, Response
from responses_app.store import replay
from responses_app.web.chat_threads import BRANCH

# Of a snapshot, what the page shows.
SHOWN = ("status", "output", "error", "usage", "incomplete_details")


def told(row: Response, *, newest: bool = False) -> dict[str, Any]:
    """The turns up to `row`, or on to the newest response that follows it, and how many items came before them all."""
    known = list(
        Response.objects.filter(project=row.project, thread=row.thread, stored=True)
        .order_by("pk")
        .only("uid", "previous_uid", "metadata")
    )
    chain = _chain(known, _newest(known, row.uid) if newest else row.uid)
    if not chain:
        # Kept for polling alone, it is in no thread.
        known = chain = [row]
    turns = _turns(chain)
    for turn, one in zip(turns, chain, strict=True):
        turn["siblings"] = [other.uid for other in known if other.previous_uid == one.previous_uid]
    if chain[0].previous_uid is None:
        turns[0]["siblings"] = _firsts(row.project, chain[0])
    history: list[int] = Response.objects.filter(pk=chain[0].pk).values_list("history", flat=True)[0]
    return {"turns": turns, "earlier": len(history)}


def _newest(known: Sequence[Response], uid: str) -> str:
    """The newest of what follows `uid`; a child is always newer than its parent."""
    after = {uid}
    for row in known:
        if row.previous_uid in after:
            after.add(row.uid)
            uid = row.uid
    return uid


def _chain(known: Sequence[Response], uid: str | None) -> list[Response]:
    by_uid = {row.uid: row for row in known}
    chain: list[Response] = []
    while row := by_uid.get(uid or ""):
        chain.append(row)
        uid = row.previous_uid
    return chain[::-1]


def _firsts(project: str, first: Response) -> list[str]:
    """First responses that are branches of one first message."""
    origin = first.metadata.get(BRANCH) or first.uid
    firsts = Response.objects.filter(project=project, previous_uid=None, stored=True).order_by("pk").values_list("uid", flat=True)
    # Without the first condition the index of the metadata, which leaves the empty ones out, would not be used.
    return [*firsts.filter(uid=origin), *firsts.filter(~Q(metadata={}), metadata__contains={BRANCH: origin})]


def _turns(chain: Sequence[Response]) -> list[dict[str, Any]]:
    keys = [row.pk for row in chain]
    inputs = defaultdict(list)
    items = Item.objects.filter(response__in=keys, direction=Direction.INPUT).order_by("pk")
    for pk, body in items.values_list("response_id", "body"):
        inputs[pk].append(orjson.loads(body))
    rows = replay.ends(Response.objects.filter(pk__in=keys)).defer("history").order_by("pk")
    return [_turn(row, inputs[row.pk]) for row in rows]


def _turn(row: Any, given: list[dict[str, Any]]) -> dict[str, Any]:
    snapshot = replay.terminal(row)
    return {
        "id": row.uid,
        "previous": row.previous_uid,
        "model": row.model,
        "status": row.status,
        "metadata": row.metadata,
        "input": given,
        "response": {name: value for name, value in orjson.loads(snapshot).items() if name in SHOWN} if snapshot else None,
    }
