"""API errors: exceptions with an HTTP status and an error body in the format of the OpenAI API.

    ApiError
      + InvalidRequest      400  `param` is the JSON path of the wrong value, `code` the error code of the OpenAI API
      + Unauthorized        401
      + Forbidden           403  the key may not use the model or the project
      + NotFound            404
      + MethodNotAllowed    405
      + TooSlow             408  the request body arrived too slowly
      + PayloadTooLarge     413
      + RateLimited         429  with Retry-After
          + InsufficientQuota    a limit of a day or a month is used up
      + InternalError       500  an error of the server or of the model
      + ServiceUnavailable  503  the engine is not reachable; with Retry-After
          + DatabaseFull          the disk of the database is full, no response can be stored
      + InsufficientStorage 507  the disk is almost full; responses are still answered

No endpoint answers 409, because the client libraries of OpenAI retry 409 without notice.
"""

from __future__ import annotations

# In characters. An error quotes names and values of the request, which may be megabytes long.
MAX_MESSAGE = 4096
MAX_PARAM = 1024
MAX_ID = 128

STORAGE_FULL = "The disk of the server is full, so no new responses can be stored. Running responses wait for space."
STORAGE_RETRY_AFTER_S = 15


def shorten(text: str, limit: int) -> str:
    """Shorten `text` to `limit` characters; a shortened text ends with an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


class ApiError(Exception):
    """Error of an API request, with the body `{"error": {message, type, param, code}}` of the OpenAI API."""

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
        """Build the JSON body, always with all four keys."""
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


class InvalidRequest(ApiError):
    """Invalid request (400)."""

    status = 400
    type = "invalid_request_error"


def unknown_file(uid: str, where: str) -> InvalidRequest:
    """Return the error for an unknown file id at the path `where` of a request body."""
    message = f"Invalid '{where}'. No such File object: {shorten(uid, MAX_ID)}"
    return InvalidRequest(message, param=where, code="file_not_found")


class Unauthorized(ApiError):
    """Missing or unknown API key (401). Instructs clients not to retry: Claude Code would for three minutes."""

    status = 401
    type = "invalid_request_error"
    default_code = "invalid_api_key"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers = {"x-should-retry": "false"}


class Forbidden(ApiError):
    """Known API key without the permission for the request (403)."""

    status = 403
    type = "invalid_request_error"


class NotFound(ApiError):
    """Object not found (404): unknown, deleted, not stored, or of a different project."""

    status = 404
    type = "invalid_request_error"


class MethodNotAllowed(ApiError):
    """HTTP method not allowed for the path (405)."""

    status = 405
    type = "invalid_request_error"


class TooSlow(ApiError):
    """Request body not received in time (408)."""

    status = 408
    type = "invalid_request_error"


class PayloadTooLarge(ApiError):
    """Request body over the size limit (413)."""

    status = 413
    type = "invalid_request_error"


class RateLimited(ApiError):
    """Limit on requests or concurrent responses reached (429). `retry_after` is in seconds."""

    status = 429
    type = "rate_limit_error"
    default_code = "rate_limit_exceeded"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message)
        self.headers = {"Retry-After": str(retry_after)}


class InsufficientQuota(RateLimited):
    """Limit of a day or a month used up (429). `retry_after` is in seconds. Instructs clients not to retry."""

    type = "insufficient_quota"
    default_code = "insufficient_quota"

    def __init__(self, message: str, *, retry_after: int = 1) -> None:
        super().__init__(message, retry_after=retry_after)
        self.headers["x-should-retry"] = "false"


class InternalError(ApiError):
    """Failure before the first byte of the answer (500). Instructs clients not to retry, because tokens were spent."""

    default_code = "server_error"

    def __init__(self, message: str, *, code: str | None = None) -> None:
        super().__init__(message, code=code)
        self.headers = {"x-should-retry": "false"}


class ServiceUnavailable(ApiError):
    """Engine or server not available, no run started (503). `retry_after` is in seconds."""

    status = 503
    default_code = "server_error"

    def __init__(self, message: str, *, retry_after: int = 2) -> None:
        super().__init__(message)
        self.headers = {"Retry-After": str(retry_after)}


class DatabaseAway(ServiceUnavailable):
    """Database that does not answer (503)."""

    def __init__(self) -> None:
        super().__init__("The database does not answer. Try again in a moment.")


class DatabaseFull(ServiceUnavailable):
    """Disk of the database full: no response can be stored (503)."""

    default_code = "storage_full"

    def __init__(self) -> None:
        super().__init__(STORAGE_FULL, retry_after=STORAGE_RETRY_AFTER_S)


class InsufficientStorage(ApiError):
    """Disk almost full (507). Not 503, as load balancers take that for a server that is down. Instructs clients not to retry."""

    status = 507
    default_code = "insufficient_storage"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.headers = {"x-should-retry": "false"}
