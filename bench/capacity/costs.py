"""Measured costs of events and responses. docs/operations/scale.md names the command behind each figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs: CPU in µs, sizes in bytes. An event is an event of the log, with a share of the commit."""

    # bench.tape --streams 100 --rate 40 --only stored: the server without Postgres.
    web_us_per_event: float = 80.0
    # bench.starts: a request up to its first event.
    web_us_per_response: float = 3000.0
    # bench.capacity.postgres_load.
    postgres_us_per_event: float = 26.0
    archive_postgres_us_per_event: float = 13.0
    archive_web_us_per_event: float = 30.0
    wal_bytes_per_event: float = 255.0
    archive_wal_bytes_per_event: float = 80.0
    hot_bytes_per_event: float = 205.0
    archived_bytes_per_event: float = 14.0
    bytes_per_response: float = 6000.0
    # Bytes of Server-Sent Events on the wire, with padding.
    sent_bytes_per_event: float = 300.0


# Sessions of a web process: 16 of its pool, 2 of the log writer, 1 of look-ups of repeated requests, 2 of LISTEN and NOTIFY.
CONNECTIONS_PER_PROCESS = 21
# Seconds until a response has ended and its log is archived: RESPONSES_SEAL_AFTER, and the pace of the archiver.
HOT_AFTER_END_S = 60.0
# Share of a core or of a limit that a plan uses at its peak.
MAX_LOAD = 0.6
