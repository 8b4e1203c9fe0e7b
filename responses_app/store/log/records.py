"""What the recorder is handed: a log opens, events are appended, a log closes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from django.db import DatabaseError

from responses_app.models import Response

# Bytes by the id of an item and the URL in it.
ImageBytes: TypeAlias = Mapping[tuple[str, str], bytes]


class ConversationLocked(DatabaseError):
    """Another response of the conversation is under way."""


class Fenced(DatabaseError):
    """The response is run by somebody else by now: its log has gone on, or its lease is another's."""


class EventFrame(NamedTuple):
    """One encoded event: its number, its type, the JSON bytes that go to the log and to every listener alike, and its time.

    `ms` are milliseconds since the response was created.
    """

    number: int
    type: str
    data: bytes
    ms: int = 0


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What a run can be built again from: the order as JSON, the prompt as the model sees it, and which model."""

    create_request: str
    prompt_tokens: Sequence[int]
    model: str
    priority: int = 0


@dataclass(slots=True)
class ResponseLog:
    """A stored response while its run is alive. `row` has a primary key once its first append is durable.

    `worker` is who holds the lease, None for whoever has room first; `epoch` tells its holders apart.
    """

    row: Response
    input: Sequence[Mapping[str, Any]]
    # Images of the input that had to be fetched.
    images: ImageBytes = field(default_factory=dict)
    asked: RequestRecord | None = None
    worker: UUID | None = None
    epoch: int = 1
    # The primary keys of its items, once they are kept.
    asked_keys: Sequence[int] = ()
    said_keys: Sequence[int] = ()
    # What was committed lately, and when: a crash of Postgres can take it back.
    late: list[tuple[float, Append]] = field(default_factory=list, repr=False, compare=False)
    # What an append was refused with: whatever was written behind it would follow on another's words.
    refused: DatabaseError | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a response ended: its status, its new items, and its figures."""

    status: str
    ended_at: datetime
    items: Sequence[Mapping[str, Any]] = ()
    usage: Mapping[str, Any] | None = None
    error_code: str = ""


@dataclass(slots=True)
class Append:
    """One thing to make durable: the log, frames, whether they open the log or start what was queued, perhaps the ending."""

    log: ResponseLog
    frames: Sequence[EventFrame]
    opens: bool = False
    starts: bool = False
    ending: Ending | None = None
    # Entries of the token log that produced these frames.
    heard: bytes | None = None
    # Whether the commit waits for the disk.
    strict: bool = False
