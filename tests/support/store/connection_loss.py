"""Cut the connections of the test database."""

from __future__ import annotations

from typing import Any

import psycopg
from django.db import connection

# Not a worker of autovacuum, which the role of the server may not end.
CUT = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
)


def cut(parameters: dict[str, Any]) -> None:
    """End every connection to the tests' database."""
    with psycopg.connect(**parameters) as side_connection:
        side_connection.execute(CUT)


def place() -> dict[str, Any]:
    """Return the address of the tests' database."""
    database = connection.settings_dict
    names = {"dbname": "NAME", "host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    return {name: database[key] for name, key in names.items()}
