"""The SECRET_KEY: given by the operator, or made once and kept in the data folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from responses_app.local.data_dir import load_or_create

MIN_LENGTH = 32
COMMAND = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"


def secret_key(data_dir: Path) -> str:
    """The key in `data_dir/secret_key`, made at the first call. API keys are hashed with it: losing it revokes them all."""
    return load_or_create(data_dir / "secret_key", secrets.token_urlsafe(48))


def check_secret_key(value: str) -> str:
    """Return a key that the operator has given. Raises ImproperlyConfigured, without the value, if it is too short."""
    if value and len(value) < MIN_LENGTH:
        raise ImproperlyConfigured(f"SECRET_KEY must have at least {MIN_LENGTH} characters; this makes one: {COMMAND}")
    return value
