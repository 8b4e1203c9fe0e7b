"""The secret of a key that was just created, on its way from the POST to the page behind it: encrypted in the session, and taken once."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from functools import cache
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.http import HttpRequest

NAME: Final = "new_secret"
# Whoever has not looked by then has to create another key.
VALID_SECONDS: Final = 10 * 60


def put(request: HttpRequest, secret: str) -> None:
    """Keep the secret for the next page of this person. The database has it in a form that the server alone can read."""
    request.session[NAME] = _cipher(settings.SECRET_KEY).encrypt(secret.encode()).decode()


def take(request: HttpRequest) -> str | None:
    """The secret, once and for a few minutes; None if there is none."""
    kept = request.session.pop(NAME, None)
    if kept is None:
        return None
    try:
        return _cipher(settings.SECRET_KEY).decrypt(kept, ttl=VALID_SECONDS).decode()
    except InvalidToken:
        return None


@cache
def _cipher(secret: str) -> Fernet:
    key = HKDF(SHA256(), length=32, salt=None, info=b"verbatim new secret").derive(secret.encode())
    return Fernet(urlsafe_b64encode(key))
