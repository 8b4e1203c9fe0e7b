"""A thread as the chat page shows it: the responses from the first to one of them, each with its input, its end and its branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import orjson
from django.db.models import Q

from responses_app.models import Direction, Item, Response
from responses_app.store.log import reader
from responses_app.web.chat import times as chat_times
from responses_app.web.chat.threads import BRANCH
from responses_app.web.responses.parameters import parameters

# Of a snapshot, what the page shows.
SHOWN = ("status", "output", "error", "usage", "incomplete_details")
# Of a longer thread, its end.
MOST = 200

Parents: TypeAlias = Mapping[str, str | None]


def turns_of(row: Response, *, newest: bool = False) -> dict[str, Any]:
    """The turns up to `row`, or on to the newest response that follows it, and how many items came before them all.

    `conversation` is the id of the one that `row` stands in, and in which the thread goes on. `parameters` are those of the last request
    with a message: the thread goes on with them.
    """
    known = _known(row)
    parents = _parents(known)
    chain = _chain(known, parents, _newest(known, parents, row.uid) if newest else row.uid)[-MOST:]
    if not chain:
        # Kept for polling alone, it is in no thread.
        known = chain = [row]
    turns = _turns(chain)
    for turn in turns:
        turn["previous"] = above = parents.get(turn["id"])
        turn["siblings"] = [other.uid for other in known if parents.get(other.uid) == above]
    if turns[0]["previous"] is None:
        turns[0]["siblings"] = _firsts(row.project, chain[0])
    history: list[int] = Response.objects.filter(pk=chain[0].pk).values_list("history", flat=True)[0]
    last = chain[-1].conversation
    asked = next((row for row, turn in zip(reversed(chain), reversed(turns), strict=False) if _has_message(turn)), chain[-1])
    return {
        "turns": turns,
        "earlier": len(history),
        "conversation": last.uid if last is not None else None,
        "parameters": _without_branch(parameters(asked)),
    }


def _has_message(turn: Mapping[str, Any]) -> bool:
    """Whether a request has a message. One with outputs of tools alone goes on with the request before."""
    return any(item.get("type", "message") == "message" for item in turn["input"])


def _without_branch(told: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters without the mark that the page itself sets."""
    metadata = {name: value for name, value in told.get("metadata", {}).items() if name != BRANCH}
    return {
        **{name: value for name, value in told.items() if name != "metadata"},
        **({"metadata": metadata} if metadata else {}),
    }


def _known(row: Response) -> list[Response]:
    """The responses of the thread, or of the conversation and of what has left it, as they were made."""
    mine = Response.objects.filter(project=row.project, thread=row.thread, stored=True).order_by("pk")
    return list(mine.select_related("conversation").only("uid", "previous_uid", "metadata", "conversation__uid"))


def _parents(known: Sequence[Response]) -> Parents:
    """What each goes on from: in a conversation, what came before it there."""
    parents: dict[str, str | None] = {}
    before = None
    for row in known:
        parents[row.uid] = before if row.conversation_id else row.previous_uid
        before = row.uid if row.conversation_id else before
    return parents


def _newest(known: Sequence[Response], parents: Parents, uid: str) -> str:
    """The newest of what follows `uid`; a child is always newer than its parent."""
    after = {uid}
    for row in known:
        if parents[row.uid] in after:
            after.add(row.uid)
            uid = row.uid
    return uid


def _chain(known: Sequence[Response], parents: Parents, uid: str | None) -> list[Response]:
    by_uid = {row.uid: row for row in known}
    chain: list[Response] = []
    while row := by_uid.get(uid or ""):
        chain.append(row)
        uid = parents[row.uid]
    return chain[::-1]


def _firsts(project: str, first: Response) -> list[str]:
    """First responses that are branches of one first message."""
    origin = first.metadata.get(BRANCH) or first.uid
    firsts = (
        Response.objects.filter(project=project, previous_uid=None, stored=True).order_by("pk").values_list("uid", flat=True)
    )
    # Without the first condition the index of the metadata, which leaves the empty ones out, would not be used.
    return [*firsts.filter(uid=origin), *firsts.filter(~Q(metadata={}), metadata__contains={BRANCH: origin})]


def _turns(chain: Sequence[Response]) -> list[dict[str, Any]]:
    keys = [row.pk for row in chain]
    inputs = defaultdict(list)
    items = Item.objects.filter(response__in=keys, direction=Direction.INPUT).order_by("pk")
    for pk, body in items.values_list("response_id", "body"):
        inputs[pk].append(orjson.loads(body))
    rows = reader.with_last_event(Response.objects.filter(pk__in=keys)).defer("history").order_by("pk")
    found = list(rows)
    times = chat_times.told(found)
    return [_turn(row, inputs[row.pk], times[row.uid]) for row in found]


def _turn(row: Any, given: list[dict[str, Any]], times: chat_times.Times) -> dict[str, Any]:
    snapshot = reader.terminal_snapshot(row)
    return {
        "id": row.uid,
        "model": row.model,
        "status": row.status,
        "metadata": row.metadata,
        "input": given,
        "times": times,
        "response": {name: value for name, value in orjson.loads(snapshot).items() if name in SHOWN} if snapshot else None,
    }
