"""Limits of the transport, set by the application and applied by the HTTP server."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """Limits of a process: connections, and bytes of unfinished bodies and messages, in total and per key."""

    connections: int = 4096
    unfinished: int = 512 * MIB
    unfinished_each: int = 128 * MIB
