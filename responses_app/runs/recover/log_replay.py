"""Replay of a log: produces the events of a run again from the token log, so that the run can continue behind the last event.

The result must be the log, byte for byte. Then the next event has the same ids, the same open items and the next number. Where the
result differs, because the code or the model was changed meanwhile, the response fails and its events stay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import orjson

from responses_app.dialects.base import OutputParser
from responses_app.engine_interface import GenerateRequest
from responses_app.protocol.deltas import Delta, EndItem, ForItem
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from responses_app.protocol.ids import IdFactory
from responses_app.protocol.items.base import Encryptor, Item
from responses_app.protocol.reducer import ids_in_order
from responses_app.protocol.writer import Writer
from responses_app.runs.execute.rounds import RoundProgress
from responses_app.runs.execute.usage import UsageCounter
from responses_app.runs.ids import new_id
from responses_app.store.log.token_log import CallStart, Entry, RoundEnd, RoundStart, unpack

StoredLog: TypeAlias = Sequence[tuple[EventFrame, bytes | None]]
PlanRound: TypeAlias = Callable[[int, Sequence[Item], int], Awaitable[tuple[GenerateRequest, OutputParser]]]


class ReplayMismatch(Exception):
    """Difference between the events of a replay and the events of the log."""


@dataclass(slots=True)
class ReplayedRun:
    """State of a run behind the last event.

    `tokens` are the tokens of the current round, `end` is the end of its generation if that is in the log, `progress` was before.
    """

    writer: Writer
    request: GenerateRequest
    parser: OutputParser
    tokens: list[int] = field(default_factory=list)
    end: RoundEnd | None = None
    progress: RoundProgress = field(default_factory=RoundProgress)


async def replay(
    log: StoredLog, request: GenerateRequest, parser: OutputParser, seal: Encryptor | None, plan_round: PlanRound
) -> ReplayedRun:
    """Replay `log`. `request` and `parser` are for the first round; `plan_round` creates the others. Raises ReplayMismatch."""
    events: list[dict[str, Any]] = [orjson.loads(frame.data) for frame, _ in log]
    writer = Writer(events[0]["response"], _known_first(ids_in_order(events)), seal)
    replay = _Replay(ReplayedRun(writer, request, parser), plan_round)
    replay.events += writer.open()
    if writer.is_queued and len(log) > len(replay.events):
        replay.events += writer.start()
    for entry in (entry for _, blob in log if blob is not None for entry in unpack(blob)):
        await replay.apply(entry)
    _compare(replay.events, [frame for frame, _ in log])
    return replay.state


class _Replay:
    """Replay of the entries of a token log."""

    def __init__(self, state: ReplayedRun, plan_round: PlanRound) -> None:
        self.state, self.events = state, list[Event]()
        self._plan_round = plan_round
        self._spent = UsageCounter()

    async def apply(self, entry: Entry) -> None:
        """Repeat the actions of the run up to `entry`. Raises ApiError if a round cannot be planned."""
        state = self.state
        if isinstance(entry, RoundStart):
            await self._start_round(entry)
        elif isinstance(entry, RoundEnd):
            state.end = entry
            self._spent = UsageCounter(entry.prompt, entry.cached, len(state.tokens), state.parser.reasoning_tokens)
            self._write([*state.parser.finish(), EndItem()])
        elif isinstance(entry, CallStart):
            state.progress = replace(state.progress, begun=state.progress.begun | {entry.output_index})
        elif isinstance(entry, ForItem):
            self._write([entry])
        else:
            state.tokens += entry.tokens
            self._write(state.parser.feed(entry))

    async def _start_round(self, start: RoundStart) -> None:
        state, items = self.state, self.state.writer.output.prompt_items
        progress = RoundProgress(state.progress.number + 1, len(items), state.progress.usage.plus(self._spent))
        request, state.parser = await self._plan_round(progress.number, items, progress.usage.output)
        state.request = replace(request, prompt=start.prompt)
        state.tokens, state.end, state.progress = [], None, progress

    def _write(self, pieces: Iterable[Delta]) -> None:
        self.events += [event for piece in pieces for event in self.state.writer.write(piece)]


def _compare(events: Sequence[Event], frames: Sequence[EventFrame]) -> None:
    if len(events) != len(frames):
        raise ReplayMismatch(f"{len(events)} events instead of {len(frames)}")
    for event, frame in zip(events, frames, strict=True):
        if orjson.dumps(event) != frame.data:
            raise ReplayMismatch(f"event {frame.number} is {event['type']} instead of {frame.type}, or differs in its content")


def _known_first(ids: Sequence[str]) -> IdFactory:
    """Return a source of ids: the ids of the log in order, then new ids."""
    known: Iterator[str] = iter(ids)

    def next_id(prefix: str) -> str:
        return next(known, None) or new_id(prefix)

    return next_id
