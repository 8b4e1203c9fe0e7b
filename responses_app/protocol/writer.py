"""The writer: pieces in, numbered events out; the only state of the grammar.

Theory of operation
===================

A response has one writer. The writer is in one of four stages, and the methods move it along::

    new ──open()──▶ queued ──start()──▶ running ──complete() cut() fail() cancel()──▶ ended
       └──────────────open()──────────────▲

While it runs, `write` hands each piece to `output`, whose head explains the transition table, and numbers what comes back.

Six laws, and where they live:

1. Numbers are given in `_tell` alone, to events that are already built: no hole can arise (D5), no placeholder exists (D1).
2. Ids are minted in `items`, when an item is built, and nowhere else. An empty text, refusal, reasoning or summary opens
   nothing; log-probabilities of an empty text wait for the text they belong to.
3. The terminal snapshot is the first snapshot with the closed items and what only the end can know: status, usage, times and
   the error.
4. `fold` undoes all this.
5. Nobody here looks at the text of a piece but to see whether it is empty, so grouping changes the number of deltas and nothing
   else.
6. Every ending closes the open item first. `fail` tells the error after that, and the terminal event is last.

Arguments that do not parse
---------------------------

A completed function call must parse (rule C7), and a completed response may hold no incomplete item (T7). A model without a
constraint can break off inside its JSON and still stop. The call is then closed `incomplete`, and when `complete` is asked for,
the response *fails* with `server_error`. The other legal ending, `response.incomplete`, needs a reason, and all four that the
API knows (max_output_tokens, content_filter, max_messages, steered) would be untrue, and clients act on them. A `server_error`
is retried, which is what helps here. Nothing is lost: the items, the text of the call and the usage are all in the snapshot.
`cut` takes such calls as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from responses_app.protocol import events
from responses_app.protocol.constants import ERROR_CODES
from responses_app.protocol.deltas import Delta, Json
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items import Item
from responses_app.protocol.open_items import Encryptor
from responses_app.protocol.reducer import fold
from responses_app.protocol.restore import open_item_of
from responses_app.protocol.state_machine import OutputStateMachine

MALFORMED: Final = "The model ended a function call whose arguments are not valid JSON."


class Writer:
    """Writes one response. Every method returns its events, numbered from 0 without gaps, and raises GrammarError out of turn.

    `response` is a complete Response object (all keys of table 1.3), `in_progress` or `queued`. `mint` makes ids. `seal`, if
    given, makes the `encrypted_content` of each reasoning item, once (D13). Events and snapshots share their items: do not
    change them.
    """

    def __init__(self, response: Mapping[str, Any], mint: IdFactory, encrypt: Encryptor | None = None) -> None:
        if response["status"] not in ("queued", "in_progress"):
            raise ProtocolError(f"a response cannot begin {response['status']}")
        self._response: dict[str, Any] = {**response, "output": []}
        self._output = OutputStateMachine(mint, encrypt)
        self._stage = "new"
        self._number = 0

    @classmethod
    def for_ending(cls, told: Sequence[Json], mint: IdFactory, seal: Encryptor | None = None) -> Writer:
        """Restore the writer of a response from its first events.

        `told` are all events of some of the deltas that were written. The writer goes on with the next event; `mint` makes the
        ids of new items. Two things are not in the events: log-probabilities that wait for their text, and the queries of a file
        search that has no result.
        """
        whole = fold(told)
        writer = cls(whole, mint, seal)
        done = {event["output_index"] for event in told if event["type"] == "response.output_item.done"}
        writer._output.restore(dict(zip(sorted(done), whole["output"], strict=True)), *open_item_of(told, seal))
        writer._stage = "queued" if whole["status"] == "queued" else "running"
        writer._number = len(told)
        return writer

    @property
    def response(self) -> dict[str, Any]:
        """The snapshot: with the closed items while it runs, the terminal one at the end."""
        return self._response if self.ended else {**self._response, "output": list(self._output.items)}

    @property
    def ended(self) -> bool:
        """Whether the terminal event was written."""
        return self._stage == "ended"

    @property
    def is_queued(self) -> bool:
        """Whether the response is queued and has not started."""
        return self._stage == "queued"

    @property
    def items(self) -> list[Item]:
        """The closed items, in order."""
        return list(self._output.items)

    @property
    def pending_calls(self) -> list[tuple[int, Item]]:
        """Open items whose tool the server runs: the output index, and the item with the arguments so far."""
        return self._output.pending_calls

    @property
    def has_invalid_arguments(self) -> bool:
        """Whether a call was closed incomplete because its arguments do not parse: `complete` will fail the response."""
        return self._output.garbled

    # Stages

    def open(self) -> list[Event]:
        """`response.created`, then `queued` or `in_progress` after the status of the response."""
        self._must_be("new")
        self._stage = "queued" if self._response["status"] == "queued" else "running"
        return self._assign_numbers(
            [events.lifecycle(stage, dict(self._response)) for stage in ("created", self._response["status"])]
        )

    def start(self) -> list[Event]:
        """A queued response runs: `response.in_progress`."""
        self._must_be("queued")
        self._stage = "running"
        self._response = {**self._response, "status": "in_progress"}
        return self._assign_numbers([events.lifecycle("in_progress", dict(self._response))])

    def write(self, piece: Delta) -> list[Event]:
        """What this piece makes of the open items. Never a terminal event; may be nothing."""
        if self._stage != "running":
            raise ProtocolError(f"nothing can be said while a response is {self._stage}")
        return self._assign_numbers(self._output.apply(piece))

    # Endings

    def complete(self, now: int, usage: Json, *, fill: bool = True, aloud: bool = True, **extra: Any) -> list[Event]:
        """`response.completed`, at `now` (unix seconds); `extra` goes into the snapshot, as does the final `service_tier`.

        An answer without any item is given one message with one empty text (checklist 110), unless `fill` is False (warm-up,
        §1.7.4). Ends as a failure, `aloud` as in `fail`, if a function call does not parse: see the head of this file. Raises
        GrammarError while a tool that the server runs has no result.
        """
        self._must_be("queued", "running")
        if self._output.pending_tool is not None:
            raise ProtocolError(f"{self._output.pending_tool} has no result yet")
        told = self._ensure_in_progress() + self._output.close("completed")
        if self._output.garbled:
            if aloud:
                told += [events.error("server_error", MALFORMED, "server_error", None)]
            return self._end(told, "failed", "failed", usage, {"error": _error_object("server_error", MALFORMED), **extra})
        if fill and not self._output.items:
            told += self._output.empty_message()
        return self._end(told, "completed", "completed", usage, {"completed_at": now, **extra})

    def end_incomplete(self, reason: str, now: int, usage: Json, **extra: Any) -> list[Event]:  # noqa: ARG002
        """`response.incomplete`: max_output_tokens, content_filter, max_messages or steered (G1, G2, G3).

        The open item closes incomplete, earlier ones stay as they are. The time is taken as `complete` takes it, and is of no
        use here: `completed_at` is for completed responses alone (T4).
        """
        self._must_be("queued", "running")
        told = self._ensure_in_progress() + self._output.close("incomplete")
        return self._end(told, "incomplete", "incomplete", usage, {"incomplete_details": {"reason": reason}, **extra})

    def fail(
        self,
        code: str,
        message: str,
        type: str = "server_error",
        param: str | None = None,
        usage: Json | None = None,
        *,
        aloud: bool = True,
        **extra: Any,
    ) -> list[Event]:
        """The open item closes incomplete, then the error is told, then `response.failed` (law 6, G4).

        With `aloud` False there is no `error` event: on a WebSocket that is an answer of its own (§0, rule 5).
        """
        self._must_be("queued", "running")
        told = self._ensure_in_progress() + self._output.close("incomplete")
        if aloud:
            told += [events.error(code, message, type, param)]
        return self._end(told, "failed", "failed", usage, {"error": _error_object(code, message), **extra})

    def cancel(self, usage: Json | None = None, **extra: Any) -> list[Event]:
        """The open item closes incomplete, then `response.failed` with status `cancelled` and no error (§3.26 D4)."""
        self._must_be("queued", "running")
        told = self._ensure_in_progress() + self._output.close("incomplete")
        return self._end(told, "failed", "cancelled", usage, extra)

    # Within

    def _must_be(self, *stages: str) -> None:
        if self._stage not in stages:
            raise ProtocolError(f"not while the response is {self._stage}")

    def _assign_numbers(self, told: list[Event]) -> list[Event]:
        number = self._number
        self._number = number + len(told)
        if len(told) == 1:  # A delta, that is nearly always: without the machinery of a loop.
            return [events.with_number(told[0], number)]
        return [events.with_number(event, n) for n, event in enumerate(told, number)]

    def _ensure_in_progress(self) -> list[Event]:
        # Every stream says in_progress once (§2.3), even if the response ends while it waits.
        if self._stage == "running":
            return []
        self._response = {**self._response, "status": "in_progress"}
        return [events.lifecycle("in_progress", dict(self._response))]

    def _end(self, told: list[Event], stage: str, status: str, usage: Json | None, extra: Json) -> list[Event]:
        self._stage = "ended"
        self._response = {**self._response, "status": status, "output": self._output.items, "usage": usage, **extra}
        return self._assign_numbers([*told, events.lifecycle(stage, self._response)])


def _error_object(code: str, message: str) -> Item:
    return {"code": code if code in ERROR_CODES else "server_error", "message": message}
