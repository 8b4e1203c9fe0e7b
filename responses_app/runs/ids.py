"""Ids: a prefix of the protocol and 48 hex digits, the first of which are a time, so that neighbours in time are neighbours in an index."""

from __future__ import annotations

import secrets

import uuid_utils

RANDOM_BYTES = 8


def mint(prefix: str) -> str:
    """A new id, such as `msg_0193…`. `prefix` ends in its underscore."""
    return f"{prefix}{uuid_utils.uuid7().hex}{secrets.token_hex(RANDOM_BYTES)}"
