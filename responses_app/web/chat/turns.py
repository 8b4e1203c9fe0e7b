"""Turns of a chat thread: the responses from the first to the selected, with input, result and branches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import orjson
from django.db.models import Q

from responses_app.models import BRANCH, Direction, Item, Response, Status
from responses_app.store.log import reader
from responses_app.web.render.item_blocks import ItemBlock
from responses_app.web.response import items as response_items
from responses_app.web.response.outcome import ending
from responses_app.web.response.timelines.times import times_of
from responses_app.web.responses.parameters import parameters

# Fields of a snapshot for the page.
SHOWN_FIELDS = ("status", "output", "error", "usage", "incomplete_details", "output_problems")
# A longer thread shows only the latest turns.
MAX_TURNS = 200

Parents: TypeAlias = Mapping[str, str | None]


def turns_of(row: Response, *, newest: bool = False) -> dict[str, Any]:
    """Return the turns up to `row`, with `newest` up to the newest continuation of `row`.

    A response whose approval is decided goes on in the continuation: a second decision would be refused.
    `newer` is the id of a response of a newer branch, None if the turns end with the newest response of the conversation.
    `earlier` counts the context items before the first turn. `conversation` is the id of the conversation of the last turn.
    `parameters` belong to the last request with a message, for the next request.
    """
    responses = _responses_of_thread(row)
    parents = _parents(responses)
    newest = newest or _is_decided(responses, parents, row.uid)
    chain = _chain(responses, parents, _newest(responses, parents, row.uid) if newest else row.uid)[-MAX_TURNS:]
    if not chain:
        # A response stored only for polling belongs to no thread.
        responses = chain = [row]
    turns = _turns(chain)
    for turn in turns:
        turn["previous"] = parent = parents.get(turn["id"])
        turn["siblings"] = [
            # Reruns are no branches of a chat.
            other.uid
            for other in responses
            if parents.get(other.uid) == parent and (not other.rerun_of or other.uid == turn["id"])
        ]
    if turns[0]["previous"] is None:
        turns[0]["siblings"] = _first_branches(row.project, chain[0])
    history: list[int] = Response.objects.filter(pk=chain[0].pk).values_list("history", flat=True)[0]
    last = chain[-1].conversation
    last_request = next(
        (row for row, turn in zip(reversed(chain), reversed(turns), strict=False) if _has_message(turn)), chain[-1]
    )
    return {
        "turns": turns,
        "newer": _newer(responses, parents, chain, turns[0]["siblings"]),
        "earlier": len(history),
        "conversation": last.uid if last is not None else None,
        "parameters": _without_branch(parameters(last_request)),
    }


def chain_of(row: Response) -> list[Response]:
    """Return the responses of the thread from the first to `row`, of which only the columns of the thread are loaded."""
    responses = _responses_of_thread(row)
    return _chain(responses, _parents(responses), row.uid) or [row]


def input_messages(row: Response) -> list[str]:
    """Return the fragments of the messages in the input of a response, in order."""
    stored = Item.objects.filter(response=row, direction=Direction.INPUT, type="message").order_by("pk")
    items = [orjson.loads(body) for body in stored.values_list("body", flat=True)]
    return [response_items.fragment(row, block) for block in response_items.item_renderer(row, items).blocks(items)]


def _has_message(turn: Mapping[str, Any]) -> bool:
    """Return True if the input of a turn has a message, not only outputs of tools."""
    return any(item.get("type", "message") == "message" for item in turn["input"])


def _without_branch(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters without the metadata key of the chat page."""
    metadata = {name: value for name, value in parameters.get("metadata", {}).items() if name != BRANCH}
    return {
        **{name: value for name, value in parameters.items() if name != "metadata"},
        **({"metadata": metadata} if metadata else {}),
    }


def _responses_of_thread(row: Response) -> list[Response]:
    """Return the stored responses of the thread by creation. In a conversation, include branches out of the conversation."""
    rows = Response.objects.filter(project=row.project, thread=row.thread, stored=True).order_by("pk")
    return list(rows.select_related("conversation").only("uid", "previous_uid", "metadata", "rerun_of", "conversation__uid"))


