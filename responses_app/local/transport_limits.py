"""Limits of the transport, which the application sets and the server applies."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """Limits of one process: connections, and bytes of unfinished bodies and messages in all and of one key."""

    connections: int = 4096
    unfinished: int = 512 * MIB
    unfinished_each: int = 128 * MIB
