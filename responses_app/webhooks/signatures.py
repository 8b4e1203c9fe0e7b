"""Signing secrets of webhook endpoints, and signatures by the specification Standard Webhooks."""

from __future__ import annotations

import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from responses_app.installation.keyring import decrypt_bytes, encryption_keys
from responses_app.models import WebhookEndpoint

PURPOSE: Final = b"verbatim webhook secrets"
PREFIX: Final = "whsec_"
SECRET_BYTES: Final = 32
HINT_CHARS: Final = 4


def new_secret() -> str:
    """Return a new signing secret: `whsec_` and 32 random bytes in base64."""
    return PREFIX + b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def secret_hint(secret: str) -> str:
    """Return the text that stands for a secret on pages and in the API."""
    return f"{PREFIX}…{secret[-HINT_CHARS:]}"


def encrypt_secret(uid: str, secret: str) -> bytes:
    """Encrypt the secret of the endpoint `uid`."""
    return next(encryption_keys(PURPOSE)).cipher.encrypt(secret.encode(), [uid.encode()])


def encrypt_again(uid: str, data: bytes | None) -> bytes | None:
    """Encrypt an encrypted secret with the key of SECRET_KEY. Data of that key, or of an unknown key, is returned unchanged."""
    clear = None if data is None else decrypt_bytes(PURPOSE, bytes(data), [uid.encode()])
    return data if clear is None else encrypt_secret(uid, clear.decode())


def signing_secrets(endpoint: WebhookEndpoint, now: datetime) -> list[str]:
    """Return the valid secrets, the newest first: two during a rotation, none if SECRET_KEY has changed."""
    stored = [endpoint.secret]
    if endpoint.old_secret is not None and endpoint.old_secret_until is not None and now < endpoint.old_secret_until:
        stored.append(endpoint.old_secret)
    clear = (decrypt_bytes(PURPOSE, bytes(data), [endpoint.uid.encode()]) for data in stored)
    return [secret.decode() for secret in clear if secret is not None]


def webhook_headers(uid: str, body: bytes, sent_at: datetime, secrets: Sequence[str]) -> dict[str, str]:
    """Return the headers `webhook-id`, `webhook-timestamp` and `webhook-signature` with a signature for each secret."""
    timestamp = str(int(sent_at.timestamp()))
    signed = f"{uid}.{timestamp}.".encode() + body
    return {
        "webhook-id": uid,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{_sign(secret, signed)}" for secret in secrets),
    }


def _sign(secret: str, signed: bytes) -> str:
    return b64encode(hmac.digest(b64decode(secret.removeprefix(PREFIX)), signed, "sha256")).decode()
