"""Bodies of errors in the API format of a path."""

from __future__ import annotations

from typing import Any

from responses_app.api_formats.messages.message import error_body as messages_error_body
from responses_app.errors import ApiError

MESSAGES = "/v1/messages"


def error_body(path: str, error: ApiError, request_id: str) -> dict[str, Any]:
    """Return the body of an error, as clients of the API at `path` read it."""
    return messages_error_body(error, request_id) if path.startswith(MESSAGES) else error.body()