def _parents(responses: Sequence[Response]) -> Parents:
    """Return the parent of each response: in a conversation the previous response of the conversation."""
    parents: dict[str, str | None] = {}
    before = None
    for row in responses:
        parents[row.uid] = before if row.conversation_id else row.previous_uid
        before = row.uid if row.conversation_id else before
    return parents


def _newest(responses: Sequence[Response], parents: Parents, uid: str) -> str:
    """Return the newest descendant of `uid`. Children are always newer than parents."""
    descendants = {uid}
    for row in responses:
        if parents[row.uid] in descendants and not row.rerun_of:
            descendants.add(row.uid)
            uid = row.uid
    return uid


def _is_decided(responses: Sequence[Response], parents: Parents, uid: str) -> bool:
    """Return whether a continuation of `uid` decides about an approval."""
    children = [row.pk for row in responses if parents[row.uid] == uid and not row.rerun_of]
    decisions = Item.objects.filter(response__in=children, direction=Direction.INPUT, type="mcp_approval_response")
    return bool(children) and decisions.exists()


def _chain(responses: Sequence[Response], parents: Parents, uid: str | None) -> list[Response]:
    by_uid = {row.uid: row for row in responses}
    chain: list[Response] = []
    while row := by_uid.get(uid or ""):
        chain.append(row)
        uid = parents[row.uid]
    return chain[::-1]


def _first_branches(project: str, first: Response) -> list[str]:
    """Return the ids of all first responses with the same original first message."""
    origin = first.metadata.get(BRANCH) or first.uid
    firsts = (
        Response.objects.filter(project=project, previous_uid=None, stored=True).order_by("pk").values_list("uid", flat=True)
    )
    # The condition `~Q(metadata={})` lets Postgres use the partial index on the metadata.
    return [*firsts.filter(uid=origin), *firsts.filter(~Q(metadata={}), metadata__contains={BRANCH: origin})]


def _newer(responses: Sequence[Response], parents: Parents, chain: Sequence[Response], firsts: Sequence[str]) -> str | None:
    """Return the newest response outside `chain`: of the thread, or the first of a newer thread in `firsts`."""
    first, last = chain[0].uid, chain[-1].uid
    if first in firsts and firsts[-1] != first:
        return firsts[-1]
    newest = _newest(responses, parents, first) if first in parents else last
    return newest if newest != last else None


def _turns(chain: Sequence[Response]) -> list[dict[str, Any]]:
    keys = [row.pk for row in chain]
    inputs = defaultdict(list)
    items = Item.objects.filter(response__in=keys, direction=Direction.INPUT).order_by("pk")
    for pk, body in items.values_list("response_id", "body"):
        inputs[pk].append(orjson.loads(body))
    rows = reader.with_last_event(Response.objects.filter(pk__in=keys)).defer("history").order_by("pk")
    responses = list(rows)
    turns = [_turn(row, inputs[row.pk]) for row in responses]
    fragments = response_items.thread_fragments(
        [(row, turn["input"], (turn["response"] or {}).get("output", [])) for row, turn in zip(responses, turns, strict=True)]
    )
    for turn in turns:
        turn["fragments"] = fragments[turn["id"]]
    return turns


def _turn(row: Any, input_items: list[dict[str, Any]]) -> dict[str, Any]:
    stored = reader.terminal_snapshot(row)
    snapshot = orjson.loads(stored) if stored else {}
    return {
        "id": row.uid,
        "model": row.model,
        "status": row.status,
        "metadata": row.metadata,
        "input": input_items,
        "speakers": {item["id"]: _speaker(item) for item in input_items},
        "times": {**times_of(row), "ending": ending(snapshot) if row.status == Status.INCOMPLETE else ""},
        "response": {name: value for name, value in snapshot.items() if name in SHOWN_FIELDS} or None,
    }


def _speaker(item: Mapping[str, Any]) -> str:
    speaker = ItemBlock(item, []).speaker
    return "You" if speaker == "User" else speaker
