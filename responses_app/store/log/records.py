"""Input of the log writer: logs, appends and endings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from responses_app.models import Response
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.store.content.images import ImageBytes
from responses_app.store.limits.counters import LimitCharge


class Fenced(DatabaseError):
    """Write refused, because a different worker has taken over the response."""


class Route(Enum):
    """Way of an append to the database."""

    # Only events of a running response: a COPY on a connection of the event loop.
    EVENTS = "events"
    # A response begins, starts or ends: a transaction on another connection of the event loop.
    ROWS = "rows"
    # Images and outputs of tools too: a transaction on Django's connection, in a thread.
    THREAD = "thread"


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Data to resume a run: the validated request as JSON, the token ids of the prompt, and the name of the model."""

    create_request: str
    prompt_tokens: Sequence[int]
    model: str
    priority: int = 0
    # Encrypted secrets of the request, which are deleted with the lease.
    secrets: bytes | None = field(default=None, repr=False)


@dataclass(slots=True)
class ResponseLog:
    """Log of a running response. `row` has a primary key as soon as the first append is durable.

    `worker` is the holder of the lease, or None while the response waits for capacity. `epoch` distinguishes successive holders.
    """

    row: Response
    input: Sequence[Mapping[str, Any]]
    # Images of the input, fetched from URLs.
    images: ImageBytes = field(default_factory=dict)
    request: RequestRecord | None = None
    worker: UUID | None = None
    epoch: int = 1
    # Reservations in the counters of limits, which the end of the response settles.
    charges: Sequence[LimitCharge] = ()
    # Concurrency slot of the request, which is deleted when the row of the response is inserted.
    slot: int | None = None
    # `OpenReservation` of the request, which is deleted then too: from then on the end of the response settles the charges.
    reservation: int | None = None
    # Primary keys of the items, set when the items are inserted.
    input_keys: Sequence[int] = ()
    output_keys: Sequence[int] = ()
    # Recent commits with the time of each: a crash of Postgres can lose them.
    recent: list[tuple[float, Append]] = field(default_factory=list, repr=False, compare=False)
    # The error of a refused append. Later appends are refused too, as their numbers may follow the events of a different worker.
    error: DatabaseError | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """End of a response: status, time, new items, usage and error code."""

    status: str
    ended_at: datetime
    items: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, Any] | None = None
    error_code: str = ""


@dataclass(slots=True)
class Append:
    """Unit of work of the log writer: frames to append to a log.

    `opens`: the first append of the log, inserts the response. `starts`: a queued response starts running.
    """

    log: ResponseLog
    frames: list[EventFrame]
    opens: bool = False
    starts: bool = False
    ending: Ending | None = None
    # Entries of the token log that produced these frames.
    tokens: bytes | None = None
    wait_for_disk: bool = False
    # Outputs of server tools for the model, by item id: their events are among the frames.
    tool_outputs: dict[str, ModelOutput] = field(default_factory=dict)

    @property
    def needs_transaction(self) -> bool:
        """Return whether there is more than frames of a running response, or the commit waits for the disk."""
        return bool(self.opens or self.starts or self.ending or self.wait_for_disk or self.tool_outputs)

    @property
    def route(self) -> Route:
        """Return the way to the database."""
        if self.tool_outputs or (self.opens and self.log.images):
            return Route.THREAD
        return Route.ROWS if self.needs_transaction else Route.EVENTS
