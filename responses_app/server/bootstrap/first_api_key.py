"""First API key: configured, stored by an earlier start, or created."""

from __future__ import annotations

import secrets
from pathlib import Path

from project.env import read_variable
from responses_app.installation.data_dir import load_or_create
from responses_app.models import ApiKey

NAME = "first"
PROJECT = "default"


def first_key(data_dir: Path) -> str:
    """Return RESPONSES_API_KEY, or the key in `data_dir/api_key`, created at the first call. The database gets the key.

    A revoked key stays revoked: the function returns the key, and the API rejects the key.
    """
    secret = read_variable("RESPONSES_API_KEY") or load_or_create(data_dir / "api_key", f"sk-{secrets.token_urlsafe(32)}")
    if not ApiKey.is_stored(secret):
        ApiKey.make(NAME, project=PROJECT, secret=secret)
    return secret
