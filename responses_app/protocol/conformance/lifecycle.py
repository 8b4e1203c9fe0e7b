"""Lifecycle rules (L and T): from `response.created` to the terminal event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from responses_app.protocol.conformance.spec import RESPONSE_KEYS
from responses_app.protocol.conformance.violation import Findings, integer

TERMINAL: Final = {
    "response.completed": ("completed",),
    "response.incomplete": ("incomplete",),
    "response.failed": ("failed", "cancelled"),
}
# Lifecycle event before the end -> statuses that its snapshot may have.
EARLY: Final = {
    "response.created": ("in_progress", "queued"),
    "response.queued": ("queued",),
    "response.in_progress": ("in_progress",),
}


class LifecycleRules:
    """Lifecycle of a response: created, in progress, ended. A resumed stream begins in the middle."""

    def __init__(self, resumed: bool) -> None:
        self.created = resumed
        self.resumed = resumed
        # None: unknown, because the stream is a resume.
        self.running: bool | None = None if resumed else False
        self.ended = False
        self.error = False
        self.id: object = None
        self._seen = False

    def feed(self, event: Mapping[str, Any]) -> Findings:
        """Check an event of a known type."""
        kind = event["type"]
        yield from self._check_order(kind)
        if kind == "error":
            self.error = True
            yield from _check_error(event)
        elif kind in EARLY or kind in TERMINAL:
            yield from self._check_snapshot(kind, event.get("response"))
        self.ended = kind in TERMINAL
        self._seen = True

    def close(self) -> Findings:
        """Check the end of the stream. A resume behind the last event is empty and correct."""
        if not self.ended and (self._seen or not self.resumed):
            yield "L5", "the stream ends without a terminal event"

    def _check_order(self, kind: str) -> Findings:
        if self.error and kind != "response.failed":
            yield "L6", "after error comes response.failed and nothing else"
        if kind == "response.created":
            if self.created:
                yield "L1", "a second response.created"
            self.created = True
            return
        if not self.created:
            self.created = True
            yield "L1", "the first event is not response.created"
        yield from self._check_beginning(kind)

    def _check_beginning(self, kind: str) -> Findings:
        if kind == "response.queued":
            if self.running:
                yield "L2", "response.queued after response.in_progress"
        elif kind == "response.in_progress":
            if self.running:
                yield "L2", "a second response.in_progress"
            self.running = True
        else:
            if self.running is False:
                yield "L2", f"{kind} before response.in_progress"
            self.running = True

    def _check_snapshot(self, kind: str, response: object) -> Findings:
        if not isinstance(response, Mapping):
            yield "L3", "there is no response in it"
            return
        missing = sorted(RESPONSE_KEYS - set(response))
        if missing:
            yield "L3", f"the response lacks {', '.join(missing)}"
        if self.id is not None and response.get("id") != self.id:
            yield "L3", f"the response was {self.id!r} and is now {response.get('id')!r}"
        self.id = response.get("id") if self.id is None else self.id
        if kind in EARLY:
            yield from _check_early(kind, response)
        else:
            yield from _check_terminal(kind, response)


def _check_error(event: Mapping[str, Any]) -> Findings:
    nested = event.get("error")
    message = nested.get("message") if isinstance(nested, Mapping) else event.get("message")
    if not isinstance(message, str):
        yield "L6", "neither a nested error nor a flat message"


def _check_early(kind: str, response: Mapping[str, Any]) -> Findings:
    if response.get("status") not in EARLY[kind]:
        yield "L3", f"status is {response.get('status')!r}"
    if response.get("output") != []:
        yield "L3", "output is not empty"


def _check_terminal(kind: str, response: Mapping[str, Any]) -> Findings:
    status = response.get("status")
    if status not in TERMINAL[kind]:
        yield "T1", f"status is {status!r}"
    if (response.get("error") is not None) != (status == "failed"):
        yield "T2", f"error is {response.get('error')!r} and status {status!r}"
    if (response.get("incomplete_details") is not None) != (status == "incomplete"):
        yield "T3", f"incomplete_details is {response.get('incomplete_details')!r} and status {status!r}"
    if "completed_at" in response and (response["completed_at"] is not None) != (status == "completed"):
        yield "T4", f"completed_at is {response['completed_at']!r} and status {status!r}"
    if status in ("completed", "incomplete"):
        yield from _check_usage(response.get("usage"))


def _check_usage(usage: object) -> Findings:
    if not isinstance(usage, Mapping):
        yield "T5", "there is no usage"
        return
    taken, made, total = (integer(usage.get(key)) for key in ("input_tokens", "output_tokens", "total_tokens"))
    if taken is None or made is None or total != taken + made:
        yield "T5", "total_tokens is not input_tokens + output_tokens"
        return
    for key, part, whole in (
        ("input_tokens_details", "cached_tokens", taken),
        ("output_tokens_details", "reasoning_tokens", made),
    ):
        details = usage.get(key)
        count = integer(details.get(part)) if isinstance(details, Mapping) else None
        if count is None or count > whole:
            yield "T5", f"{key}.{part} is no part of {whole}"
