"""POST request to a webhook endpoint: checked address, no redirects, bounded time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import httpx2
import orjson
import uuid_utils
from django.conf import settings

from responses_app.errors import shorten
from responses_app.models import WebhookEndpoint
from responses_app.outbound_http.certificates import certificate_problem
from responses_app.outbound_http.pinned_transport import AddressRefused, PinnedTransport
from responses_app.store.cluster.clock import shared_clock
from responses_app.webhooks.signatures import signing_secrets, webhook_headers

TIMEOUT_S: Final = 15.0
MAX_ERROR_CHARS: Final = 200
USER_AGENT: Final = "Verbatim"
REFUSED_HOST: Final = (
    "The host is not on the public internet, or has no address. The operator allows internal hosts with "
    "RESPONSES_WEBHOOK_PRIVATE_HOSTS."
)
UNDECRYPTABLE: Final = "The signing secret cannot be decrypted, because SECRET_KEY has changed. Rotate the secret."


@dataclass(frozen=True, slots=True)
class WebhookAnswer:
    """Outcome of a request: the HTTP status, or else the reason why there is none."""

    status_code: int | None = None
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Return whether the endpoint has accepted the event."""
        return self.status_code is not None and 200 <= self.status_code < 300


@dataclass(frozen=True, slots=True)
class WebhookEvent:
    """Event for an endpoint. `delivery_uid` is the header `webhook-id`, the same in all attempts."""

    delivery_uid: str
    uid: str
    type: str
    response_uid: str
    created_at: datetime

    def body(self) -> bytes:
        """Return the JSON body, the same in all attempts."""
        event: dict[str, Any] = {
            "id": self.uid,
            "object": "event",
            "type": self.type,
            "created_at": int(self.created_at.timestamp()),
            "data": {"id": self.response_uid},
        }
        return orjson.dumps(event)


async def send_event(
    endpoint: WebhookEndpoint, event: WebhookEvent, now: datetime, timeout_s: float = TIMEOUT_S
) -> WebhookAnswer:
    """Sign `event` with the secrets valid at `now`, and send a POST to `endpoint`. Wait at most `timeout_s` seconds."""
    secrets, body = signing_secrets(endpoint, now), event.body()
    if not secrets:
        return WebhookAnswer(error=UNDECRYPTABLE)
    headers = {
        **webhook_headers(event.delivery_uid, body, now, secrets),
        "Content-Type": "application/json",
        "User-Agent": USER_AGENT,
    }
    transport = PinnedTransport(settings.RESPONSES_WEBHOOK_PRIVATE_HOSTS)
    try:
        async with (
            asyncio.timeout(timeout_s),
            httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False, timeout=timeout_s) as client,
            client.stream("POST", endpoint.url, content=body, headers=headers) as response,
        ):
            return WebhookAnswer(response.status_code)
    except AddressRefused:
        return WebhookAnswer(error=REFUSED_HOST)
    except (TimeoutError, httpx2.TimeoutException):
        return WebhookAnswer(error=f"No answer within {timeout_s:g} seconds.")
    except (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, UnicodeError) as error:
        if problem := certificate_problem(error):
            return WebhookAnswer(error=f"The certificate is not accepted: {problem}.")
        return WebhookAnswer(error=shorten(f"No answer: {str(error).strip() or type(error).__name__}", MAX_ERROR_CHARS))


async def send_test(endpoint: WebhookEndpoint, event_type: str) -> WebhookAnswer:
    """Send a sample event to `endpoint`, with ids that name nothing."""
    now, number = shared_clock.now(), uuid_utils.uuid7().hex
    return await send_event(endpoint, WebhookEvent(f"wh_{number}", f"evt_{number}", event_type, f"resp_{number}", now), now)
