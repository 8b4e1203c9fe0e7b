"""Outputs of rounds: the events of a response, or a list of deltas."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import orjson

from responses_app.engine_interface import Chunk
from responses_app.protocol.deltas import Delta
from responses_app.protocol.encoding import EventFrame
from responses_app.protocol.events import Event
from responses_app.protocol.items.server_tools.tool_result import ModelOutput
from responses_app.protocol.writer import Writer
from responses_app.runs.execute.publisher import DurablePublisher
from responses_app.store.log.records import Ending


class ResponseOutput:
    """Writer and publisher of a run. Events wait in a buffer until `publish` or `publish_and_wait`."""

    def __init__(self, writer: Writer, publisher: DurablePublisher) -> None:
        self.writer, self.publisher = writer, publisher
        self._events: list[EventFrame] = []

    def add(self, chunk: Chunk, deltas: Iterable[Delta]) -> None:
        """Write `deltas` to the buffer and save the tokens of `chunk` with the next append."""
        self.publisher.unsaved.append(chunk)
        self.write(deltas)

    def write(self, deltas: Iterable[Delta]) -> None:
        """Write `deltas` to the buffer."""
        for delta in deltas:
            self._events += self.writer.write_encoded(delta, encode)

    def save_model_output(self, output_index: int, output: ModelOutput) -> None:
        """Save the output of the closed call at `output_index` with the next append."""
        self.publisher.unsaved_outputs[self.writer.output.item_id(output_index)] = output

    @property
    def has_events(self) -> bool:
        """Return whether events wait in the buffer."""
        return bool(self._events)

    @property
    def is_full(self) -> bool:
        """Return whether so much is not durable yet that the run has to wait."""
        return self.publisher.is_full

    async def wait_room(self) -> None:
        """Wait for commits until the run may publish more."""
        await self.publisher.wait_room()

    def publish(self, events: Iterable[Event] = (), *, opens: bool = False, starts: bool = False) -> None:
        """Publish the buffer and then `events`, without waiting for the commit. Raises DatabaseError."""
        self.publisher.publish(self._take(events), opens=opens, starts=starts)

    async def publish_and_wait(
        self, events: Iterable[Event] = (), *, strict: bool = False, ending: Callable[[], Ending] | None = None
    ) -> None:
        """Publish the buffer and then `events`, and wait until all are durable. Raises DatabaseError."""
        await self.publisher.publish_and_wait(self._take(events), strict=strict, ending=ending)

    def _take(self, events: Iterable[Event]) -> list[EventFrame]:
        """Return the buffered frames and then `events`, and empty the buffer."""
        whole, self._events = self._events, []
        for event in events:
            whole.append(EventFrame(event["sequence_number"], event["type"], encode(event)))
        return whole


class DeltaCollector:
    """Output of a generation without a stream: collects the deltas."""

    is_full = False

    def __init__(self) -> None:
        self.deltas: list[Delta] = []

    async def wait_room(self) -> None:
        """Return at once: nothing is published."""

    def add(self, chunk: Chunk, deltas: Iterable[Delta]) -> None:
        """Collect `deltas`."""
        del chunk
        self.deltas += deltas

    def publish(self) -> None:
        """Do nothing."""


RoundOutput: TypeAlias = ResponseOutput | DeltaCollector


def encode(event: Event) -> bytes:
    """Encode as JSON. The copy matters: a result of orjson occupies four kilobytes, however short, and a run holds thousands."""
    return bytes(memoryview(orjson.dumps(event)))
