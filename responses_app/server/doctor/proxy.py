"""Checks of the proxy in front of a running server, from outside: TLS, Host, body size, WebSocket, buffering, silence.

A check sends the requests that a client would send. The check of buffering lets a model generate tokens.
"""

from __future__ import annotations

import base64
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Final
from urllib.parse import SplitResult, urlsplit

import httpx2

from responses_app.server.doctor.findings import FAILED, OK, SKIPPED, WARNING, Check, CheckResults, FindingStatus
from responses_app.server.doctor.silence import KEY_REFUSED, LIMIT_S, NO_MODEL, authorization, check_silent_request, models

STREAM_LIMIT_S: Final = 120.0
# A request with an image as a data URL may be as long.
BODY_BYTES: Final = 20 * 1024 * 1024
MIN_CERTIFICATE_DAYS: Final = 14
LOCAL: Final = ("localhost", "127.0.0.1", "::1")
# First bytes of frames, RFC 6455, section 5.2.
CLOSE_FRAME, PING_FRAME, PONG_FRAME = 0x88, 0x89, 0x8A
# In a shorter stream buffering cannot be seen. Of a longer one, a buffering proxy passes everything in the last part.
MIN_STREAM_S: Final = 0.5
BUFFERED_SHARE: Final = 0.2
# Length of the stream, and of a second one when the first is too short.
STREAM_TOKENS: Final = (200, 4_000)
NO_KEY: Final = "Give a key with --key, or run this where the data folder has the file api_key."
NO_BUFFERING: Final = "Switch buffering off: nginx `proxy_buffering off`, and no compression of text/event-stream."


def checks(url: str, key: str, wait_s: float) -> list[tuple[str, Check]]:
    """Return the checks of the server at `url`; only the first two if nothing answers. `wait_s` is the length of the silence."""
    url = url.rstrip("/")
    first: list[tuple[str, Check]] = [("TLS", partial(check_tls, url)), ("proxy", partial(check_answer, url))]
    if _is_failed(first[0][1]) or _is_failed(first[1][1]):
        return first
    with_key: dict[str, Callable[[str, str], CheckResults]] = {
        "body size": check_body_size,
        "buffering": check_buffering,
        "WebSocket": partial(check_websocket, wait_s=wait_s),
        "silent request": partial(check_silent_request, wait_s=wait_s),
    }
    checked = {name: partial(check, url, key) if key else _without_key for name, check in with_key.items()}
    return [*first, ("host header", partial(check_host, url)), *checked.items()]


def check_tls(url: str) -> CheckResults:
    """Check the certificate as a client does: issuer, name and remaining days."""
    parts = urlsplit(url)
    if parts.scheme == "http":
        status = OK if parts.hostname in LOCAL else WARNING
        yield status, "The URL has no TLS, so keys and texts are sent in clear. Use https:// outside of this host."
        return
    try:
        with _connect(parts) as link:
            assert isinstance(link, ssl.SSLSocket)  # noqa: S101 - of an https URL
            expires = str((link.getpeercert() or {}).get("notAfter", ""))
    except ssl.SSLCertVerificationError as error:
        yield (
            FAILED,
            f"The certificate is not accepted: {error.verify_message}. Install one of a public authority, with its chain.",
        )
        return
    except OSError as error:
        yield FAILED, f"There is no TLS connection to {parts.netloc}: {error}. Check the address, the port and the proxy."
        return
    days = (datetime.fromtimestamp(ssl.cert_time_to_seconds(expires), UTC) - datetime.now(UTC)).days
    if days < MIN_CERTIFICATE_DAYS:
        yield WARNING, f"The certificate ends in {days} days. Check its renewal."
    else:
        yield OK, f"The certificate is valid for {days} days."


def check_answer(url: str) -> CheckResults:
    """Check that the server itself answers through the proxy."""
    try:
        answer = httpx2.get(f"{url}/health/live", timeout=LIMIT_S)
    except httpx2.HTTPError as error:
        yield FAILED, f"{url} does not answer ({type(error).__name__}). Check the address, and that the proxy runs."
        return
    if answer.status_code in (502, 503, 504):
        yield (
            FAILED,
            f"The proxy answers {answer.status_code}: the server behind it is away. Start it, or correct the upstream address.",
        )
    elif answer.has_redirect_location:
        yield FAILED, f"{url} redirects to {answer.headers['Location']}. Give --url the address that clients should use."
    elif answer.status_code != httpx2.codes.OK or "x-request-id" not in answer.headers:
        yield (
            FAILED,
            f"{url}/health/live answers {answer.status_code} without x-request-id. Either another server answers: correct the route. "
            "Or the proxy removes this header: let it pass the header on, which finds a request in the logs.",
        )
    else:
        yield OK, "The server answers through the proxy."


