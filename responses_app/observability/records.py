"""Record of a request, which the views fill in while they handle the request, and of a response that has ended."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

# Status of a request whose client has disconnected before the answer, as in the log of nginx.
CLIENT_CLOSED = 499


@dataclass(slots=True)
class ObservedRequest:
    """Request: what the transport knows of it, and what the views add. `began` is a monotonic time in seconds.

    `request` is Django's request, whose route is the endpoint; without one the path is looked up.
    """

    method: str
    path: str
    status: int = CLIENT_CLOSED
    request: Any = None
    began: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class EndedResponse:
    """Response that has ended in this process: the terminal snapshot, and times in seconds.

    `first_token_s` is None without a token, and for a response that another process began. `token_s` is the time between two tokens.
    """

    response: Mapping[str, Any]
    duration_s: float
    first_token_s: float | None
    token_s: float | None


current_request: ContextVar[ObservedRequest | None] = ContextVar("record of the request", default=None)


def keep_request(request: Any) -> None:
    """Keep Django's request in the record of the request, for the route."""
    record = current_request.get()
    if record is not None:
        record.request = request
