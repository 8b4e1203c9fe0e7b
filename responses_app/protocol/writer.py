"""Writer of a response: deltas in, numbered events out.

The writer is in one of four stages, and its methods move it along::

    new ──open()──▶ queued ──start()──▶ running ──complete() end_incomplete() fail() cancel()──▶ ended
       └──────────────open()──────────────▲

While the writer runs, `write` hands each delta to `state_machine` and numbers the events that come back.

Six laws, and the places in the code:

1. `_assign_numbers` alone gives sequence numbers, to events that are already built, so the numbers have no holes.
2. An item gets its ids when it opens, and nowhere else. An empty text opens nothing; the log-probabilities of an empty text wait
   for the text of their phase.
3. The terminal snapshot is the first snapshot with the closed items and the values that only the end has: status, usage, times, the
   error and the output problems.
4. `reducer` is the inverse of the writer.
5. The writer looks at the text of a delta only to see whether it is empty, so a different grouping of the same text changes the
   number of delta events and nothing else.
6. Every ending closes the open items first. `fail` sends the error event after that, and the terminal event is last.

Arguments that are no JSON
--------------------------

A model without a constraint can end a call with arguments that are no JSON. The client gets the arguments as generated, in a
completed call of a completed response, so that the client can answer the call with an error for the model. The terminal snapshot
names the call in `output_problems`, with the problems that the parser found (`output_problems`). The key is absent without problems.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from responses_app.protocol import events
from responses_app.protocol.constants import ERROR_CODES
from responses_app.protocol.encoding import Encoder, EventFrame
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import PLAIN_REASONING, Delta, Encryptor, Item, Json, OpenItem, ReasoningForm
from responses_app.protocol.items.registry import FAMILIES, Registry
from responses_app.protocol.items.streamed_call import is_json
from responses_app.protocol.output_problems import (
    EMPTY_OUTPUT,
    INVALID_TOOL_ARGUMENTS,
    LocatedProblem,
    OutputProblem,
    ProblemList,
)
from responses_app.protocol.reducer import fold
from responses_app.protocol.state_machine import OutputStateMachine


class Writer:
    """Writer of a response. Methods return events numbered from 0 without gaps, and raise ProtocolError out of turn.

    `response` is a complete Response object, `in_progress` or `queued`; if its `reasoning.summary` is set, reasoning items have a
    summary. `new_id` makes ids. `encrypt`, if given, makes the `encrypted_content` of each reasoning item, once. Events and snapshots
    share their items: do not change them.
    """

    def __init__(
        self,
        response: Mapping[str, Any],
        new_id: IdFactory,
        encrypt: Encryptor | None = None,
        families: Registry = FAMILIES,
    ) -> None:
        if response["status"] not in ("queued", "in_progress"):
            raise ProtocolError(f"a response cannot begin {response['status']}")
        self._response: dict[str, Any] = {**response, "output": []}
        self._reasoning_form = ReasoningForm(encrypt, has_summary=_asks_for_summary(response))
        self.output = OutputStateMachine(new_id, self._reasoning_form, families)
        self._problems = ProblemList()
        self._stage = "new"
        self._number = 0

    @classmethod
    def restore(
        cls,
        logged: Sequence[Json],
        new_id: IdFactory,
        encrypt: Encryptor | None = None,
        families: Registry = FAMILIES,
    ) -> Writer:
        """Restore the writer of a response from a log.

        `logged` holds all events of the deltas written so far. The writer goes on with the next event; `new_id` makes the ids of
        new items. Four things are in no event: log-probabilities that wait for their text, the arguments of an open search, the
        problems of the output so far, and the outputs of server tools for the model alone.
        """
        snapshot = fold(logged, families=families)
        writer = cls(snapshot, new_id, encrypt, families)
        done = sorted(event["output_index"] for event in logged if event["type"] == "response.output_item.done")
        closed = dict(zip(done, snapshot["output"], strict=True))
        writer.output.restore(closed, *open_items_of(logged, writer._reasoning_form, families))
        writer._stage = "queued" if snapshot["status"] == "queued" else "running"
        writer._number = len(logged)
        return writer

    @property
    def response(self) -> dict[str, Any]:
        """Return the snapshot: with the closed items of a running response, or the terminal snapshot."""
        return self._response if self.ended else {**self._response, "output": self.output.items}

    @property
    def ended(self) -> bool:
        """Return True if the terminal event was written."""
        return self._stage == "ended"

    @property
    def is_queued(self) -> bool:
        """Return True if the response is queued and has not started."""
        return self._stage == "queued"

    @property
    def output_problems(self) -> list[Item]:
        """Return the problems of the parser, and the completed function calls whose arguments are no JSON."""
        items = self.output.items
        invalid = [
            LocatedProblem(INVALID_TOOL_ARGUMENTS, index, "")
            for index, item in enumerate(items)
            if item["type"] == "function_call" and item["status"] == "completed" and not is_json(item["arguments"])
        ]
        return self._problems.entries(items, invalid)

    # Stages

    def open(self) -> list[Event]:
        """Begin with `response.created`, then `queued` or `in_progress` by the status of the response."""
        self._must_be("new")
        self._stage = "queued" if self._response["status"] == "queued" else "running"
        return self._assign_numbers(
            [events.lifecycle(stage, dict(self._response)) for stage in ("created", self._response["status"])]
        )

    def start(self) -> list[Event]:
        """Start a queued response: `response.in_progress`."""
        self._must_be("queued")
        self._stage = "running"
        self._response = {**self._response, "status": "in_progress"}
        return self._assign_numbers([events.lifecycle("in_progress", dict(self._response))])

    def write(self, delta: Delta) -> list[Event]:
        """Apply `delta` to the open items and return the events, possibly none, never a terminal event."""
        if self._stage != "running":
            raise ProtocolError(f"no delta is possible while a response is {self._stage}")
        if delta.__class__ is OutputProblem:
            self._problems.add(delta, self.output.opened_items)
            return []
        return self._assign_numbers(self.output.apply(delta))

    def write_encoded(self, delta: Delta, encode: Encoder) -> list[EventFrame]:
        """Apply `delta` as `write` does, and return encoded events. More text of an open item needs no `encode`."""
        event = self.output.append_encoded(delta, self._number) if self._stage == "running" else None
        if event is not None:
            self._number += 1
            return [event]
        return [EventFrame(event["sequence_number"], event["type"], encode(event)) for event in self.write(delta)]

    # Endings

    def complete(self, now: int, usage: Json, *, fill: bool = True, **extra: Any) -> list[Event]:
        """End with `response.completed` at `now` (unix seconds). `extra` goes into the snapshot, as does the final `service_tier`.

        An answer without any item gets one message with one empty text, unless `fill` is False. Raises ProtocolError while a tool
        of the server has no result.
        """
        self._must_be("queued", "running")
        if self.output.pending_tool is not None:
            raise ProtocolError(f"{self.output.pending_tool} has no result yet")
        emitted = self._ensure_in_progress() + self.output.close("completed")
        if fill and not self.output.items:
            emitted += self.output.empty_message()
            self._problems.add(OutputProblem(EMPTY_OUTPUT), self.output.opened_items)
        return self._end(emitted, "completed", "completed", usage, {"completed_at": now, **extra})

    def end_incomplete(
        self,
        reason: str,
        now: int,  # noqa: ARG002
        usage: Json,
        limit: Json | None = None,
        **extra: Any,
    ) -> list[Event]:
        """End with `response.incomplete` for `reason`: max_output_tokens, content_filter, max_messages, max_run_seconds or steered.

        Open items close incomplete, closed ones stay as they are. `now` is there for the symmetry with `complete`: only completed
        responses have a `completed_at`. `limit` is beside the reason in `incomplete_details`.
        """
        self._must_be("queued", "running")
        emitted = self._ensure_in_progress() + self.output.close("incomplete")
        details = {"reason": reason, **(limit or {})}
        return self._end(emitted, "incomplete", "incomplete", usage, {"incomplete_details": details, **extra})

    def fail(
        self,
        code: str,
        message: str,
        type: str = "server_error",
        param: str | None = None,
        usage: Json | None = None,
        *,
        emit_error_event: bool = True,
        **extra: Any,
    ) -> list[Event]:
        """Close open items incomplete, then end with an error event and `response.failed`.

        With `emit_error_event` False there is no error event: on a WebSocket an error event is an answer of its own.
        """
        self._must_be("queued", "running")
        emitted = self._ensure_in_progress() + self.output.close("incomplete")
        if emit_error_event:
            emitted += [events.error(code, message, type, param)]
        return self._end(emitted, "failed", "failed", usage, {"error": _error_object(code, message), **extra})

    def cancel(self, usage: Json | None = None, **extra: Any) -> list[Event]:
        """Close open items incomplete, then end with `response.failed`, the status `cancelled` and no error."""
        self._must_be("queued", "running")
        emitted = self._ensure_in_progress() + self.output.close("incomplete")
        return self._end(emitted, "failed", "cancelled", usage, extra)

    # Numbers and snapshots

    def _must_be(self, *stages: str) -> None:
        if self._stage not in stages:
            raise ProtocolError(f"not possible while the response is {self._stage}")

    def _assign_numbers(self, emitted: list[Event]) -> list[Event]:
        number = self._number
        self._number = number + len(emitted)
        if len(emitted) == 1:  # Nearly always one delta event: without the overhead of a loop.
            return [events.with_number(emitted[0], number)]
        return [events.with_number(event, n) for n, event in enumerate(emitted, number)]

    def _ensure_in_progress(self) -> list[Event]:
        # Every stream has one in_progress event, even if the response ends in the queue.
        if self._stage == "running":
            return []
        self._response = {**self._response, "status": "in_progress"}
        return [events.lifecycle("in_progress", dict(self._response))]

    def _end(self, emitted: list[Event], stage: str, status: str, usage: Json | None, extra: Json) -> list[Event]:
        self._stage = "ended"
        self._response = {**self._response, "status": status, "output": self.output.items, "usage": usage, **extra}
        if problems := self.output_problems:
            self._response["output_problems"] = problems
        return self._assign_numbers([*emitted, events.lifecycle(stage, self._response)])


def _asks_for_summary(response: Json) -> bool:
    return bool((response.get("reasoning") or {}).get("summary"))


def _error_object(code: str, message: str) -> Item:
    return {"code": code if code in ERROR_CODES else "server_error", "message": message}


def open_items_of(
    events: Iterable[Json], reasoning_form: ReasoningForm = PLAIN_REASONING, families: Registry = FAMILIES
) -> tuple[list[OpenItem], int]:
    """Return the items that `events` leave open, in order, and how many items the events have opened."""
    items_by_index: dict[int, OpenItem] = {}
    count = 0
    for event in events:
        index = event.get("output_index")
        if event["type"] == "response.output_item.added":
            items_by_index[event["output_index"]] = _new_item(event, reasoning_form, families)
            count += 1
        elif event["type"] == "response.output_item.done":
            del items_by_index[event["output_index"]]
        elif index in items_by_index:
            items_by_index[index].replay(event)
    return [items_by_index[index] for index in sorted(items_by_index)], count


def _new_item(event: Json, reasoning_form: ReasoningForm, families: Registry) -> OpenItem:
    family = families[event["item"]["type"]]
    item = family.item(family, dict(event["item"]), event["output_index"])
    item.reasoning_form = reasoning_form
    return item
