"""Somebody who follows one response through any process, and writes down every byte."""

from __future__ import annotations

from random import Random

from bench.drill.findings import Findings
from bench.drill.http import Block, Broken, Silent, Stream, Wire, patiently
from bench.drill.parts import Web
from bench.drill.system import System

NEAR_THE_END = frozenset({"response.output_text.done", "response.function_call_arguments.done", "response.output_item.done"})
BEGUN = 5


class Gone(Exception):
    """The server does not know the response."""


class Listener:
    """`seen` are the events of the response so far, from number 0 on without a gap; `over` when the last one was terminal."""

    def __init__(self, system: System, wire: Wire, findings: Findings, chance: Random, padded: bool) -> None:
        self.uid = ""
        self.seen: list[Block] = []
        self.over = self.marked = False
        self.connections = 0
        # Where it listens now, and whether its response holds a conversation meanwhile.
        self.web: Web | None = None
        self.conversation = False
        self._system, self._wire, self._findings, self._chance, self._padded = system, wire, findings, chance, padded

    @property
    def last(self) -> int:
        """The number that was seen last."""
        return len(self.seen) - 1

    async def follow(self, uid: str, until: int | None = None) -> None:
        """Read to the end, or until an event with that number; connect anew, anywhere, as often as needed. Raises Gone."""
        self.uid = uid
        while not self.over and not self._reached(until):
            self.web = web = await self._system.door(self._chance)
            try:
                async with self._wire.stream(web, "GET", self._path()) as stream:
                    if stream.status == 404:
                        raise Gone(uid)
                    if stream.status == 200:
                        self.connections += 1
                        await self.read(stream, until)
                        if not self.over and not self._reached(until):
                            self._wrong("the stream ended well, but not with a terminal event")
                            return
                        continue
                    self._refused((await stream.refusal()).status)
            except Broken as error:
                self.broke(error)
            await patiently()

    async def read(self, stream: Stream, until: int | None = None) -> None:
        """The events of one connection. Raises Broken."""
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

    def broke(self, error: Broken) -> None:
        """A connection may break; it may not fall silent."""
        self._findings.count("streams that broke")
        if isinstance(error, Silent):
            self._wrong(f"{error}, after event {self.last}")

    def _reached(self, until: int | None) -> bool:
        return until is not None and self.last >= until

    def _take(self, block: Block) -> None:
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
            self._tell(block)

    def _tell(self, block: Block) -> None:
        if block.name in NEAR_THE_END:
            self._system.moments.tell("end", self.web)
        elif self.conversation and block.number == BEGUN:
            self._system.moments.tell("conversation", self.web)

    def _path(self) -> str:
        after = f"&starting_after={self.last}" if self.seen else ""
        return f"/v1/responses/{self.uid}?stream=true&include_obfuscation={str(self._padded).lower()}{after}"

    def _refused(self, status: int) -> None:
        self._findings.count(f"resumes answered {status}")
        if status not in (500, 503):
            self._wrong(f"a resume was answered {status}")

    def _wrong(self, what: str, block: Block | None = None) -> None:
        number, seen = (block.number, block.data) if block else (None, b"")
        self._findings.contradict(self.uid or "?", what, number=number, seen=seen)
