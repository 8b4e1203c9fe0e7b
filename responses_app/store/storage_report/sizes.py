"""Sizes: bytes of each table, free space of the disk, and an estimate of the bytes of each project."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from django.apps import apps
from django.db import connection
from django.db.models import Sum

from responses_app.installation.data_dir import data_dir
from responses_app.installation.database_url import socket_dir
from responses_app.models import StoredFile

PREFIX: Final = "responses_app_"
# Tables of other apps have one line.
OTHERS: Final = "Tables of other apps"
# Blocks of a table that the estimate reads, about 20,000 responses.
SAMPLED_BLOCKS: Final = 1000
# A partition counts for its parent. `reltuples` is -1 or old before the next ANALYZE, and a crash sets the live tuples to 0.
TABLES_SQL: Final = """
SELECT COALESCE(parent.relname, child.relname)::text, sum(pg_table_size(child.oid))::bigint,
  sum(pg_indexes_size(child.oid))::bigint,
  sum(COALESCE(NULLIF(pg_stat_get_live_tuples(child.oid), 0), GREATEST(child.reltuples, 0)))::bigint
FROM pg_class AS child
LEFT JOIN pg_inherits ON inhrelid = child.oid
LEFT JOIN pg_class AS parent ON parent.oid = inhparent
WHERE child.relkind = 'r' AND child.relnamespace = current_schema()::regnamespace GROUP BY 1
"""
# Of each project: its responses, and the bytes of their items. Both are of a random part of the table.
PROJECTS_SQL: Final = """
SELECT project, sum(responses)::bigint, sum(bytes)::bigint FROM (
  SELECT project, count(*) AS responses, 0 AS bytes FROM responses_app_response TABLESAMPLE SYSTEM (%(responses)s) GROUP BY 1
  UNION ALL
  SELECT project, 0, sum(pg_column_size(body)) FROM responses_app_item TABLESAMPLE SYSTEM (%(items)s) GROUP BY 1
) AS part GROUP BY 1
"""
BLOCKS_SQL: Final = (
    "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::int, pg_relation_size(%s::regclass) / "
    "current_setting('block_size')::int"
)


class TableSize(NamedTuple):
    """Bytes of a table with its partitions, bytes of its indexes, and the number of rows as Postgres estimates it."""

    name: str
    table_bytes: int
    index_bytes: int
    rows: int

    @property
    def total_bytes(self) -> int:
        """Bytes of the table and its indexes."""
        return self.table_bytes + self.index_bytes


class ProjectSize(NamedTuple):
    """Estimate of a project: the share of the database in percent, and bytes; `file_bytes` are counted exactly."""

    name: str
    percent: float
    database_bytes: int
    file_bytes: int


def database_bytes() -> int:
    """Return the bytes of the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        return int(cursor.fetchone()[0])


def free_bytes() -> int | None:
    """Return the free bytes of the disk of Postgres; None if Postgres is on another host or hides its folder."""
    folder = _postgres_folder()
    try:
        return shutil.disk_usage(folder).free if folder is not None else None
    except OSError:
        return None


def _postgres_folder() -> Path | None:
    """Return a folder or file on the disk of Postgres, which may not exist on this host. None if the role may not read the setting."""
    folder = data_dir()
    if connection.settings_dict["HOST"] == str(socket_dir(folder)):
        return folder
    with connection.cursor() as cursor:
        cursor.execute("SELECT setting FROM pg_settings WHERE name = 'data_directory'")
        row = cursor.fetchone()
    return None if row is None else Path(row[0]) / "PG_VERSION"


def table_sizes() -> Sequence[TableSize]:
    """Return the tables of the server, the largest first. Tables of other apps are added up."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES_SQL)
        tables = [TableSize(*row) for row in cursor.fetchall()]
    labels = {model._meta.db_table: str(model._meta.verbose_name_plural) for model in apps.get_models()}
    app_tables = [table for table in tables if table.name.startswith(PREFIX)]
    named = [
        table._replace(name=labels.get(table.name, table.name.removeprefix(PREFIX).replace("_", " "))) for table in app_tables
    ]
    foreign = [table for table in tables if not table.name.startswith(PREFIX)]
    sums = (sum(column) for column in zip(*(table[1:] for table in foreign), strict=True))
    others = [TableSize(OTHERS, *sums)] if foreign else []
    return sorted([*named, *others], key=lambda table: -table.total_bytes)


def project_sizes(total_bytes: int) -> Sequence[ProjectSize]:
    """Estimate the bytes of each project of a database of `total_bytes`, the largest first.

    The share is the mean of the shares of the responses and of the bytes of items, in a sample of SAMPLED_BLOCKS of each table.
    """
    files = dict(StoredFile.objects.values_list("project").annotate(Sum("bytes")))
    rows = _sample_projects()
    responses, item_bytes = sum(row[1] for row in rows) or 1, sum(row[2] for row in rows) or 1
    shares = {name: (number / responses + size / item_bytes) / 2 for name, number, size in rows}
    sizes = [
        ProjectSize(name, 100 * shares.get(name, 0), int(total_bytes * shares.get(name, 0)), files.get(name, 0))
        for name in {*shares, *files}
    ]
    return sorted(sizes, key=lambda size: -size.database_bytes - size.file_bytes)


def _sample_projects() -> list[tuple[str, int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(BLOCKS_SQL, [f"{PREFIX}response", f"{PREFIX}item"])
        percents = [min(100.0, 100 * SAMPLED_BLOCKS / max(blocks, 1)) for blocks in cursor.fetchone()]
        cursor.execute(PROJECTS_SQL, dict(zip(("responses", "items"), percents, strict=True)))
        return [(name, int(number), int(size)) for name, number, size in cursor.fetchall()]
