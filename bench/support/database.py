"""Postgres of a benchmark, and a stored response with a long log."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Events of a COPY, as a run writes these in groups.
GROUP = 8


@contextmanager
def database(environ: Mapping[str, str] | None = None) -> Iterator[int]:
    """Start a Postgres with default settings and all tables, set up Django, and yield the process id of the Postgres."""
    from responses_app.server.postgres.cluster import Postgres

    with tempfile.TemporaryDirectory(prefix="verbatim-bench-") as folder, Postgres(Path(folder), {}) as postgres:
        os.environ |= {"DATABASE_URL": postgres.url, "RESPONSES_DATA_DIR": folder, "DJANGO_SETTINGS_MODULE": "project.settings"}
        os.environ |= environ or {}
        import django
        from django.core.management import call_command
        from django.db import connection

        django.setup(set_prefix=False)
        call_command("migrate", verbosity=0)
        yield postgres.pid
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]


def add_response(uid: str, deltas: int, seed: int = 1) -> int:
    """Store a completed response with a log of so many deltas, and return the primary key."""
    from bench.support.logs import created_at, make_log
    from responses_app.models import Response, Status

    row = Response(
        uid=uid,
        project="bench",
        model="m",
        thread=uid,
        status=Status.COMPLETED,
        created_at=created_at(),
        ended_at=created_at(),
    )
    row.save()
    _copy(row.pk, make_log(deltas, random.Random(seed)))
    return row.pk


def _copy(pk: int, frames: Sequence[Any]) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for start in range(0, len(frames), GROUP):
            with cursor.copy("COPY responses_app_event (response_id, number, type, data, ms, tokens) FROM STDIN") as copy:
                for frame in frames[start : start + GROUP]:
                    tokens = b"1234" if frame.type.endswith(".delta") else None
                    copy.write_row((pk, frame.number, frame.type, frame.data.decode(), frame.ms, tokens))
