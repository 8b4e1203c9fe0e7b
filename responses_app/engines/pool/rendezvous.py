"""Rendezvous hashing (highest random weight): each key has an order of preference of the names, the same in every process."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b


def ranking(key: str, names: Sequence[str]) -> list[str]:
    """Return `names` in the order of preference for `key`.

    The order of two names does not depend on the other names: without a name only its keys move, each to the next in its order.
    """
    return sorted(names, key=lambda name: _weight(key, name), reverse=True)


def _weight(key: str, name: str) -> bytes:
    return blake2b(f"{name}\0{key}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
