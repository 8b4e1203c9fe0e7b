"""Record of a request, which the views fill in while they handle the request, and of a response that has ended."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

# Status of a request whose client has disconnected before the answer, as in the log of nginx.
CLIENT_CLOSED = 499
# Characters of the `X-Client-Request-Id` of a client, which OpenAI limits to as many.
MAX_CLIENT_ID_LENGTH = 512
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(slots=True)
class ObservedRequest:
    """Request: what the transport knows of it, and what the views add. `began` is a monotonic time in seconds.

    `request` is Django's request, whose route is the endpoint; without one the path is looked up. `key_id` is the primary key of the API
    key. `traceparent` is the trace of the caller (W3C Trace Context), `engine` returns host and port of the engine.
    """

    method: str
    path: str
    status: int = CLIENT_CLOSED
    request: Any = None
    began: float = field(default_factory=time.monotonic)
    request_id: str = ""
    response_id: str = ""
    client_request_id: str = ""
    traceparent: str = ""
    key_id: int | None = None
    project: str = ""
    model: str = ""
    engine: Callable[[], str] | None = None

    @property
    def trace_id(self) -> str:
        """Id of the trace; empty without a trace."""
        return self.traceparent[3:35]

    def keep_run(self, response: Mapping[str, Any], engine: Callable[[], str]) -> None:
        """Keep what the log shows of the response that the request has begun."""
        self.response_id, self.model, self.engine = response["id"], response["model"], engine

    @classmethod
    def of_scope(cls, method: str, scope: Mapping[str, Any]) -> ObservedRequest:
        """Return the record of a connection of ASGI, with the ids in the headers of the client."""
        client_id = trace = ""
        for name, value in scope["headers"]:
            if name == b"x-client-request-id":
                client_id = value.decode("latin-1")[:MAX_CLIENT_ID_LENGTH]
            elif name == b"traceparent":
                trace = parse_traceparent(value.decode("latin-1"))
        return cls(method, scope["path"], client_request_id=client_id, traceparent=trace)


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


def note(**fields: Any) -> None:
    """Set fields in the record of the current request, if there is one."""
    record = current_request.get()
    if record is not None:
        for name, value in fields.items():
            setattr(record, name, value)


def traceparent() -> str:
    """Return the trace of the current request; empty without a trace."""
    record = current_request.get()
    return record.traceparent if record is not None else ""


def parse_traceparent(value: str) -> str:
    """Return the header `traceparent` if it is valid, else an empty string (W3C Trace Context, section 3.2)."""
    return value if _TRACEPARENT.fullmatch(value) else ""
