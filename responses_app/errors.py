"""The exceptions that a client sees, as a small tree.

    ApiError
      + Invalid             400  the client's request; `param` is the JSON path, `code` OpenAI's word for it
      + Unauthorized        401
      + Forbidden           403  the key may not ask this model
      + NotFound            404
      + TooSlow             408  the body did not come in time
      + TooLarge            413
      + Busy                429  with Retry-After
      + Failed              500  our fault, or the model's
      + Unavailable         503  the engine is not there; with Retry-After

No endpoint answers 409: client libraries retry it in silence (responses-api.md, checklist 7).
"""

from __future__ import annotations

# Characters of what an error repeats of a request: a name or a value in it may have megabytes.
MAX_MESSAGE = 4096
MAX_PARAM = 1024


def shorten(text: str, limit: int) -> str:
    """Return the text with at most `limit` characters, the last of which then says that it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class ApiError(Exception):
    """An answer in the shape `{"error": {message, type, param, code}}` (responses-api.md §1.10)."""

    status = 500
    type = "server_error"
    default_code: str | None = None

    def __init__(self, message: str, *, param: str | None = None, code: str | None = None) -> None:
        message = shorten(message, MAX_MESSAGE)
        super().__init__(message)
        self.message = message
        self.param = shorten(param, MAX_PARAM) if param is not None else None
        self.code = code or self.default_code
        self.headers: dict[str, str] = {}

    def body(self) -> dict[str, object]:
        """The JSON body, always with all four keys."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class InvalidRequest(ApiError):
    """The request cannot be served as it is."""

    status = 400
    type = "invalid_request_error"


class Unauthorized(ApiError):
    """No key, or one that is not known."""

    status = 401
    type = "invalid_request_error"
    default_code = "invalid_api_key"


class Forbidden(ApiError):
    """The key is known, but this is not for it."""

    status = 403
    type = "invalid_request_error"


class NotFound(ApiError):
    """Unknown, deleted, not stored, or somebody else's."""

    status = 404
    type = "invalid_request_error"


class MethodNotAllowed(ApiError):
    """The address exists, but not for this method."""

    status = 405
    type = "invalid_request_error"


class TooSlow(ApiError):
    """The body has not come in time."""

    status = 408
    type = "invalid_request_error"


class PayloadTooLarge(ApiError):
    """The body is over the limit."""

    status = 413
    type = "invalid_request_error"


class RateLimited(ApiError):
    """Too many runs at once."""

    status = 429
    type = "rate_limit_error"
    default_code = "rate_limit_exceeded"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.headers = {"Retry-After": str(retry_after)}


class InternalError(ApiError):
    """The run failed before anything could be answered. Not to be retried blindly: tokens were spent."""

    default_code = "server_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.headers = {"x-should-retry": "false"}


class ServiceUnavailable(ApiError):
    """The engine does not answer; nothing was started."""

    status = 503
    default_code = "server_error"

    def __init__(self, message: str, *, retry_after: int = 2) -> None:
        super().__init__(message)
        self.headers = {"Retry-After": str(retry_after)}
