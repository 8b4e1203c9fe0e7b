"""Ids: a prefix of the protocol and 48 hex digits, the first of which are a time, so that neighbours in time are neighbours in an index."""

from __future__ import annotations

import re
import secrets

import uuid_utils

RANDOM_BYTES = 8
# Ours, and those that clients make. Anything else names nothing here, and some of it (NUL) Postgres would not even take as a question.
SHAPE = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def is_id(text: str) -> bool:
    """Whether `text` has the shape of an id at all."""
    return SHAPE.fullmatch(text) is not None


def new_id(prefix: str) -> str:
    """A new id, such as `msg_0193…`. `prefix` ends in its underscore."""
    return f"{prefix}{uuid_utils.uuid7().hex}{secrets.token_hex(RANDOM_BYTES)}"
