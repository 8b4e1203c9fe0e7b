"""First API key: configured, stored by an earlier start, or created."""

from __future__ import annotations

import secrets
from pathlib import Path

from project.env import read_variable
from responses_app.installation.data_dir import load_or_create
from responses_app.installation.keyring import secret_key_ids
from responses_app.models import ApiKey
from responses_app.store.cluster.leases import live_workers

NAME = "first"
PROJECT = "default"
FILE = "api_key"
KEYS_REFUSED = (
    "SECRET_KEY is not the one with which the first API key was stored: keys made with the other one are refused, and what it has "
    "encrypted cannot be read. Set the other one again, or add it to SECRET_KEY_FALLBACKS. If it is lost, revoke the older key 'first'."
)
UNSHARED = (
    "Processes with another SECRET_KEY use this database, such as {name}. All hosts of a database need the same SECRET_KEY: with "
    "different ones each refuses the API keys of the others, and cannot read what these have encrypted. Set SECRET_KEY on every "
    "host and for every command to the same value."
)


def unshared_secret_key() -> str | None:
    """Return a warning if processes that run have a SECRET_KEY that is none of this process. Earlier versions name no key."""
    others = live_workers().exclude(secret_key_id__in=["", *secret_key_ids()])
    name = others.values_list("name", flat=True).first()
    return UNSHARED.format(name=name) if name is not None else None


def first_key(data_dir: Path) -> str:
    """Return RESPONSES_API_KEY, or the key in `data_dir/api_key`, created at the first call. The database gets the key.

    A revoked key stays revoked: the function returns the key, and the API rejects the key.
    """
    secret = read_variable("RESPONSES_API_KEY") or load_or_create(data_dir / FILE, f"sk-{secrets.token_urlsafe(32)}")
    if not ApiKey.is_stored(secret):
        ApiKey.make(NAME, project=PROJECT, secret=secret)
    return secret


def other_secret_key(data_dir: Path) -> str | None:
    """Return a warning if the key of the data folder was stored with another SECRET_KEY."""
    file = data_dir / FILE
    secret = file.read_text().strip() if file.is_file() else ""
    return KEYS_REFUSED if secret and ApiKey.has_hash_of_another_secret_key(secret) else None
