"""Database URLs of the embedded Postgres: roles, database name and the place of the socket."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import quote

ROLE = "verbatim"
SUPERUSER = "postgres"
DATABASE = "postgres"
# sun_path holds 108 bytes, the last of them NUL.
SOCKET_LIMIT = 107
PORT = 5432
SOCKET_NAME = f".s.PGSQL.{PORT}"


def default_url(data_dir: Path) -> str:
    """Return the DATABASE_URL of the embedded Postgres of a data folder, running or not."""
    return _url(data_dir, ROLE)


def superuser_url(data_dir: Path) -> str:
    """Return the URL of the superuser, for operators; the server does not use this URL."""
    return _url(data_dir, SUPERUSER)


def socket_dir(data_dir: Path) -> Path:
    """Return the socket's folder: in the data folder, or below /tmp if the path is too long for a socket address."""
    folder = data_dir.resolve() / "run"
    if len(os.fsencode(folder / SOCKET_NAME)) <= SOCKET_LIMIT:
        return folder
    return Path("/tmp") / f"verbatim-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"  # noqa: S108 - owner checked


def _url(data_dir: Path, role: str) -> str:
    # With a port, as libpq would use PGPORT of the environment.
    return f"postgresql://{role}@/{DATABASE}?host={quote(str(socket_dir(data_dir)), safe='')}&port={PORT}"
