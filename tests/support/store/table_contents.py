"""The contents of all tables as text, to compare."""

from __future__ import annotations

from django.db import connection


def contents(pattern: str = "responses_app_%") -> str:
    """Every row of every table whose name is LIKE `pattern`, as text; bytes are in hexadecimal."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname LIKE %s",
            [pattern],
        )
        tables = [name for (name,) in cursor.fetchall()]
        rows = []
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')  # noqa: S608 - a name out of the catalogue
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)
