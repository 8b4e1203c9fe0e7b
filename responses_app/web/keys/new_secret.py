"""Secret of a new API key, encrypted in the session from the POST until the next page shows the secret once."""

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
# After this time the secret is lost, and the user has to create a new key.
VALID_SECONDS: Final = 10 * 60


def put(request: HttpRequest, secret: str) -> None:
    """Store the secret in the session, encrypted with a key derived from `SECRET_KEY`."""
    request.session[NAME] = _cipher(settings.SECRET_KEY).encrypt(secret.encode()).decode()


def take(request: HttpRequest) -> str | None:
    """Remove the secret from the session and return the decrypted secret, or None if missing or expired."""
    encrypted = request.session.pop(NAME, None)
    if encrypted is None:
        return None
    try:
        return _cipher(settings.SECRET_KEY).decrypt(encrypted, ttl=VALID_SECONDS).decode()
    except InvalidToken:
        return None


@cache
def _cipher(secret: str) -> Fernet:
    key = HKDF(SHA256(), length=32, salt=None, info=b"verbatim new secret").derive(secret.encode())
    return Fernet(urlsafe_b64encode(key))