def check_host(url: str) -> CheckResults:
    """POST a form with the header Origin: Django refuses the form unless Host and scheme match the browser."""
    with httpx2.Client(base_url=url, timeout=LIMIT_S) as client:
        client.get("/sign-in")
        token = next((value for name, value in client.cookies.items() if name.startswith("csrftoken")), "")
        headers = {"Origin": url, "Referer": f"{url}/", "X-CSRFToken": token}
        status = client.post("/sign-out", headers=headers).status_code
    if status == httpx2.codes.FORBIDDEN:
        yield (
            FAILED,
            "Forms are refused, because the server sees another host or scheme than the browser. Pass Host on (nginx "
            "`proxy_set_header Host $http_host`), and set RESPONSES_TLS=True, or RESPONSES_TLS_HEADER, behind TLS.",
        )
    elif status >= 400:
        yield FAILED, f"POST /sign-out answers {status}. Look into the log of the proxy."
    else:
        yield OK, "The server sees the host and the scheme of the browser."


def check_body_size(url: str, key: str) -> CheckResults:
    """Send an empty JSON object after white space: the server answers 400, and a proxy with a small limit 413."""
    body, size = b" " * BODY_BYTES + b"{}", f"{BODY_BYTES // 1024**2} MiB"
    headers = {**authorization(key), "Content-Type": "application/json"}
    try:
        answer = httpx2.post(f"{url}/v1/responses/input_tokens", content=body, headers=headers, timeout=STREAM_LIMIT_S)
    except httpx2.HTTPError as error:
        yield (
            FAILED,
            f"A body of {size} is not accepted ({type(error).__name__}). Raise the body limit and the time-outs of the proxy.",
        )
        return
    if answer.status_code == httpx2.codes.UNAUTHORIZED:
        yield FAILED, KEY_REFUSED
    elif "x-request-id" not in answer.headers:
        yield (
            FAILED,
            f"The proxy answers {answer.status_code} to a body of {size}. Raise its limit to that of the largest upload: nginx "
            "`client_max_body_size 600m`.",
        )
    else:
        yield OK, f"A body of {size} reaches the server."


def check_buffering(url: str, key: str) -> CheckResults:
    """Stream a response, and compare the arrival of the pieces with the time at which the server began the answer."""
    names = models(url, key)
    if not names:
        yield (FAILED, KEY_REFUSED) if names is None else (SKIPPED, NO_MODEL)
        return
    finding = SKIPPED, ""
    for tokens in STREAM_TOKENS:
        arrivals = _stream_arrivals(url, key, names[0], tokens)
        finding = arrivals if isinstance(arrivals, tuple) else judge_stream(names[0], arrivals)
        if finding[0] != SKIPPED:
            break
    yield finding


def _stream_arrivals(url: str, key: str, model: str, tokens: int) -> list[float] | tuple[FindingStatus, str]:
    """Stream a response; return the seconds from the begin of the answer to each piece, or why there are none to compare."""
    body = {"model": model, "input": "Count from 1 to 100.", "stream": True, "store": False, "max_output_tokens": tokens}
    body["ignore_eos"] = True
    began = time.monotonic()
    with httpx2.stream("POST", f"{url}/v1/responses", json=body, headers=authorization(key), timeout=STREAM_LIMIT_S) as answer:
        if answer.status_code != httpx2.codes.OK:
            return SKIPPED, f"The request of a stream is answered {answer.status_code}, so buffering cannot be seen."
        if encoding := answer.headers.get("content-encoding"):
            return FAILED, f"The proxy compresses a stream with {encoding}, which holds events back. {NO_BUFFERING}"
        # The server took as long before it sent the head. That is no time of the stream.
        prepared_s = int(answer.headers.get("openai-processing-ms", 0)) / 1000
        return [time.monotonic() - began - prepared_s for _ in answer.iter_raw()]


