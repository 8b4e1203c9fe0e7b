"""A run's way to its listeners: an event is encoded once, kept, and only then shown (decision F6)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import orjson

from responses_app.engine_interface import Chunk
from responses_app.protocol.events import Event
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.recover.token_log import pack
from responses_app.store.log.records import Append, Ending, EventFrame, ResponseLog
from responses_app.store.log.writer import LogWriter


class DurablePublisher(Broadcast):
    """A feed whose frames go through the recorder, unless there is no log.

    `fresh` are chunks that were heard since the last append: they are kept with the next one, so that whatever the log tells
    can be made again from what it heard.
    """

    def __init__(
        self, recorder: LogWriter, log: ResponseLog | None, *, wait_for_commit: bool, frames: Sequence[EventFrame] = ()
    ) -> None:
        super().__init__(frames)
        self.fresh: list[Chunk] = []
        self._recorder, self._log, self._patient = recorder, log, wait_for_commit
        # Appends under way, why the last one was refused, and who waits until none is under way.
        self._open = 0
        self._rejected_append: Exception | None = None
        self._settled: asyncio.Future[None] | None = None
        self._record_first_delta(frames)

    @property
    def stored(self) -> bool:
        """Whether the response is kept."""
        return self._log is not None

    @property
    def pk(self) -> int | None:
        """Its primary key, once it has one."""
        return self._log.row.pk if self._log is not None else None

    @property
    def epoch(self) -> int:
        """Under which number its lease is held."""
        return self._log.epoch if self._log is not None else 0

    async def publish_and_wait(
        self,
        events: Sequence[Event],
        *,
        opens: bool = False,
        starts: bool = False,
        closed: bool = False,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        """Make `events` durable, then visible. A cancellation while this waits loses nothing: the commit goes on.

        `closed` says that the model has said everything. Raises DatabaseError if they cannot be kept, and then nobody sees them.
        """
        if events:
            self._put(events, opens=opens, starts=starts, closed=closed, ending=ending)
            await self.wait_durable()

    def publish(self, events: Sequence[Event]) -> None:
        """As `tell`, and go on meanwhile. Whoever says more waits for `kept` before: what was refused has nothing behind it."""
        if events:
            self._put(events)

    async def wait_durable(self) -> None:
        """What was told is durable, and visible. Raises DatabaseError if it cannot be."""
        if self._open:
            await self.wait_idle()
        if self._rejected_append is not None:
            raise self._rejected_append

    async def wait_idle(self) -> None:
        """Wait for the commits that are under way, if any are. For the run's own task alone."""
        while self._open:
            self._settled = asyncio.get_running_loop().create_future()
            await self._settled

    def _put(
        self,
        events: Sequence[Event],
        *,
        opens: bool = False,
        starts: bool = False,
        closed: bool = False,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        frames = self._frames(events)
        if self._log is None:
            self.broadcast(frames)
            return
        self._record_first_delta(frames)
        end = ending() if ending is not None else None
        append = Append(self._log, frames, opens, starts, end, pack(self.fresh, closed=closed))
        self.fresh = []
        if not self._patient and end is None and not opens:
            self._recorder.append(append, _ignore)
            self.broadcast(frames)
            return
        self._open += 1
        self._recorder.append(append, partial(self._done, append))

    def _record_first_delta(self, frames: Sequence[EventFrame]) -> None:
        """When the model said its first word, which the row of the response tells when it has ended."""
        if self._log is not None and self._log.row.time_to_first_token_ms is None:
            self._log.row.time_to_first_token_ms = next((frame.ms for frame in frames if frame.type.endswith(".delta")), None)

    def _frames(self, events: Iterable[Event]) -> list[EventFrame]:
        ms = 0 if self._log is None else int((time.time() - self._log.row.created_at.timestamp()) * 1000)
        return [EventFrame(event["sequence_number"], event["type"], _encoded(event), ms) for event in events]

    def _done(self, append: Append, error: Exception | None) -> None:
        """What was appended is shown as soon as it is durable."""
        self._open -= 1
        if error is None:
            self.broadcast(append.frames)
        else:
            self._rejected_append = error
        if not self._open and self._settled is not None and not self._settled.done():
            self._settled.set_result(None)


def _encoded(event: Event) -> bytes:
    """Its JSON. Copied: what orjson returns holds four kilobytes, however short it is, and a run keeps thousands."""
    return bytes(memoryview(orjson.dumps(event)))


def _ignore(error: Exception | None) -> None:
    """Nobody waits for this append; the recorder has logged what was wrong."""
    del error
