"""Base classes of item families: deltas, the description of a family, and the open item.

Methods of open items return events without sequence numbers. They never change a dict that an event already holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias, cast

from responses_app.protocol import events
from responses_app.protocol.content_parts import PartSpec
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import ArgumentStreamSpec, Event
from responses_app.protocol.ids import IdFactory

Json: TypeAlias = Mapping[str, Any]
Item: TypeAlias = dict[str, Any]
Encryptor: TypeAlias = Callable[[Json], str]
"""Return the `encrypted_content` of a finished reasoning item."""

COMPLETED_OR_INCOMPLETE: Final = frozenset({"completed", "incomplete"})
COMPLETED_INCOMPLETE_OR_FAILED: Final = frozenset({"completed", "incomplete", "failed"})


@dataclass(slots=True)
class Delta:
    """Base class of deltas, the inputs of the writer: output of the model, or progress and results of a tool.

    Do not change a delta. The classes are not frozen, because a frozen dataclass takes four times as long to create, for every token.
    """


class OpenedWhenComplete(Delta):
    """Base class of deltas that open a call when the arguments are complete, in a field `arguments`."""

    __slots__ = ()

    def with_arguments(self, arguments: str) -> Delta:
        """Return the delta with the complete `arguments`."""
        opening: Any = self
        return cast("Delta", replace(opening, arguments=arguments))


@dataclass(slots=True)
class EndItem(Delta):
    """End of the current item. A call that waits for a result of the server stays open, with complete arguments."""


@dataclass(slots=True)
class Arguments(Delta):
    """Text for the argument stream of the current call, exactly as generated: JSON arguments, free input or code."""

    text: str


@dataclass(slots=True)
class ForItem(Delta):
    """Delta for the open item at `output_index`: progress or the result of a tool, while other items are open too."""

    output_index: int
    delta: Delta


@dataclass(frozen=True, slots=True)
class OutputItem:
    """Input item with which a client answers an item; `key` is the key of the answered item's id in the answer."""

    type: str
    id_prefix: str
    key: str = "call_id"
    has_status: bool = True


@dataclass(frozen=True, slots=True)
class ReasoningForm:
    """Form of the reasoning items of a response. Without `encrypt` the items have no `encrypted_content`.

    With `has_summary` the summary is a copy of the reasoning text.
    """

    encrypt: Encryptor | None = None
    has_summary: bool = False


PLAIN_REASONING: Final = ReasoningForm()


class OpenItem:
    """Open item. The base class is for families without events between `added` and `done`."""

    __slots__ = ("body", "family", "id", "index", "kind", "reasoning_form")

    def __init__(self, family: Family, body: Item, index: int) -> None:
        self.family = family
        self.kind = family.type
        self.body = body
        self.id: str = body["id"]
        self.index = index
        self.reasoning_form = PLAIN_REASONING

    def take_opening(self, delta: Any) -> None:
        """Store the values of the opening `delta` that the initial item does not show."""

    def open(self) -> list[Event]:
        """Return the events that open the item."""
        added = events.item_added(self.index, self.body)
        return [added, self.progress("in_progress")] if "in_progress" in self.family.progress else [added]

    def accepts(self, _delta: Delta) -> bool:
        """Return whether the text of the delta belongs to this item."""
        return False

    def append_encoded(self, _delta: Delta, _number: int) -> EventFrame | None:
        """Append text whose only event is one more delta event, and return the event; None for any other delta."""
        return None

    def body_so_far(self) -> Item:
        """Return the item with the arguments so far."""
        return self.body

    def wait_for_result(self) -> list[Event]:
        """End the argument stream, if any, because another item begins."""
        return []

    def close(self, status: str) -> list[Event]:
        """Close the item without a result; families that have no such status close `completed`."""
        finals = self.family.final_statuses
        return [self.done({"status": status if status in finals else "completed"} if finals else {})]

    def replay(self, event: Json) -> None:
        """Apply a logged event of this item, so that the item can be continued or closed."""

    def done(self, changes: Json) -> Event:
        """Put `changes` into the item and return the closing event."""
        self.body = {**self.body, **changes}
        return events.item_done(self.index, self.body)

    def progress(self, stage: str) -> Event:
        """Return the progress event of `stage`."""
        return events.progress(self.kind, stage, self.id, self.index)


Step: TypeAlias = Callable[[Any, Any], list[Event]]
"""Apply a delta to an open item and return the events: `(item, delta) -> events`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraEvents:
    """Events of a family besides parts, argument stream and progress, for the reducer.

    `collect` has a function per event type that changes the collected texts. `merge` puts the texts into the item.
    """

    collect: Mapping[str, Callable[[list[str], Json], None]]
    merge: Callable[[Item, list[str]], Item]


DeltaClass: TypeAlias = type[Delta]
OpenItemClass: TypeAlias = type[OpenItem]


def _no_keys(_delta: Any, _new_id: IdFactory) -> Item:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Description of an item family: everything that the writer, the reducer and other packages need to know."""

    type: str
    id_prefix: str
    # The name of the kind of tool that an item of this family calls; empty for items that are no calls.
    tool: str = ""
    # The server runs the tool: the item stays open behind later items until its result is there.
    runs_on_server: bool = False
    # The item with which the client answers.
    output: OutputItem | None = None
    # The class of the open item.
    item: OpenItemClass = OpenItem
    # Deltas that open an item -> the `kind` that the delta must have, empty if the delta has none.
    opened_by: Mapping[DeltaClass, str] = field(default_factory=dict)
    # Make the keys of the initial item behind `id` and `type`.
    initial: Callable[[Any, IdFactory], Item] = _no_keys
    # The opening delta holds the whole item, which closes at once.
    whole: bool = False
    # Deltas of text -> the part that takes the text. A delta of text opens an item if the current one does not accept it.
    parts: Mapping[DeltaClass, PartSpec] = field(default_factory=dict)
    # Parts that no delta names: the item makes these itself.
    derived_parts: tuple[PartSpec, ...] = ()
    # Deltas that leave the item open, and deltas that close the item with a result.
    steps: Mapping[DeltaClass, Step] = field(default_factory=dict)
    results: Mapping[DeltaClass, Step] = field(default_factory=dict)
    argument_stream: ArgumentStreamSpec | None = None
    # The stages of the progress events, and the stage that an open item shows as its status.
    progress: tuple[str, ...] = ()
    running_status: str = ""
    # The statuses with which an item may end; empty if the family has no status.
    final_statuses: frozenset[str] = frozenset()
    extra_events: ExtraEvents | None = None

    def new_item(self, delta: Any, new_id: IdFactory) -> Item:
        """Return the initial item for the opening `delta`."""
        uid, ending = new_id(self.id_prefix), getattr(delta, "id_ending", "")
        # An id of the log, which a replay uses again, has the ending already.
        uid = uid if uid.endswith(ending) else uid + ending
        return {"id": uid, "type": self.type, **self.initial(delta, new_id)}

    @property
    def part_specs(self) -> tuple[PartSpec, ...]:
        """Return all types of parts."""
        return (*self.parts.values(), *self.derived_parts)

    def event_types(self) -> frozenset[str]:
        """Return the types of the events that only items of this family have."""
        progress = (f"response.{self.type}.{stage}" for stage in self.progress)
        stream = self.argument_stream
        arguments = () if stream is None else (stream.delta, stream.done)
        extra = () if self.extra_events is None else self.extra_events.collect
        parts = (name for part in self.part_specs for name in (part.delta, part.done, *part.delta_aliases))
        return frozenset((*progress, *arguments, *extra, *parts))
