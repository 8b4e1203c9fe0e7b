"""Events that observers get: the only interface between the server and its metrics.

Each function calls all observers. Without observers an event costs an empty loop. An observer must not raise and must not wait.
"""

from __future__ import annotations

from collections.abc import Mapping

from responses_app.observability.records import EndedResponse, ObservedRequest


class Observer:
    """Receiver of events; a subclass overrides the methods of the events that it needs."""

    def request_ended(self, record: ObservedRequest) -> None:
        """Receive an HTTP request that was answered, or whose client has left; for a WebSocket, the handshake."""

    def socket_request_ended(self, record: ObservedRequest) -> None:
        """Receive a request on a WebSocket whose response has ended."""

    def response_ended(self, record: EndedResponse) -> None:
        """Receive a response that has ended in this process."""

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

    def engines_checked(self, states: Mapping[tuple[str, str], bool]) -> None:
        """Receive whether each engine is up, by model and by host and port."""

    def sessions_counted(self, counts: Mapping[str, int]) -> None:
        """Receive the number of sessions of the database, by state."""


_observers: list[Observer] = []


def add_observer(observer: Observer) -> None:
    """Add an observer, which gets all later events."""
    _observers.append(observer)


def is_observed() -> bool:
    """Return whether there is an observer."""
    return bool(_observers)


def request_ended(record: ObservedRequest) -> None:
    """Report an HTTP request."""
    for observer in _observers:
        observer.request_ended(record)


def socket_request_ended(record: ObservedRequest) -> None:
    """Report a request on a WebSocket."""
    for observer in _observers:
        observer.socket_request_ended(record)


def response_ended(record: EndedResponse) -> None:
    """Report a response that has ended."""
    for observer in _observers:
        observer.response_ended(record)


def runs_changed(count: int) -> None:
    """Report the number of responses that run."""
    for observer in _observers:
        observer.runs_changed(count)


def sockets_changed(count: int) -> None:
    """Report the number of open WebSockets."""
    for observer in _observers:
        observer.sockets_changed(count)


def started(waited_s: float) -> None:
    """Report the wait of a start in seconds."""
    for observer in _observers:
        observer.started(waited_s)


def committed(seconds: float) -> None:
    """Report the duration of a commit."""
    for observer in _observers:
        observer.committed(seconds)


def taken_over() -> None:
    """Report a take-over."""
    for observer in _observers:
        observer.taken_over()


def rate_limited() -> None:
    """Report a refused request of a WebSocket."""
    for observer in _observers:
        observer.rate_limited()


def engines_checked(states: Mapping[tuple[str, str], bool]) -> None:
    """Report whether each engine is up."""
    for observer in _observers:
        observer.engines_checked(states)


def sessions_counted(counts: Mapping[str, int]) -> None:
    """Report the sessions of the database."""
    for observer in _observers:
        observer.sessions_counted(counts)
