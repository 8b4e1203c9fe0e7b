"""Stream validator: events of a captured stream in, broken rules out. docs/protocol.md explains the ids of the rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from responses_app.protocol.conformance.lifecycle import TERMINAL, LifecycleRules
from responses_app.protocol.conformance.output import OutputRules
from responses_app.protocol.conformance.spec import SPECS, StreamSpec, is_vendor_type
from responses_app.protocol.conformance.sse import SseBlock, blocks
from responses_app.protocol.conformance.violation import Findings, Violation, integer

Profile: TypeAlias = Literal["openai", "openresponses"]

_STEER: Final = "response.steer."


class StreamValidator:
    """Validator of the stream of a response. The content of a stream never makes the validator raise.

    `starting_after` is the sequence number behind which a resumed stream begins; the events before it are not checked. `stream_id` is
    the id that every event of a WebSocket stream must have, None for SSE and for the default stream. With `socket`, the steering
    events of a WebSocket are allowed; they have no sequence numbers. `spec` replaces the rules of the profile.
    """

    def __init__(
        self,
        profile: Profile = "openai",
        *,
        starting_after: int | None = None,
        stream_id: str | None = None,
        socket: bool = False,
        spec: StreamSpec | None = None,
    ) -> None:
        resumed = starting_after is not None
        self.events = 0
        self._spec = SPECS[profile] if spec is None else spec
        self._stream_id = stream_id
        self._socket = socket
        self._next_number = 0 if starting_after is None else starting_after + 1
        self._lifecycle = LifecycleRules(resumed)
        self._output = OutputRules(self._spec, resumed, silent_reasoning=profile == "openresponses")
        self._has_end_mark = False

    def feed(self, event: object, name: str | None = None) -> list[Violation]:
        """Return the rules that `event` breaks. `name` is the SSE `event` field, "" for a missing field, None without SSE."""
        self.events += 1
        number = integer(event.get("sequence_number")) if isinstance(event, Mapping) else None
        return [Violation(rule, number, message, event) for rule, message in self._check(event, name)]

    def feed_block(self, block: SseBlock) -> list[Violation]:
        """Return the rules that a block of an SSE stream breaks."""
        if block.done:
            return self._end_mark()
        event = block.event() if block.data else {}
        broken = [Violation(rule, None, message, event) for rule, message in block.framing_problems()]
        if not block.data:
            return broken or [Violation("S0", None, "a block without data", event)]
        return broken + self.feed(event, block.name)

    def close(self) -> list[Violation]:
        """Return the rules that the end of the stream breaks."""
        return [Violation(rule, None, message, None) for rule, message in self._lifecycle.close()]

    def _end_mark(self) -> list[Violation]:
        repeated, self._has_end_mark = self._has_end_mark, True
        return [Violation("L4", None, "a second [DONE]", {"type": "[DONE]"})] if repeated else []

    def _check(self, event: object, name: str | None) -> Findings:
        if not isinstance(event, Mapping) or not isinstance(event.get("type"), str):
            yield "S0", "no object with a string type"
            return
        kind = event["type"]
        if name is not None and name != kind:
            yield "S1", f"the event field is {name!r}"
        if event.get("stream_id") != self._stream_id or (self._stream_id is None and "stream_id" in event):
            yield "S6", f"stream_id is {event.get('stream_id')!r} on stream {self._stream_id!r}"
        if self._socket and kind.startswith(_STEER):
            return
        yield from self._check_number(event)
        if self._lifecycle.ended or self._has_end_mark:
            yield "L4", "the stream is over"
            return
        if kind not in self._spec.events:
            if not is_vendor_type(kind):
                yield "S5", "an unknown type"
            return
        yield from self._check_known_event(event)

    def _check_number(self, event: Mapping[str, Any]) -> Findings:
        number = integer(event.get("sequence_number"))
        if number != self._next_number:
            yield "S2", f"sequence_number is {event.get('sequence_number', '(absent)')!r} and not {self._next_number}"
        self._next_number = (self._next_number if number is None else number) + 1

    def _check_known_event(self, event: Mapping[str, Any]) -> Findings:
        yield from self._lifecycle.feed(event)
        yield from self._output.feed(event)
        if event["type"] in TERMINAL:
            yield from self._output.terminal(event.get("response"))


def validate(
    events: Iterable[object],
    profile: Profile = "openai",
    *,
    starting_after: int | None = None,
    stream_id: str | None = None,
    socket: bool = False,
    spec: StreamSpec | None = None,
) -> list[Violation]:
    """Return all violations of a stream of decoded events, end included."""
    validator = StreamValidator(profile, starting_after=starting_after, stream_id=stream_id, socket=socket, spec=spec)
    return [broken for event in events for broken in validator.feed(event)] + validator.close()


def validate_sse(chunks: Iterable[bytes], profile: Profile = "openai", *, starting_after: int | None = None) -> list[Violation]:
    """Return all violations of a captured SSE stream, framing and end included. Raises UnicodeDecodeError for bytes that are not UTF-8."""
    validator = StreamValidator(profile, starting_after=starting_after)
    return [broken for block in blocks(chunks) for broken in validator.feed_block(block)] + validator.close()
