"""Publishing of encoded events: an event is made durable, and only then visible to subscribers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.db import DatabaseError

from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.runs.execute.broadcast import Broadcast
from responses_app.store.log.records import Append, Ending, Fenced, ResponseLog, Route
from responses_app.store.log.token_log import Entry, pack
from responses_app.store.log.writer import LogWriter

# A run with so many events that are not durable yet takes no more tokens: a slow database slows the engine's stream down.
MAX_UNCOMMITTED_EVENTS = 128
# With RESPONSES_COALESCE_DELTAS, a run whose last events wait for their commit since COALESCE_AFTER_S takes no more tokens before the
# commit, or for MAX_COALESCE_S: the engine joins these tokens to one chunk, which becomes one event.
COALESCE_AFTER_S, MAX_COALESCE_S = 0.05, 0.02


@dataclass(slots=True)
class PendingAppend:
    """Append that grows until the log writer takes it.

    `entries` are the entries of the token log that produced its frames. The first `seen` frames are visible before the commit.
    `since` is the monotonic time of its first frame. `queued_for` is the route for which the append is queued; None if it is not
    queued yet.
    """

    append: Append
    entries: list[Entry] = field(default_factory=list)
    seen: int = 0
    queued_for: Route | None = None
    since: float = field(default_factory=time.monotonic)

    def take(self) -> Append:
        """Return the append. From now on the append does not change."""
        self.append.tokens = pack(self.entries)
        return self.append


class DurablePublisher:
    """Way of the events of a run to the log and then to `broadcast`; without a log, events are visible at once.

    At most one append is in the commit, and one waits for the next commit. The waiting append has everything that the run has
    published since. `unsaved` are the entries of the token log since the last event. The next events take these entries along,
    so that all frames in the log can be produced again. `unsaved_outputs` are outputs of server tools for the model, by item id,
    which go the same way. With RESPONSES_DURABILITY=terminal only the opening and the terminal event wait for the database.

    `on_rejected`, if set, is called when an append is rejected while the run does not wait for the commit.
    """

    def __init__(self, broadcast: Broadcast, recorder: LogWriter, log: ResponseLog | None) -> None:
        self.broadcast = broadcast
        self.unsaved: list[Entry] = []
        self.unsaved_outputs: dict[str, ModelOutput] = {}
        self.rejected: DatabaseError | None = None
        self.on_rejected: Callable[[], object] | None = None
        self._recorder, self._log = recorder, log
        self._wait_for_commit = settings.RESPONSES_DURABILITY != "terminal"
        self._coalesces = settings.RESPONSES_COALESCE_DELTAS and self._wait_for_commit
        # Of a clock that no change of the time of this host moves.
        self._created = 0.0 if log is None else time.monotonic() - (time.time() - log.row.created_at.timestamp())
        # Milliseconds since the response was created, when the first generation began behind tools that ran first.
        self._generation_since_ms = 0
        self._waiting: PendingAppend | None = None
        self._committing: PendingAppend | None = None
        # Frames that are not durable yet, and how many of these are not visible yet.
        self._uncommitted = self._hidden = 0
        # Waiter for the next commit.
        self._committed: asyncio.Future[None] | None = None
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

    @property
    def is_full(self) -> bool:
        """Return whether the run has to wait before it takes more tokens: much is not committed, or commits lag."""
        return self._uncommitted >= MAX_UNCOMMITTED_EVENTS or self._is_late

    @property
    def _is_late(self) -> bool:
        """Return whether several events wait for their commit since COALESCE_AFTER_S."""
        pending = self._waiting
        if pending is None or not self._coalesces or len(pending.append.frames) < 3:
            return False
        return time.monotonic() - pending.since > COALESCE_AFTER_S

    def publish(
        self,
        events: Sequence[EventFrame],
        *,
        opens: bool = False,
        starts: bool = False,
        strict: bool = False,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        """Make `events` durable, then visible, without waiting. Raises DatabaseError if an append was rejected: nothing may follow.

        With `strict` the commit waits for the disk, in spite of the settings.
        """
        if self.rejected is not None:
            raise self.rejected
        if not events:
            return
        if self._log is None:
            self.unsaved.clear()
            self.unsaved_outputs.clear()
            self.broadcast.broadcast(events)
            return
        frames = self._with_time(events)
        self._record_first_delta(frames)
        pending = self._add(self._log, frames)
        append = pending.append
        append.opens, append.starts = append.opens or opens, append.starts or starts
        append.wait_for_disk = append.wait_for_disk or strict
        if ending is not None:
            append.ending = ending()
        self._schedule(pending)
        if self._wait_for_commit or self._hidden or opens or strict or ending is not None:
            self._hidden += len(frames)
        else:
            pending.seen += len(frames)
            self.broadcast.broadcast(frames)

    async def publish_and_wait(
        self,
        events: Sequence[EventFrame],
        *,
        strict: bool = False,
        ending: Callable[[], Ending] | None = None,
    ) -> None:
        """Publish `events` and wait until all events are durable. A cancellation during the wait loses nothing: the commit goes on.

        Raises DatabaseError if events cannot be written; then these stay invisible.
        """
        self.publish(events, strict=strict, ending=ending)
        await self.wait_durable()

    async def wait_durable(self) -> None:
        """Wait until all published events are durable and visible. Raises DatabaseError if an append was rejected."""
        await self.wait_idle()
        if self.rejected is not None:
            raise self.rejected

    async def wait_idle(self) -> None:
        """Wait until no append is under way. Only the task of the run may wait here."""
        while self._uncommitted:
            await self._wait_for_commit_of_any()

    async def wait_room(self) -> None:
        """Wait until the run may take more tokens. Only the task of the run may wait here."""
        if self._is_late:
            timer = asyncio.get_running_loop().call_later(MAX_COALESCE_S, self._wake)
            await self._wait_for_commit_of_any()
            timer.cancel()
        while self._uncommitted >= MAX_UNCOMMITTED_EVENTS:
            await self._wait_for_commit_of_any()

    async def _wait_for_commit_of_any(self) -> None:
        self._committed = asyncio.get_running_loop().create_future()
        await self._committed

    def withdraw_opening(self, error: DatabaseError) -> None:
        """Reject the first append with `error`, unless a commit has begun with it."""
        if self._waiting is not None and self._committing is None and self._waiting.append.opens:
            self._reject(error)
            self._wake()

    def _wake(self) -> None:
        if self._committed is not None and not self._committed.done():
            self._committed.set_result(None)

    def _add(self, log: ResponseLog, frames: list[EventFrame]) -> PendingAppend:
        """Add `frames`, and what was not saved, to the append that waits."""
        pending = self._waiting
        if pending is None:
            pending = self._waiting = PendingAppend(Append(log, frames))
        else:
            pending.append.frames.extend(frames)
        pending.entries += self.unsaved
        self.unsaved.clear()
        if self.unsaved_outputs:
            pending.append.tool_outputs |= self.unsaved_outputs
            self.unsaved_outputs.clear()
        self._uncommitted += len(frames)
        return pending

    def _schedule(self, pending: PendingAppend) -> None:
        """Queue the append that waits for the route that it needs now, unless an earlier append is in the commit."""
        route = pending.append.route
        if self._committing is None and pending.queued_for != route:
            pending.queued_for = route
            self._recorder.enqueue(partial(self._take, pending, route), self._on_committed, route)

    def _take(self, pending: PendingAppend, queued_for: Route) -> Append | None:
        """Return `pending` for the commit that begins now; None if it was taken, dropped or queued for another route."""
        if pending is not self._waiting or pending.queued_for != queued_for:
            return None
        self._waiting, self._committing = None, pending
        return pending.take()

    def _on_committed(self, error: Exception | None) -> None:
        """Broadcast the frames of the append that was in the commit and queue the next; stop if the append was rejected."""
        done, self._committing = self._committing, None
        waiter, self._committed = self._committed, None
        try:
            if error is None and done is not None:
                self._release(done)
            else:
                self._reject(error)
        finally:
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
            elif self.rejected is not None and self.on_rejected is not None:
                self.on_rejected()

    def _release(self, done: PendingAppend) -> None:
        frames = done.append.frames
        self._uncommitted -= len(frames)
        if self._waiting is not None:
            self._schedule(self._waiting)
        self._hidden -= len(frames) - done.seen
        self.broadcast.broadcast(frames[done.seen :] if done.seen else frames)

    def _reject(self, error: Exception | None) -> None:
        """Drop what waits: its numbers may follow the events of a different worker."""
        self.rejected = error if isinstance(error, DatabaseError) else Fenced(str(error))
        self._waiting, self._uncommitted = None, 0

    def note_generation(self, ms: int | None) -> None:
        """Note the time of all generations for the row of the response; None if it is not known."""
        if self._log is not None:
            self._log.row.generation_ms = ms

    def restart_first_token(self) -> None:
        """Measure the time to the first token from now: so far tools ran, and the generation begins."""
        if self._log is not None:
            self._log.row.time_to_first_token_ms = None
            self._generation_since_ms = self._now_ms()

    def _record_first_delta(self, frames: Sequence[EventFrame]) -> None:
        """Note the time of the first delta for the row of the response."""
        if self._log is not None and self._log.row.time_to_first_token_ms is None:
            first = next((frame.ms for frame in frames if frame.type.endswith(".delta")), None)
            self._log.row.time_to_first_token_ms = None if first is None else max(0, first - self._generation_since_ms)

    def _now_ms(self) -> int:
        return int((time.monotonic() - self._created) * 1000)

    def _with_time(self, events: Iterable[EventFrame]) -> list[EventFrame]:
        ms = self._now_ms()
        return [EventFrame(number, type, data, ms) for number, type, data, _ in events]
