"""Events that observers get: the only interface between the server and the metrics.

Each function calls all observers. Without observers an event costs an empty loop. An observer must not wait.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from responses_app.observability.records import EndedCall, EndedResponse, EndedRound, ObservedRequest


class Observer:
    """Receiver of events; a subclass overrides the methods of the events that it needs."""

    def request_began(self, record: ObservedRequest) -> None:
        """Receive an HTTP request before it is handled, or a request on a WebSocket."""

    def request_ended(self, record: ObservedRequest) -> None:
        """Receive an HTTP request that was answered, or whose client has left; for a WebSocket, the handshake."""

    def socket_request_ended(self, record: ObservedRequest) -> None:
        """Receive a request on a WebSocket whose response has ended."""

    def response_ended(self, record: EndedResponse) -> None:
        """Receive a response that has ended in this process."""

    def round_ended(self, ended: EndedRound) -> None:
        """Receive a round of generation that has ended."""

    def call_ended(self, ended: EndedCall) -> None:
        """Receive a call of a server tool that has ended."""

    def close(self) -> None:
        """Receive the end of the process."""

    def runs_changed(self, count: int) -> None:
        """Receive the number of responses that this process runs."""

    def sockets_changed(self, count: int) -> None:
        """Receive the number of open WebSockets of this process."""

    def started(self, waited_s: float) -> None:
        """Receive the seconds that a request, or a response in the queue, has waited for its start."""

    def committed(self, seconds: float) -> None:
        """Receive the duration of a commit of events."""

    def taken_over(self) -> None:
        """Receive the take-over of a response from another process."""

    def rate_limited(self) -> None:
        """Receive a request on a WebSocket that a limit has refused. An HTTP request has the status 429."""

    def webhook_sent(self, *, is_success: bool) -> None:
        """Receive whether an endpoint has accepted an event of a webhook, for each attempt."""

    def texts_embedded(self, *, is_success: bool) -> None:
        """Receive whether the embeddings server has answered a request with embeddings."""

    def engines_checked(self, states: Mapping[tuple[str, str], bool]) -> None:
        """Receive whether each engine is up, by model and by host and port."""

    def parts_checked(self, states: Mapping[str, bool]) -> None:
        """Receive whether each part that only some requests need works, by name."""

    def sessions_counted(self, counts: Mapping[str, int]) -> None:
        """Receive the number of sessions of the database, by state."""

    def storage_measured(self, values: Mapping[str, float]) -> None:
        """Receive values of the storage report, by name."""


logger = logging.getLogger("responses.serve")

_observers: list[Observer] = []


def add_observer(observer: Observer) -> None:
    """Add an observer, which gets all later events."""
    _observers.append(observer)


def is_observed() -> bool:
    """Return whether there is an observer."""
    return bool(_observers)


def request_began(record: ObservedRequest) -> None:
    """Report the begin of a request."""
    _report("request_began", record)


def round_ended(ended: EndedRound) -> None:
    """Report a round of generation."""
    _report("round_ended", ended)


def call_ended(ended: EndedCall) -> None:
    """Report a call of a server tool."""
    _report("call_ended", ended)


def _report(event: str, *values: object, **named: object) -> None:
    """Call the method `event` of each observer. A defect of an observer must not harm a request."""
    for observer in _observers:
        try:
            getattr(observer, event)(*values, **named)
        except OSError as error:
            logger.error("an observer has no place to write to: %s", error)
        except Exception:
            logger.exception("an observer failed")


def close() -> None:
    """Report the end of the process to the observers, and forget the observers."""
    while _observers:
        _observers.pop().close()


def request_ended(record: ObservedRequest) -> None:
    """Report an HTTP request."""
    _report("request_ended", record)


def socket_request_ended(record: ObservedRequest) -> None:
    """Report a request on a WebSocket."""
    _report("socket_request_ended", record)


def response_ended(record: EndedResponse) -> None:
    """Report a response that has ended."""
    _report("response_ended", record)


def runs_changed(count: int) -> None:
    """Report the number of responses that run."""
    _report("runs_changed", count)


def sockets_changed(count: int) -> None:
    """Report the number of open WebSockets."""
    _report("sockets_changed", count)


def started(waited_s: float) -> None:
    """Report the wait of a start in seconds."""
    _report("started", waited_s)


def committed(seconds: float) -> None:
    """Report the duration of a commit."""
    _report("committed", seconds)


def taken_over() -> None:
    """Report a take-over."""
    _report("taken_over")


def webhook_sent(*, is_success: bool) -> None:
    """Report an attempt to deliver a webhook."""
    _report("webhook_sent", is_success=is_success)


def texts_embedded(*, is_success: bool) -> None:
    """Report a request to the embeddings server."""
    _report("texts_embedded", is_success=is_success)


def rate_limited() -> None:
    """Report a refused request of a WebSocket."""
    _report("rate_limited")


def engines_checked(states: Mapping[tuple[str, str], bool]) -> None:
    """Report whether each engine is up."""
    _report("engines_checked", states)


def parts_checked(states: Mapping[str, bool]) -> None:
    """Report whether each part works."""
    _report("parts_checked", states)


def sessions_counted(counts: Mapping[str, int]) -> None:
    """Report the sessions of the database."""
    _report("sessions_counted", counts)


def storage_measured(values: Mapping[str, float]) -> None:
    """Report values of the storage report."""
    _report("storage_measured", values)
