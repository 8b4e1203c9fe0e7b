"""Publishing of encoded events: an event is made durable, and only then visible to subscribers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from responses_app.protocol.encoding import EncodedEvent
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.runs.execute.token_log import Entry, pack
from responses_app.store.log.records import Append, Ending, EventFrame, ResponseLog
from responses_app.store.log.writer import LogWriter


class DurablePublisher:
    """Way of the events of a run to the log and then to `broadcast`; without a log, events are visible at once.

    `unsaved` are the entries of the token log since the last append. The next append saves these entries beside its frames, so
    that all frames in the log can be produced again. `unsaved_outputs` are outputs of server tools for the model, by item id, which
    the next append saves, too. With `wait_for_commit` false only the opening and the terminal event wait for
    the database.
    """

    def __init__(
        self, broadcast: Broadcast, recorder: LogWriter, log: ResponseLog | None, *, wait_for_commit: bool = True
    ) -> None:
        self.broadcast = broadcast
        self.unsaved: list[Entry] = []
        self.unsaved_outputs: dict[str, ModelOutput] = {}
        self._recorder, self._log, self._wait_for_commit = recorder, log, wait_for_commit
        # Number of appends under way, the error of the last rejected one, and the waiter for the moment when none is under way.
        self._pending = 0
        self._rejected: Exception | None = None
        self._idle: asyncio.Future[None] | None = None
        self._record_first_delta(broadcast.frames)

    @property
    def is_stored(self) -> bool:
        """Return whether the response is stored."""
        return self._log is not None

    @property
    def pk(self) -> int | None:
        """Primary key of the response, once the first append is durable."""
        return self._log.row.pk if self._log is not None else None

    @property
    def epoch(self) -> int:
        """Epoch of the lease under which this process runs the response."""
        return self._log.epoch if self._log is not None else 0

    @property
    def item_keys(self) -> Sequence[int]:
        """Primary keys of the items, those of the input first, once the response has ended here; empty if nothing is stored."""
        return [*self._log.input_keys, *self._log.output_keys] if self._log is not None else []

    async def publish_and_wait(
        self,
        events: Sequence[EncodedEvent],
        *,
        opens: bool = False,
        starts: bool = False,
        strict: bool = False,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        """Make `events` durable, then visible. A cancellation during the wait loses nothing: the commit goes on.

        With `strict` the commit waits for the disk, in spite of the settings. Raises DatabaseError if the events cannot be
        written; then the events stay invisible.
        """
        if events:
            self._append(events, opens=opens, starts=starts, strict=strict, ending=ending)
            await self.wait_durable()

    def publish(self, events: Sequence[EncodedEvent]) -> None:
        """Publish without waiting. Await `wait_durable` before the next call: nothing may follow a rejected append."""
        if events:
            self._append(events)

    async def wait_durable(self) -> None:
        """Wait until all published events are durable and visible. Raises DatabaseError if an append was rejected."""
        if self._pending:
            await self.wait_idle()
        if self._rejected is not None:
            raise self._rejected

    async def wait_idle(self) -> None:
        """Wait until no append is under way. Only the task of the run may wait here."""
        while self._pending:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _append(
        self,
        events: Sequence[EncodedEvent],
        *,
        opens: bool = False,
        starts: bool = False,
        strict: bool = False,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        frames = self._frames(events)
        if self._log is None:
            self.unsaved.clear()
            self.unsaved_outputs.clear()
            self.broadcast.broadcast(frames)
            return
        self._record_first_delta(frames)
        end = ending() if ending is not None else None
        append = Append(self._log, frames, opens, starts, end, pack(self.unsaved), strict, self.unsaved_outputs)
        self.unsaved, self.unsaved_outputs = [], {}
        if not (self._wait_for_commit or end is not None or opens or strict):
            self._recorder.append(append, _ignore)
            self.broadcast.broadcast(frames)
            return
        self._pending += 1
        self._recorder.append(append, partial(self._on_appended, append))

    def _record_first_delta(self, frames: Sequence[EventFrame]) -> None:
        """Note the time of the first delta for the row of the response."""
        if self._log is not None and self._log.row.time_to_first_token_ms is None:
            self._log.row.time_to_first_token_ms = next((frame.ms for frame in frames if frame.type.endswith(".delta")), None)

    def _frames(self, events: Iterable[EncodedEvent]) -> list[EventFrame]:
        ms = 0 if self._log is None else int((time.time() - self._log.row.created_at.timestamp()) * 1000)
        return [EventFrame(number, type, data, ms) for number, type, data in events]

    def _on_appended(self, append: Append, error: Exception | None) -> None:
        """Broadcast the frames of an append that is durable; note the error of a rejected append."""
        self._pending -= 1
        if error is None:
            self.broadcast.broadcast(append.frames)
        else:
            self._rejected = error
        if not self._pending and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)


def _ignore(error: Exception | None) -> None:
    """Ignore the outcome of an append without a waiter; the recorder has logged the error."""
    del error
