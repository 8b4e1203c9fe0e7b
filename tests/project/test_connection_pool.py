"""The pool of connections finds a database that was away soon after it is back."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from psycopg_pool import ConnectionPool

from project.pool import POOL

# By itself the pool would have made its fifth attempt 15 s after the first, and its fourth after 7.
ATTEMPTS = 4
LIMIT = 9.0


class Away(logging.Handler):
    """Counts the attempts that failed, and brings the database back after some."""

    def __init__(self, back: Path, socket: Path) -> None:
        super().__init__()
        self.back, self.socket, self.count = back, socket, 0

    def emit(self, record: logging.LogRecord) -> None:
        if not record.getMessage().startswith("error connecting"):
            return
        self.count += 1
        if self.count == ATTEMPTS:
            self.back.symlink_to(self.socket)


@pytest.mark.django_db
def test_waiting_caller_gets_a_returned_database_soon(tmp_path: Path) -> None:
    parameters: dict[str, Any] = {**connection.get_connection_params(), "host": str(tmp_path), "port": 5432}
    ours: dict[str, Any] = {
        name: value for name, value in parameters.items() if name in ("dbname", "user", "password", "host", "port")
    }
    settings_given = connection.settings_dict
    name = f".s.PGSQL.{settings_given['PORT'] or 5432}"
    away = Away(tmp_path / ".s.PGSQL.5432", Path(settings_given["HOST"]) / name)
    logger = logging.getLogger("psycopg.pool")
    level = logger.level
    logger.addHandler(away)
    logger.setLevel(logging.WARNING)
    try:
        with ConnectionPool(kwargs=ours, open=True, **dict[str, Any](POOL)) as pool, pool.connection(timeout=LIMIT) as one:
            assert one.execute("SELECT 1").fetchone() == (1,)
    finally:
        logger.removeHandler(away)
        logger.setLevel(level)
    assert away.count >= ATTEMPTS
