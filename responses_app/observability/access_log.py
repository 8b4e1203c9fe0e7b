"""Log of requests: a line for each HTTP request, and for each response on a WebSocket. No line has content or a key."""

from __future__ import annotations

import logging
import time
from typing import Any, Final

from responses_app.observability.endpoints import endpoint
from responses_app.observability.events import Observer
from responses_app.observability.records import ObservedRequest

logger = logging.getLogger("responses.access")

# Endpoints that programs read every few seconds: their successes are logged at the level DEBUG.
PROBES: Final = frozenset({"/health", "/health/live", "/metrics"})

MAX_METHOD_LENGTH: Final = 16


class AccessLog(Observer):
    """Observer that writes the log of requests."""

    def request_ended(self, record: ObservedRequest) -> None:
        """Log an HTTP request."""
        _log(record)

    def socket_request_ended(self, record: ObservedRequest) -> None:
        """Log a request on a WebSocket."""
        _log(record)


def _log(record: ObservedRequest) -> None:
    route = endpoint(record)
    level = logging.DEBUG if route in PROBES and record.status < 400 else logging.INFO
    if logger.isEnabledFor(level):
        ms = round((time.monotonic() - record.began) * 1000)
        # A client may send any word as the method; none came with a head that could not be read.
        method = record.method[:MAX_METHOD_LENGTH] or "-"
        fields = {"method": method, "route": route, "status": record.status, "ms": ms, **_ids(record)}
        logger.log(level, "%s", _text(fields), extra={"fields": fields})


def _ids(record: ObservedRequest) -> dict[str, Any]:
    """Return the ids of a request by their names in the log."""
    known = {
        "request_id": record.request_id,
        "response_id": record.response_id,
        "key_id": record.key_id,
        "user_id": record.user_id,
        "project": record.project,
        "model": record.model,
        "engine": record.engine() if record.engine is not None else "",
        "client_request_id": record.client_request_id,
        "client": record.address,
        "trace_id": record.trace_id,
    }
    return {name: value for name, value in known.items() if value not in ("", None)}


def _text(fields: dict[str, Any]) -> str:
    first = "{method} {route} {status} {ms} ms".format_map(fields)
    # A blank in a value of the client, or of a project, must not look like the next name.
    return " ".join([first, *(f"{name}={str(fields[name]).replace(' ', '_')}" for name in list(fields)[4:])])
