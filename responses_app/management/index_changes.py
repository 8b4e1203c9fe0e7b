"""Replacement of an index while the server goes on: the new index is built concurrently, with a line of progress."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.management.base import OutputWrapper
from django.db import models, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from responses_app.management.progress import ProgressLine

POLL_S = 1.0
# Blocks or rows, whichever the phase counts (https://www.postgresql.org/docs/current/progress-reporting.html).
PROGRESS_SQL = """
SELECT phase, GREATEST(blocks_done, tuples_done), GREATEST(blocks_total, tuples_total) FROM pg_stat_progress_create_index WHERE pid = %s
"""
VALID_SQL = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)"


@dataclass(frozen=True, slots=True)
class IndexChange:
    """The index `new` of a model replaces the index `old`, which may have the same name."""

    model: str
    old: models.Index
    new: models.Index

    def reversed(self) -> IndexChange:
        """Return the way back."""
        return IndexChange(self.model, self.new, self.old)

    def apply(self, model: type[models.Model], schema_editor: BaseDatabaseSchemaEditor) -> None:
        """Build the new index, rename both, and drop the old index. A repeated call continues after a failure."""
        name = self.new.name
        fresh, stale = f"{name}_new", f"{name}_old"
        with schema_editor.connection.cursor() as cursor:
            if _is_valid(cursor, stale) is None:
                _build(cursor, model, self.new, fresh, schema_editor)
                with transaction.atomic():
                    cursor.execute(f"ALTER INDEX IF EXISTS {self.old.name} RENAME TO {stale}")
                    cursor.execute(f"ALTER INDEX {fresh} RENAME TO {name}")
            cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {stale}")


def _build(cursor: Any, model: type[models.Model], index: models.Index, name: str, editor: BaseDatabaseSchemaEditor) -> None:
    is_valid = _is_valid(cursor, name)
    if is_valid:
        return
    if is_valid is False:
        # Left by a build that was broken off.
        cursor.execute(f"DROP INDEX CONCURRENTLY {name}")
    named = index.clone()
    named.name = name
    with _progress(editor.connection, index.name):
        editor.add_index(model, named, concurrently=True)  # type: ignore[call-arg]


def _is_valid(cursor: Any, name: str) -> bool | None:
    """Return whether the index is complete; None if there is none."""
    cursor.execute(VALID_SQL, [name])
    row = cursor.fetchone()
    return None if row is None else row[0]


@contextmanager
def _progress(connection: Any, name: str) -> Iterator[None]:
    """Write a line of progress for each phase of the index that `connection` builds. A short build writes nothing."""
    connection.ensure_connection()
    ended = threading.Event()
    watch = threading.Thread(target=_watch, args=(connection, connection.connection.info.backend_pid, name, ended))
    watch.start()
    try:
        yield
    finally:
        ended.set()
        watch.join()


def _watch(building: Any, pid: int, name: str, ended: threading.Event) -> None:
    # A connection of Django belongs to the thread that made it.
    connection = building.copy()
    line: ProgressLine | None = None
    shown_phase, out = "", OutputWrapper(sys.stderr)
    try:
        while not ended.wait(POLL_S):
            with connection.cursor() as cursor:
                cursor.execute(PROGRESS_SQL, [pid])
                phase, done, total = cursor.fetchone() or ("", 0, 0)
            if phase != shown_phase or line is None:
                line, shown_phase = ProgressLine(out, f"index {name}, {phase or 'waiting'}", total), phase
            line.add(done - line.done)
        if line is not None:
            line.end(f"index {name}: built")
    finally:
        connection.close()
