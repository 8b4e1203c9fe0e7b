"""Ids: a prefix of the protocol and 48 hex digits. The first digits are a time, so that new ids are neighbours in an index."""

from __future__ import annotations

import re
from os import urandom

import uuid_utils

RANDOM_BYTES = 8
# Ids of this server and of clients. Any other text names nothing, and Postgres rejects queries with NUL characters.
SHAPE = re.compile(r"[A-Za-z0-9_.:-]{1,128}")


def is_id(text: str) -> bool:
    """Return whether `text` has the shape of an id at all."""
    return SHAPE.fullmatch(text) is not None


def new_id(prefix: str) -> str:
    """Return a new id, such as `msg_0193…`. `prefix` ends with an underscore or a hyphen."""
    return f"{prefix}{uuid_utils.uuid7().hex}{urandom(RANDOM_BYTES).hex()}"