def judge_stream(model: str, arrivals: Sequence[float]) -> tuple[FindingStatus, str]:
    """Return the finding about a stream whose pieces arrived so many seconds after the server began to send."""
    first_s, whole_s = (arrivals[0], arrivals[-1]) if arrivals else (0.0, 0.0)
    if whole_s < MIN_STREAM_S:
        return SKIPPED, f"The stream of {model} took {max(whole_s, 0):.1f} s, which is too short to see buffering."
    if whole_s - first_s < BUFFERED_SHARE * whole_s:
        return FAILED, f"All of a stream of {whole_s:.1f} s arrived at its end. {NO_BUFFERING}"
    return OK, f"A stream arrives as it is made: its first piece after {max(first_s, 0):.1f} s of {whole_s:.1f} s."


def check_websocket(url: str, key: str, wait_s: float) -> CheckResults:
    """Open a WebSocket, and with `wait_s` check that the connection is open after that many seconds without a message."""
    try:
        with _connect(urlsplit(url)) as link:
            status = _upgrade(link, urlsplit(url), key)
            if status == httpx2.codes.UNAUTHORIZED:
                yield FAILED, KEY_REFUSED
                return
            if status != httpx2.codes.SWITCHING_PROTOCOLS:
                yield (
                    FAILED,
                    (
                        f"A WebSocket is answered {status}. Pass Upgrade and Connection on: nginx `proxy_http_version 1.1`, "
                        "`proxy_set_header Upgrade $http_upgrade` and `proxy_set_header Connection $connection_upgrade`."
                    ),
                )
                return
            yield OK, "A WebSocket opens."
            if not wait_s:
                yield SKIPPED, "Time-outs are not checked. --wait 75 holds a quiet WebSocket for 75 seconds."
            elif ended_s := _silence_ended_s(link, wait_s):
                yield (
                    FAILED,
                    f"A quiet WebSocket was closed after {ended_s:.0f} s. Raise the read time-out of the proxy.",
                )
            else:
                yield OK, f"A quiet WebSocket stays open for {wait_s:g} s."
    except OSError as error:
        yield FAILED, f"A WebSocket does not open ({error}). Pass Upgrade and Connection on to the server."


def _upgrade(link: socket.socket, parts: SplitResult, key: str) -> int:
    """Send the handshake of a WebSocket and return the status of the answer; 0 without an answer."""
    lines = [
        f"GET {parts.path}/v1/responses HTTP/1.1",
        f"Host: {parts.netloc}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        "Sec-WebSocket-Version: 13",
        f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
        f"Authorization: Bearer {key}",
    ]
    link.sendall("\r\n".join([*lines, "", ""]).encode())
    line = link.recv(65_536).split(b"\r\n", 1)[0].split()
    return int(line[1]) if len(line) > 1 and line[1].isdigit() else 0


def _silence_ended_s(link: socket.socket, wait_s: float) -> float | None:
    """Answer pings for `wait_s` seconds. Return the seconds after which the peer closed the connection, or None."""
    began = time.monotonic()
    with suppress(TimeoutError):
        while (left := began + wait_s - time.monotonic()) > 0:
            link.settimeout(left)
            frame = link.recv(65_536)
            if not frame or frame[0] == CLOSE_FRAME:
                return time.monotonic() - began
            if frame[0] == PING_FRAME:
                link.sendall(_pong(frame[2:]))
    return None


def _pong(payload: bytes) -> bytes:
    """Return the answer to a ping of at most 125 bytes, masked with zeros, as a client must mask."""
    return bytes([PONG_FRAME, 0x80 | len(payload), 0, 0, 0, 0]) + payload


def _connect(parts: SplitResult) -> socket.socket:
    """Connect to the host of a URL, with TLS for https. Raises OSError."""
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    link = socket.create_connection((host, port), timeout=LIMIT_S)
    if parts.scheme != "https":
        return link
    try:
        return ssl.create_default_context().wrap_socket(link, server_hostname=host)
    except BaseException:
        link.close()
        raise


def _without_key() -> CheckResults:
    yield SKIPPED, NO_KEY


def _is_failed(check: Check) -> bool:
    return any(status == FAILED for status, _ in check())
