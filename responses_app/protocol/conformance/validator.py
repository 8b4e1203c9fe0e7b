"""The public judge: any captured stream in, event by event, and the rules of §2.4 that it breaks out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from responses_app.protocol.conformance.lifecycle import TERMINAL, LifecycleRules
from responses_app.protocol.conformance.output import OutputRules
from responses_app.protocol.conformance.spec import EVENTS, is_vendor_type
from responses_app.protocol.conformance.sse import SseBlock, frames
from responses_app.protocol.conformance.violation import Findings, Violation, integer

Profile: TypeAlias = Literal["openai", "openresponses"]

_STEER: Final = "response.steer."


class StreamValidator:
    """Judges one response's stream. It never raises for what a stream holds, and knows nothing of the writer.

    `starting_after` says that the stream is a resume behind that sequence number: what came before cannot be judged. `lane` is the
    `stream_id` that every event must carry on a WebSocket, None for SSE and for the default lane. With `socket` the steering events of
    a WebSocket, which are outside the count, pass.
    """

    def __init__(
        self,
        profile: Profile = "openai",
        *,
        starting_after: int | None = None,
        lane: str | None = None,
        socket: bool = False,
    ) -> None:
        resumed = starting_after is not None
        self.events = 0
        self._known = EVENTS[profile]
        self._lane = lane
        self._socket = socket
        self._due = 0 if starting_after is None else starting_after + 1
        self._life = LifecycleRules(resumed)
        self._output = OutputRules(profile, resumed)
        self._over = False

    def feed(self, event: object, name: str | None = None) -> list[Violation]:
        """The rules that this event breaks. `name` is its SSE `event` field, "" if the field was missing; None if there is no SSE."""
        self.events += 1
        number = integer(event.get("sequence_number")) if isinstance(event, Mapping) else None
        return [Violation(rule, number, message, event) for rule, message in self._examine(event, name)]

    def feed_frame(self, frame: SseBlock) -> list[Violation]:
        """As `feed`, for one block of an SSE stream."""
        if frame.done:
            return self._end_mark()
        event = frame.event() if frame.data else {}
        broken = [Violation(rule, None, message, event) for rule, message in frame.breaches()]
        if not frame.data:
            return broken or [Violation("S0", None, "a block without data", event)]
        return broken + self.feed(event, frame.name)

    def close(self) -> list[Violation]:
        """The rules that the end of the stream breaks."""
        return [Violation(rule, None, message, None) for rule, message in self._life.close()]

    def _end_mark(self) -> list[Violation]:
        twice, self._over = self._over, True
        return [Violation("L4", None, "a second [DONE]", {"type": "[DONE]"})] if twice else []

    def _examine(self, event: object, name: str | None) -> Findings:
        if not isinstance(event, Mapping) or not isinstance(event.get("type"), str):
            yield "S0", "no object with a string type"
            return
        kind = event["type"]
        if name is not None and name != kind:
            yield "S1", f"the event field is {name!r}"
        if event.get("stream_id") != self._lane or (self._lane is None and "stream_id" in event):
            yield "S6", f"stream_id is {event.get('stream_id')!r} on lane {self._lane!r}"
        if self._socket and kind.startswith(_STEER):
            return
        yield from self._number(event)
        if self._life.ended or self._over:
            yield "L4", "the stream is over"
            return
        if kind not in self._known:
            if not is_vendor_type(kind):
                yield "S5", "an unknown type"
            return
        yield from self._known_event(event)

    def _number(self, event: Mapping[str, Any]) -> Findings:
        number = integer(event.get("sequence_number"))
        if number != self._due:
            yield "S2", f"sequence_number is {event.get('sequence_number', '(absent)')!r} and not {self._due}"
        self._due = (self._due if number is None else number) + 1

    def _known_event(self, event: Mapping[str, Any]) -> Findings:
        yield from self._life.feed(event)
        yield from self._output.feed(event)
        if event["type"] in TERMINAL:
            yield from self._output.terminal(event.get("response"))


def validate(
    events: Iterable[object],
    profile: Profile = "openai",
    *,
    starting_after: int | None = None,
    lane: str | None = None,
    socket: bool = False,
) -> list[Violation]:
    """All violations of a stream of decoded events, end included."""
    check = StreamValidator(profile, starting_after=starting_after, lane=lane, socket=socket)
    return [broken for event in events for broken in check.feed(event)] + check.close()


def judge_sse(chunks: Iterable[bytes], profile: Profile = "openai", *, starting_after: int | None = None) -> list[Violation]:
    """All violations of a captured SSE stream, framing and end included. Raises UnicodeDecodeError if it is not UTF-8."""
    check = StreamValidator(profile, starting_after=starting_after)
    return [broken for frame in frames(chunks) for broken in check.feed_frame(frame)] + check.close()
