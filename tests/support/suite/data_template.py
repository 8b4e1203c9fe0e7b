"""Data folder with a migrated, empty database: made once for a run of bin/test, and copied for each server that a test starts.

initdb and the migrations take most of the time of a first start. `RESPONSES_TEST_TEMPLATE` names the folder; without it each server
makes its own database.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from responses_app.installation.data_dir import ROOT, make_folder
from responses_app.installation.database_url import ROLE, superuser_url
from responses_app.server.postgres.cluster import Postgres

VARIABLE = "RESPONSES_TEST_TEMPLATE"
CLUSTER = "postgres"
# Database of which pytest-django makes the databases of the tests.
DATABASE = "migrated"


def make(data_dir: Path, settings: Mapping[str, str], into: Path) -> None:
    """Make the database of `data_dir`, migrate it, and copy its cluster to `into`. Raises PostgresError, CalledProcessError."""
    with Postgres(data_dir, settings, may_create_databases=True) as postgres:
        environ = {**os.environ, "DATABASE_URL": postgres.url, "RESPONSES_DATA_DIR": str(data_dir)}
        command = [sys.executable, "manage.py", "migrate", "--verbosity=0", "--no-input"]
        subprocess.run(command, cwd=ROOT, env=environ, check=True)
    make_folder(into)
    _copy(data_dir / CLUSTER, into / CLUSTER)


def add_database(data_dir: Path) -> None:
    """Copy the migrated tables of the running Postgres to the database DATABASE, which no connection is open to."""
    # Installed after bin/test has imported this module.
    import psycopg

    with psycopg.connect(superuser_url(data_dir), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE} TEMPLATE postgres".encode())
        # Else only the owner could copy the database.
        connection.execute(f"ALTER DATABASE {DATABASE} IS_TEMPLATE true".encode())


def copy_to(data_dir: Path) -> None:
    """Give a new data folder the migrated database, if there is a template. An existing folder stays unchanged."""
    if (template := os.environ.get(VARIABLE)) and not data_dir.exists():
        make_folder(data_dir)
        _copy(Path(template) / CLUSTER, data_dir / CLUSTER)


def _copy(cluster: Path, into: Path) -> None:
    """Copy a cluster with its owner, as Postgres opens it as the owner only."""
    subprocess.run(["cp", "-a", "--reflink=auto", str(cluster), str(into)], check=True)
