"""Check of the quiet times of a proxy: a request without `stream` is silent until its response is complete."""

from __future__ import annotations

import time
from typing import Any, Final

import httpx2

from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, CheckResults

LIMIT_S: Final = 20.0
# The response is cancelled when the connection ends, so the number only has to be large.
TOKENS: Final = 100_000
KEY_REFUSED: Final = (
    "The server refuses the key. Give a valid key with --key; if it is valid without the proxy, let the proxy pass the header "
    "Authorization on."
)
NO_MODEL: Final = "The server has no model that is ready."
REMEDY: Final = "Raise the read time-out of the proxy: nginx `proxy_read_timeout 1h`."


def authorization(key: str) -> dict[str, str]:
    """Return the headers with the key."""
    return {"Authorization": f"Bearer {key}"}


def models(url: str, key: str) -> list[str] | None:
    """Return the ids of the models that are ready; None if the key is refused."""
    answer = httpx2.get(f"{url}/v1/models", headers=authorization(key), timeout=LIMIT_S)
    if answer.status_code == httpx2.codes.UNAUTHORIZED:
        return None
    entries: list[dict[str, Any]] = answer.json().get("data", [])
    return [str(entry["id"]) for entry in entries]


def check_silent_request(url: str, key: str, wait_s: float) -> CheckResults:
    """Send a request of a long response without `stream`, and check that the connection is silent and open for `wait_s` seconds."""
    if not wait_s:
        yield SKIPPED, "Not checked. --wait 75 lets a model generate for 75 seconds without a stream."
        return
    names = models(url, key)
    if not names:
        yield (FAILED, KEY_REFUSED) if names is None else (SKIPPED, NO_MODEL)
        return
    body = {"model": names[0], "input": "Count from 1 to 100.", "store": False, "max_output_tokens": TOKENS, "ignore_eos": True}
    began = time.monotonic()
    try:
        timeout = httpx2.Timeout(LIMIT_S, read=wait_s)
        answer = httpx2.post(f"{url}/v1/responses", json=body, headers=authorization(key), timeout=timeout)
    except httpx2.ReadTimeout:
        yield OK, f"A request without a stream stays open for {wait_s:g} silent seconds."
        return
    except httpx2.HTTPError as error:
        ended_s = time.monotonic() - began
        yield FAILED, f"A silent request was ended after {ended_s:.0f} s ({type(error).__name__}). {REMEDY}"
        return
    ended_s = time.monotonic() - began
    if "x-request-id" not in answer.headers or answer.status_code == httpx2.codes.GATEWAY_TIMEOUT:
        yield FAILED, f"The proxy answers {answer.status_code} to a silent request after {ended_s:.0f} s. {REMEDY}"
    else:
        sentence = f"The request of {names[0]} without a stream was answered {answer.status_code} after {ended_s:.1f} s"
        yield SKIPPED, f"{sentence}, which is too early to see a time-out of {wait_s:g} s."
