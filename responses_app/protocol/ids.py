"""Prefixes of ids, and the type of the function that makes ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

IdFactory: TypeAlias = Callable[[str], str]
"""Return a new id that begins with the given prefix. The protocol is pure, so random ids come from outside."""

CALL_ID_PREFIX: Final = "call_"
# Kind of object -> prefix of its ids. The prefixes of items are in the registry of item families.
PREFIXES: Final = {
    "response": "resp_",
    "call": CALL_ID_PREFIX,
    "conversation": "conv_",
    "file": "file-",
    "request": "req_",
}
