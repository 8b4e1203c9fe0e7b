"""Follower of a response: reads its stream through any web process and records every event."""

from __future__ import annotations

from random import Random

from tests.chaos.findings import Findings
from tests.chaos.load.http import ChaosStream, ConnectionBroken, HttpClient, ReceivedBlock, StreamSilent, pause_before_retry
from tests.chaos.system.processes import WebProcess
from tests.chaos.system.system import System

NEAR_THE_END = frozenset({"response.output_text.done", "response.function_call_arguments.done", "response.output_item.done"})
BEGUN = 5


class ResponseMissing(Exception):
    """Not found: the server answers 404 for the response."""


class StreamFollower:
    """Follower of a response. `seen` are its events from number 0 on without a gap; `over` means that the last one was terminal."""

    def __init__(self, system: System, http: HttpClient, findings: Findings, chance: Random, padded: bool) -> None:
        self.uid = ""
        self.seen: list[ReceivedBlock] = []
        self.over = self.marked = False
        self.connections = 0
        # Where it listens now, and whether its response holds a conversation meanwhile.
        self.web: WebProcess | None = None
        self.conversation = False
        self._system, self._http, self._findings, self._chance, self._padded = system, http, findings, chance, padded

    @property
    def last(self) -> int:
        """Return the number of the last event."""
        return len(self.seen) - 1

    async def follow(self, uid: str, until: int | None = None) -> None:
        """Read to the end, or to event `until`; reconnect to any web process as often as needed. Raises ResponseMissing."""
        self.uid = uid
        while not self.over and not self._reached(until):
            self.web = web = await self._system.pick_process(self._chance)
            try:
                async with self._http.stream(web, "GET", self._path()) as stream:
                    if stream.status == 404:
                        raise ResponseMissing(uid)
                    if stream.status == 200:
                        self.connections += 1
                        await self.read(stream, until)
                        if not self.over and not self._reached(until):
                            self._wrong("the stream ended well, but not with a terminal event")
                            return
                        continue
                    self._refused((await stream.refusal()).status)
            except ConnectionBroken as error:
                self.broke(error)
            await pause_before_retry()

    async def read(self, stream: ChaosStream, until: int | None = None) -> None:
        """Read the events of a connection. Raises ConnectionBroken."""
        try:
            async for block in stream.blocks():
                self._take(block)
                if self._reached(until):
                    return
        except ValueError as error:
            self._wrong(str(error))
            return
        if self.over and not self.marked:
            self._wrong("the stream ended without [DONE]")

    def broke(self, error: ConnectionBroken) -> None:
        """Count a broken connection; report a silent one as a contradiction."""
        self._findings.count("streams that broke")
        if isinstance(error, StreamSilent):
            self._wrong(f"{error}, after event {self.last}")

    def _reached(self, until: int | None) -> bool:
        return until is not None and self.last >= until

    def _take(self, block: ReceivedBlock) -> None:
        if block.number is None:
            if not self.over or self.marked:
                self._wrong("[DONE] where there is no end")
            self.marked = True
            return
        if self.over:
            self._wrong("an event after the terminal one", block)
        elif block.number != self.last + 1:
            self._wrong(f"number {block.number} where {self.last + 1} was due", block)
        else:
            self.seen.append(block)
            self.over = block.terminal
            self._notify(block)

    def _notify(self, block: ReceivedBlock) -> None:
        if block.name in NEAR_THE_END:
            self._system.moments.notify("end", self.web)
        elif self.conversation and block.number == BEGUN:
            self._system.moments.notify("conversation", self.web)

    def _path(self) -> str:
        after = f"&starting_after={self.last}" if self.seen else ""
        return f"/v1/responses/{self.uid}?stream=true&include_obfuscation={str(self._padded).lower()}{after}"

    def _refused(self, status: int) -> None:
        self._findings.count(f"resumes answered {status}")
        if status not in (500, 503):
            self._wrong(f"a resume was answered {status}")

    def _wrong(self, what: str, block: ReceivedBlock | None = None) -> None:
        number, seen = (block.number, block.data) if block else (None, b"")
        self._findings.contradict(self.uid or "?", what, number=number, seen=seen)
