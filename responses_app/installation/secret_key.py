"""SECRET_KEY: set by the operator, or created once and stored in the data folder."""

from __future__ import annotations

import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from responses_app.installation.data_dir import UnusableFolder, load_or_create

MIN_LENGTH = 32
COMMAND = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"


def secret_key(data_dir: Path, *, is_stored: bool = True) -> str:
    """Return the key in `data_dir/secret_key`, created at the first call. API keys are hashed with this key.

    Unless `is_stored`, a missing key is made in memory alone.

    Raises ImproperlyConfigured for a folder that cannot be made or written to, and for a short key.
    """
    file = data_dir / "secret_key"
    made = secrets.token_urlsafe(48)
    try:
        value = load_or_create(file, made) if is_stored or file.exists() else made
    except OSError as error:
        raise ImproperlyConfigured(str(UnusableFolder.from_error(data_dir, error))) from None
    if len(value) < MIN_LENGTH:
        raise ImproperlyConfigured(
            f"{file} has fewer than {MIN_LENGTH} characters: put the file of a backup in its place. Without it the next start "
            "makes a new key, and API keys are unknown then"
        )
    return value


def check_secret_key(value: str) -> str:
    """Return the operator's key. Raises ImproperlyConfigured, without the value, for a short key."""
    if value and len(value) < MIN_LENGTH:
        raise ImproperlyConfigured(f"SECRET_KEY must have at least {MIN_LENGTH} characters; this makes one: {COMMAND}")
    return value
