"""State machine of the output: deltas in, events of items without sequence numbers out.

Several items may be open. The parser writes to the current item, the last one that opened. `apply(delta)` looks the pair (class of
the delta, type of the current item) up in the transition table, which is derived from the registry of item families::

    delta                                 no item, or an item of any family
    text of a family's part               append: to the current item if that accepts the text, else to a new item
    any delta of `opened_by`              open: leave the current item, open another one (and close it, if it is whole)
    EndItem                               leave: close the current item, complete; or end its arguments and let it wait, if the
                                          server runs its tool
    ForItem                               apply a delta of `steps` or `results` to the open item at an output index

    delta                                 an item of the family that names the delta
    any delta of `steps`                  the item stays open
    any delta of `results`                the item closes with its result

An empty cell is a bug of the caller and raises ProtocolError before anything has changed. Ids and output indexes are given when an
item opens and never change. An ending of the response closes all open items, in the order of their indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Final, TypeAlias

from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.errors import ProtocolError
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import (
    PLAIN_REASONING,
    Delta,
    EndItem,
    ForItem,
    Item,
    Json,
    OpenItem,
    ReasoningForm,
    Step,
)
from responses_app.protocol.items.message import OUTPUT_TEXT, MessageItem, OpenTextPart, TextDelta
from responses_app.protocol.items.registry import FAMILIES, Registry
from responses_app.protocol.items.server_tools.tool_result import MODEL_OUTPUT, ModelOutput, ToolResult


class OutputStateMachine:
    """Closed and open items of a response, and the current item, to which the parser writes."""

    __slots__ = (
        "_closed",
        "_current",
        "_families",
        "_held",
        "_index",
        "_kind",
        "_model_outputs",
        "_new_id",
        "_reasoning_form",
        "_table",
        "_waiting",
    )

    def __init__(
        self, new_id: IdFactory, reasoning_form: ReasoningForm = PLAIN_REASONING, families: Registry = FAMILIES
    ) -> None:
        self._new_id = new_id
        self._reasoning_form = reasoning_form
        self._families = families
        self._table = transitions(families)
        self._index = 0
        # The current item, an OpenItem; its class follows from its type, the column of the table.
        self._current: Any = None
        self._kind = ""
        # Open items behind the current one, by output index: calls without their results.
        self._waiting: dict[int, OpenItem] = {}
        self._closed: dict[int, Item] = {}
        # Outputs of server tools that the model reads instead of the item, by output index.
        self._model_outputs: dict[int, ModelOutput] = {}
        # Log-probabilities of tokens without text, until the text of their phase comes.
        self._held: TextDelta | None = None

    @property
    def items(self) -> list[Item]:
        """Return the closed items, in the order of the output indexes."""
        return [self._closed[index] for index in sorted(self._closed)]

    @property
    def prompt_items(self) -> list[Item]:
        """Return the closed items as `items`, those of server tools with the key MODEL_OUTPUT where the tool gave one."""
        outputs = self._model_outputs
        return [
            {**self._closed[index], MODEL_OUTPUT: outputs[index]} if index in outputs else self._closed[index]
            for index in sorted(self._closed)
        ]

    def item_id(self, output_index: int) -> str:
        """Return the id of the closed item at `output_index`."""
        return str(self._closed[output_index]["id"])

    @property
    def opened_items(self) -> int:
        """Return the number of items opened so far, which is the output index of the next one."""
        return self._index

    @property
    def pending_tool(self) -> str | None:
        """Return the type of the first open item that waits for a tool of the server, or None."""
        return next((item.kind for item in self._open_items() if item.family.runs_on_server), None)

    @property
    def waiting_indexes(self) -> Set[int]:
        """Return the output indexes of the calls with complete arguments that wait for a tool of the server."""
        return self._waiting.keys()

    @property
    def current_index(self) -> int | None:
        """Return the output index of the item to which the parser writes, None between items."""
        return None if self._current is None else int(self._current.index)

    @property
    def all_items(self) -> list[Item]:
        """Return closed and open items by output index; open items as far as these are known."""
        bodies_by_index = {**self._closed, **{item.index: item.body_so_far() for item in self._open_items()}}
        return [bodies_by_index[index] for index in sorted(bodies_by_index)]

    def apply(self, delta: Delta) -> list[Event]:
        """Apply `delta` and return the events, possibly none. Raises ProtocolError if no open item takes the delta."""
        transition = self._table.get(delta.__class__, _NO_TRANSITIONS).get(self._kind)
        if transition is None:
            raise ProtocolError(f"{delta.__class__.__name__} is not possible in {self._kind or 'no item'}")
        return transition(self, delta)

    def append_encoded(self, delta: Delta, number: int) -> EventFrame | None:
        """Apply a delta whose only event is one more delta event, and return the event; None if `apply` must be called."""
        if self._current is None or self._held is not None:
            return None
        event: EventFrame | None = self._current.append_encoded(delta, number)
        return event

    def close(self, status: str) -> list[Event]:
        """Close all open items with `status`."""
        self._held = None
        return [event for item in self._open_items() for event in self._close_item(item, status)]

    def restore(self, closed: Mapping[int, Item], open_items: Sequence[OpenItem], count: int) -> None:
        """Continue with these items after `count` opened items. The last opened item is current if still open."""
        self._closed, self._index = dict(closed), count
        self._waiting = {item.index: item for item in open_items}
        self._current = self._waiting.pop(count - 1, None)
        self._kind = "" if self._current is None else self._current.kind

    def empty_message(self) -> list[Event]:
        """Return the events of a message with an empty text, for a model that generated nothing."""
        opened = self._open_item(TextDelta(""))
        message = self._current
        return [*opened, *message.append_empty_part(OUTPUT_TEXT), *self._close_item(message, "completed")]

    # Transitions

    def _append_to_message(self, delta: TextDelta) -> list[Event]:
        # The short way of nearly every delta: more text for the open text.
        item = self._current
        if delta.text and self._held is None and item.part.__class__ is OpenTextPart and item.phase == delta.phase:
            return [item.part.append(delta.text, delta.logprobs)]
        return self._append(delta)

    def _append(self, delta: Any) -> list[Event]:
        if not delta.text:
            return self._hold_logprobs(delta)
        logprobs = self._take_logprobs(delta)
        item = self._current
        opened: list[Event] = []
        if item is None or not item.accepts(delta):
            opened = self._open_item(delta)
            item = self._current
        appended: list[Event] = item.append(item.family.parts[delta.__class__], delta.text, logprobs)
        return opened + appended if opened else appended

    def _hold_logprobs(self, delta: Delta) -> list[Event]:
        # Tokens without text of their own (half a character) have log-probabilities: an open text takes them at once.
        if not isinstance(delta, TextDelta) or not delta.logprobs:
            return []
        item = self._current
        if isinstance(item, MessageItem) and item.accepts(delta) and isinstance(item.part, OpenTextPart):
            return [item.part.append("", delta.logprobs)]
        self._held = TextDelta("", self._take_logprobs(delta), delta.phase)
        return []

    def _take_logprobs(self, delta: Delta) -> Sequence[Json]:
        held, self._held = self._held, None
        if not isinstance(delta, TextDelta):
            return ()
        return delta.logprobs if held is None or held.phase != delta.phase else [*held.logprobs, *delta.logprobs]

    def _open_item(self, delta: Delta) -> list[Event]:
        family = self._families.opened_by(delta)
        emitted = self._leave()
        item = family.item(family, family.new_item(delta, self._new_id), self._index)
        item.reasoning_form = self._reasoning_form
        item.take_opening(delta)
        self._current, self._kind = item, item.kind
        self._index += 1
        return [*emitted, *item.open()]

    def _open(self, delta: Delta) -> list[Event]:
        opened = self._open_item(delta)
        return [*opened, *self._close_item(self._current, "completed")] if self._current.family.whole else opened

    def _leave(self, _delta: EndItem | None = None) -> list[Event]:
        self._held = None
        item = self._current
        if item is None:
            return []
        if not item.family.runs_on_server:
            return self._close_item(item, "completed")
        self._waiting[item.index] = item
        self._current, self._kind = None, ""
        emitted: list[Event] = item.wait_for_result()
        return emitted

    def _address(self, addressed: ForItem) -> list[Event]:
        item, delta = self._open_item_at(addressed.output_index), addressed.delta
        step = item.family.steps.get(delta.__class__)
        if step is not None:
            return step(item, delta)
        finish = item.family.results.get(delta.__class__)
        if finish is None:
            raise ProtocolError(f"{delta.__class__.__name__} is not possible for {item.kind}")
        return self._finish(item, finish, delta)

    def _finish(self, item: OpenItem, finish: Step, delta: Delta) -> list[Event]:
        emitted = finish(item, delta)
        if isinstance(delta, ToolResult) and delta.model_output is not None:
            self._model_outputs[item.index] = delta.model_output
        self._store_closed(item)
        return emitted

    # Items

    def _open_items(self) -> list[OpenItem]:
        current = [] if self._current is None else [self._current]
        return [self._waiting[index] for index in sorted(self._waiting)] + current

    def _open_item_at(self, output_index: int) -> OpenItem:
        item = next((item for item in self._open_items() if item.index == output_index), None)
        if item is None:
            raise ProtocolError(f"no item is open at output_index {output_index}")
        return item

    def _close_item(self, item: OpenItem, status: str) -> list[Event]:
        emitted = item.close(status)
        self._store_closed(item)
        return emitted

    def _store_closed(self, item: OpenItem) -> None:
        self._closed[item.index] = item.body
        if item is self._current:
            self._current, self._kind = None, ""
        else:
            del self._waiting[item.index]


Transition: TypeAlias = Callable[[OutputStateMachine, Any], list[Event]]
Table: TypeAlias = Mapping[type[Delta], Mapping[str, Transition]]

_NO_TRANSITIONS: Final[Mapping[str, Transition]] = {}


@lru_cache(8)
def transitions(families: Registry) -> Table:
    """Derive the transition table of a registry: class of the delta -> type of the current item -> transition."""
    table: dict[type[Delta], dict[str, Transition]] = {}
    anywhere = ("", *families)
    for delta, transition in ((EndItem, OutputStateMachine._leave), (ForItem, OutputStateMachine._address)):
        table[delta] = dict.fromkeys(anywhere, transition)
    for family in families.values():
        for opening in family.opened_by:
            table[opening] = dict.fromkeys(anywhere, OutputStateMachine._open)
        for text in family.parts:
            table[text] = dict.fromkeys(anywhere, OutputStateMachine._append)
        for step_delta, step in family.steps.items():
            table.setdefault(step_delta, {})[family.type] = _step(step)
        for result, finish in family.results.items():
            table.setdefault(result, {})[family.type] = _result(finish)
    table[TextDelta]["message"] = OutputStateMachine._append_to_message
    return table


def _step(step: Step) -> Transition:
    return lambda machine, delta: step(machine._current, delta)


def _result(finish: Step) -> Transition:
    return lambda machine, delta: machine._finish(machine._current, finish, delta)
