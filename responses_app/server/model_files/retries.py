"""Requests to the model hub that are sent again: after a limit of the rate, a failure of the hub, or a broken connection."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

from responses_app.server.model_files.sizes import time_text
from responses_app.utils.backoff import Backoff

Answer = TypeVar("Answer")

# Pauses after failures in a row.
PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
MAX_FAILURES = 6
# The longest pause that a hub can ask for. Behind a longer one, the error has the time.
MAX_PAUSE_S = 60.0
RETRIED_STATUSES = (408, 429, 500, 502, 503, 504)


class Retries:
    """Counts failures in a row and pauses between the requests; `note` gets the reason and the length of each pause."""

    def __init__(self, note: Callable[[str], object], stopped: threading.Event | None = None) -> None:
        self._report_pause, self._stopped = note, stopped or threading.Event()
        self._backoff = Backoff(PAUSES_S)

    def reset(self) -> None:
        """Begin with the first pause again."""
        self._backoff.reset()

    def wait_after(self, error: Exception) -> bool:
        """Pause behind a failure. Return False if the wait was stopped. Raises `error` if no other request is to be sent."""
        pause_s = max(self._backoff.next_pause_s(), _asked_pause_s(error))
        if self._backoff.failures >= MAX_FAILURES or pause_s > MAX_PAUSE_S:
            raise error
        self._report_pause(f"{_reason(error)}; try {self._backoff.failures + 1} of {MAX_FAILURES} in {pause_s:g} s")
        return not self._stopped.wait(pause_s)

    def call(self, request: Callable[[], Answer]) -> Answer:
        """Return the answer of `request`, which is sent again after failures that pass. Raises the exceptions of `request`."""
        while True:
            try:
                answer = request()
                self.reset()
                return answer
            except Exception as error:
                if not (is_passing_status(error) or _is_broken(error)) or not self.wait_after(error):
                    raise


def wait_text(error: Exception) -> str:
    """Return the time that the hub asks to wait, as words; "" if the hub names none."""
    asked_s = _asked_pause_s(error)
    return time_text(asked_s) if asked_s else ""


def is_passing_status(error: Exception) -> bool:
    """Return True for a status of the hub behind which another request may succeed."""
    from huggingface_hub.errors import HfHubHTTPError

    return isinstance(error, HfHubHTTPError) and error.response.status_code in RETRIED_STATUSES


def _is_broken(error: Exception) -> bool:
    """Return True for a connection that ended before the answer."""
    import httpx2

    return isinstance(error, (httpx2.RemoteProtocolError, httpx2.ReadError))


def _asked_pause_s(error: Exception) -> float:
    """Return the seconds of `Retry-After` or `RateLimit`, 0 if the hub names none."""
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils._http import parse_ratelimit_headers

    if not isinstance(error, HfHubHTTPError):
        return 0.0
    headers = error.response.headers
    after = headers.get("Retry-After", "").strip()
    if after.isdecimal() and after.isascii():
        return float(after)
    limit = parse_ratelimit_headers(headers)
    return float(limit.reset_in_seconds) if limit and not limit.remaining else 0.0


def _reason(error: Exception) -> str:
    from huggingface_hub.errors import HfHubHTTPError

    if isinstance(error, HfHubHTTPError):
        return f"{urlsplit(str(error.response.url)).netloc} answers {error.response.status_code}"
    return str(error).strip().partition("\n")[0].rstrip(".") or type(error).__name__
