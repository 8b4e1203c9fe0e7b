"""Record of a request, which the views fill in while they handle the request, and of a response that has ended."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

# Status of a request whose client has disconnected before the answer, as in the log of nginx.
CLIENT_CLOSED = 499
# Characters of the `X-Client-Request-Id` of a client, which OpenAI limits to as many.
MAX_CLIENT_ID_LENGTH = 512
# Characters of `tracestate`, of which the specification asks to hand on at least as many.
_TRACESTATE = re.compile(r"[ -~]{1,512}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(slots=True)
class ObservedRequest:
    """Request: what the transport knows of it, and what the views add. `began` is a monotonic time in seconds.

    `request` is Django's request, whose route is the endpoint; without one the path is looked up. `key_id` is the primary key of the API
    key, `user_id` that of the person who sent the request from a page. `traceparent` is the trace of the caller (W3C Trace Context), or
    the span of this request if there is one. `engine` returns host and port of the engine, `response` the response of the request as it
    is now. `request_input` has the items of its input.
    """

    method: str
    path: str
    status: int = CLIENT_CLOSED
    request: Any = None
    began: float = field(default_factory=time.monotonic)
    request_id: str = ""
    response_id: str = ""
    client_request_id: str = ""
    # Of the client, behind trusted proxies too.
    address: str = ""
    traceparent: str = ""
    # Header `tracestate` of the caller, for the engine; empty without a trace.
    tracestate: str = ""
    key_id: int | None = None
    user_id: int | None = None
    project: str = ""
    model: str = ""
    engine: Callable[[], str] | None = None
    response: Callable[[], Mapping[str, Any]] | None = None
    request_input: Sequence[Mapping[str, Any]] = ()
    # The span of OpenTelemetry, if the request is traced.
    span: Any = None

    @property
    def trace_id(self) -> str:
        """Id of the trace; empty without a trace."""
        return self.traceparent[3:35]

    def keep_run(
        self, response: Callable[[], Mapping[str, Any]], engine: Callable[[], str], request_input: Sequence[Mapping[str, Any]]
    ) -> None:
        """Keep the response of the request for log and trace."""
        snapshot = response()
        self.response_id, self.model, self.engine = snapshot["id"], snapshot["model"], engine
        self.response, self.request_input = response, request_input

    @classmethod
    def of_scope(cls, method: str, scope: Mapping[str, Any]) -> ObservedRequest:
        """Return the record of a connection of ASGI, with the ids in the headers of the client."""
        client_id = trace = ""
        states: list[str] = []
        for name, value in scope["headers"]:
            if name == b"x-client-request-id":
                client_id = value.decode("latin-1")[:MAX_CLIENT_ID_LENGTH]
            elif name == b"traceparent":
                trace = parse_traceparent(value.decode("latin-1"))
            elif name == b"tracestate":
                states.append(value.decode("latin-1").strip())
        address = str((scope.get("client") or ("",))[0])
        state = parse_tracestate(states) if trace else ""
        return cls(method, scope["path"], client_request_id=client_id, address=address, traceparent=trace, tracestate=state)


@dataclass(frozen=True, slots=True)
class EndedResponse:
    """Response that has ended in this process: the terminal snapshot, and times in seconds.

    `first_token_s` is None without a token, and for a response that another process began. `token_s` is the time between two tokens.
    """

    response: Mapping[str, Any]
    duration_s: float
    first_token_s: float | None
    token_s: float | None


# `EndedRound.finish` of a round that a client or the server has ended.
CANCELLED: Final = "cancelled"


@dataclass(frozen=True, slots=True)
class EndedRound:
    """Round of generation that has ended; `finish` is CANCELLED, or None after a failure. `began_ns` is in nanoseconds since 1970."""

    traceparent: str
    began_ns: int
    response: Mapping[str, Any]
    usage: Mapping[str, Any]
    finish: str | None


@dataclass(frozen=True, slots=True)
class EndedCall:
    """Call of a server tool that has ended: the name of the tool, the item of the call, and the result."""

    traceparent: str
    began_ns: int
    name: str
    item: Mapping[str, Any]
    result: object


# The trace of the run of the current task, for rounds and calls; empty without a trace.
current_trace: ContextVar[str] = ContextVar("trace of the run", default="")
current_response: ContextVar[str] = ContextVar("id of the response of the run", default="")
current_request: ContextVar[ObservedRequest | None] = ContextVar("record of the request", default=None)


def note(**fields: Any) -> None:
    """Set fields in the record of the current request, if there is one."""
    record = current_request.get()
    if record is not None:
        for name, value in fields.items():
            setattr(record, name, value)


def trace_context() -> tuple[str, str]:
    """Return `traceparent` and `tracestate` of the current request; both are empty without a trace."""
    record = current_request.get()
    return (record.traceparent, record.tracestate) if record is not None else ("", "")


def parse_traceparent(value: str) -> str:
    """Return the header `traceparent` if it is valid, else an empty string (W3C Trace Context, section 3.2)."""
    return value if _TRACEPARENT.fullmatch(value) else ""


def parse_tracestate(values: Sequence[str]) -> str:
    """Return the headers `tracestate` joined (W3C Trace Context, section 3.3). Return "" for unprintable or too many characters."""
    state = ",".join(filter(None, values))
    return state if _TRACESTATE.fullmatch(state) else ""
