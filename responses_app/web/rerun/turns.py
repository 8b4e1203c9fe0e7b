"""Turn of a response: the response with the later responses that only answer its calls, and the answers to calls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from responses_app.models import Direction, Item, Response
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.reducer import fold
from responses_app.store.log import reader
from responses_app.tools.recorded.calls import call_key
from responses_app.web.render.item_blocks import OUTPUT_TYPES, call_id_of
from responses_app.web.render.log_events import events

MAX_STEPS: Final = 16


@dataclass(frozen=True, slots=True)
class TurnStep:
    """Response of a turn with its own input, its output so far and its snapshot."""

    row: Response
    input: Sequence[Mapping[str, Any]]
    output: Sequence[Mapping[str, Any]]
    snapshot: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """Steps of a turn, oldest first. `answers` are the outputs and approvals that clients sent, by the id of the call."""

    steps: Sequence[TurnStep]
    answers: Mapping[str, Mapping[str, Any]]

    @property
    def last(self) -> TurnStep:
        """The newest response of the turn."""
        return self.steps[-1]

    @property
    def calls(self) -> Iterator[Mapping[str, Any]]:
        """Calls of all steps that a client answers: of functions and other client tools, and requests for approval."""
        return (item for step in self.steps for item in step.output if is_client_call(item))

    @property
    def open_calls(self) -> Sequence[Mapping[str, Any]]:
        """Calls that no client has answered."""
        return [call for call in self.calls if call_id_of(call) not in self.answers]


def is_client_call(item: Mapping[str, Any]) -> bool:
    """Return whether a client must answer `item`."""
    return bool(call_id_of(item)) and item["type"] not in OUTPUT_TYPES and item.get("status") != "incomplete"


def load_turn(row: Response) -> Turn:
    """Load the turn that begins with `row`. A next response belongs to the turn if its input only answers calls."""
    steps, answers = [load_step(row)], dict[str, Mapping[str, Any]]()
    while len(steps) < MAX_STEPS and any(map(is_client_call, steps[-1].output)):
        following = _next_response(steps[-1].row)
        if following is None:
            break
        step = load_step(following)
        found = {call_id_of(item): item for item in step.input if item["type"] in OUTPUT_TYPES}
        answers.update(found)
        if len(found) < len(step.input):
            break
        steps.append(step)
    return Turn(steps, answers)


def load_step(row: Response) -> TurnStep:
    """Load a response with its items; the output of a running response comes from its events."""
    bodies = Item.objects.filter(response=row, direction=Direction.INPUT).order_by("pk").values_list("body", flat=True)
    snapshot = _snapshot(row)
    return TurnStep(row, [json.loads(body) for body in bodies], snapshot.get("output", ()), snapshot)


def recorded_answers(original: Turn, run: Turn) -> list[Mapping[str, Any]] | None:
    """Return the input that answers the open calls of `run` with the stored answers; None unless every call has one.

    An answer belongs to a call with the same name and arguments. The n-th of equal calls gets the n-th answer.
    """
    stored: dict[object, list[Mapping[str, Any]]] = {}
    for call in original.calls:
        if call_id_of(call) in original.answers:
            stored.setdefault(call_key(call), []).append(original.answers[call_id_of(call)])
    seen: dict[object, int] = {}
    found: list[Mapping[str, Any]] = []
    for call in run.calls:
        key = call_key(call)
        place = seen[key] = seen.get(key, -1) + 1
        if call_id_of(call) in run.answers:
            continue
        if key not in stored:
            return None
        found.append(_answer_to(call, stored[key][min(place, len(stored[key]) - 1)]))
    return found


def unmatched_call(original: Turn, run: Turn) -> Mapping[str, Any] | None:
    """Return the first open call of `run` that the original does not have with the same name and arguments."""
    stored = {call_key(call) for call in original.calls if call_id_of(call) in original.answers}
    return next((call for call in run.open_calls if call_key(call) not in stored), None)


def _answer_to(call: Mapping[str, Any], answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored answer for another call."""
    name = "approval_request_id" if call["type"] == "mcp_approval_request" else "call_id"
    return {**{key: value for key, value in answer.items() if key not in ("id", "status")}, name: call_id_of(call)}


def _next_response(row: Response) -> Response | None:
    """Return the first response that continues `row`."""
    rows = Response.objects.filter(project=row.project, pk__gt=row.pk).select_related("conversation", "key").order_by("pk")
    if row.conversation_id is not None:
        return rows.filter(conversation=row.conversation_id).first()
    return rows.filter(thread=row.thread, previous_uid=row.uid).first()


def _snapshot(row: Response) -> dict[str, Any]:
    end = reader.with_last_event(Response.objects.filter(pk=row.pk)).only("pk").first()
    data = reader.terminal_snapshot(end) if end is not None else None
    if data is not None:
        return dict(json.loads(data))
    try:
        return dict(fold(events(row.pk), open_items=True))
    except ProtocolError:
        return {}
