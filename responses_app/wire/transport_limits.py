"""Limits of the transport, set by the application and applied by the HTTP server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class TransportLimits:
    """Limits of a process: connections, and bytes of unfinished bodies and messages, in total and per key.

    Uploads of files are counted apart: `upload` is the limit of a body, `upload_folder` the folder of temporary files.
    A silent WebSocket gets a ping every `ping_interval_s` seconds.
    """

    connections: int = 4096
    unfinished: int = 512 * MIB
    unfinished_each: int = 128 * MIB
    upload: int = 513 * MIB
    upload_folder: Path | None = None
    ping_interval_s: float = 10
