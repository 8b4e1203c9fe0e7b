"""All lanes of one WebSocket, made as they are named: what may run at a time, and what may be remembered, they share."""

from __future__ import annotations

import asyncio

from responses_app.errors import ApiError, InvalidRequest
from responses_app.runs.context_cache import CachedContext
from responses_app.sockets.stream import QueuedRequest, SocketConnection, Stream

# Responses that run at a time, more wait; and names that a connection may use in its life (responses-api.md §1.7.3).
MOST_RUNNING = 16
MOST_NAMED = 32
# Requests that wait for their turn, their bytes, and the bytes of what is remembered.
MOST_WAITING = 256
MOST_ASKED = 128 * 1024 * 1024
MOST_KEPT = 128 * 1024 * 1024


class StreamRegistry:
    """The lanes of one connection."""

    def __init__(self, line: SocketConnection) -> None:
        self.begins = asyncio.Semaphore(MOST_RUNNING)
        self._line = line
        self._lanes: dict[str | None, Stream] = {}
        self._resting = asyncio.Event()
        self._resting.set()

    @property
    def made(self) -> int:
        """How many responses were made on them."""
        return sum(lane.made for lane in self._lanes.values())

    def lane(self, name: str | None) -> Stream:
        """The lane of that name. Raises Invalid `websocket_stream_limit_reached`."""
        known = self._lanes.get(name)
        if known is not None:
            return known
        if name is not None and len(self._lanes.keys() - {None}) >= MOST_NAMED:
            message = (
                f"This connection has used {MOST_NAMED} distinct values of 'stream_id', which is the limit. "
                "Use one of them again, or open a new connection."
            )
            raise InvalidRequest(message, param="stream_id", code="websocket_stream_limit_reached")
        lane = self._lanes[name] = Stream(name, self._line, self)
        return lane

    def known_lane(self, name: str | None) -> Stream | None:
        """The lane of that name, if it has been used. The default one always has."""
        return self.lane(None) if name is None else self._lanes.get(name)

    def add(self, lane: Stream, turn: QueuedRequest) -> None:
        """Give a lane something to do."""
        self._resting.clear()
        lane.add(turn)

    @property
    def is_full(self) -> bool:
        """Whether so many requests wait that another one has to be refused."""
        return sum(len(lane.turns) for lane in self._lanes.values()) >= MOST_WAITING or self.waiting_bytes > MOST_ASKED

    @property
    def waiting_bytes(self) -> int:
        """The bytes of the requests that wait."""
        return sum(turn.size for lane in self._lanes.values() for turn in lane.turns if not isinstance(turn, ApiError))

    def by_response(self, uid: str) -> Stream | None:
        """The lane on which that response is under way, or was the last."""
        for lane in self._lanes.values():
            if (lane.course is not None and lane.course.run.uid == uid) or (lane.last is not None and lane.last[0] == uid):
                return lane
        return None

    def cached(self, uid: str | None) -> CachedContext | None:
        """What is remembered of that response."""
        if uid is None:
            return None
        return next((lane.kept for lane in self._lanes.values() if lane.kept is not None and lane.kept.uid == uid), None)

    def evict(self, newest: Stream) -> None:
        """Forget what is too much, the newest last. What is stored can still be looked up."""
        lanes = [lane for lane in self._lanes.values() if lane.kept is not None and lane is not newest] + [newest]
        total = sum(lane.kept.size for lane in lanes if lane.kept is not None)
        while lanes and total > MOST_KEPT:
            lane = lanes.pop(0)
            total -= lane.kept.size if lane.kept is not None else 0
            lane.kept = None

    def on_idle(self) -> None:
        """A lane has nothing more to do."""
        if all(lane.idle for lane in self._lanes.values()):
            self._resting.set()

    async def wait_idle(self) -> None:
        """Wait until no lane has anything to do."""
        await self._resting.wait()

    async def close(self) -> None:
        """The client has gone."""
        for lane in self._lanes.values():
            await lane.close()
