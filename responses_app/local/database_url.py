"""Database URLs of the embedded Postgres: its roles, its database and the place of its socket."""

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
    """The DATABASE_URL of the embedded Postgres of this data folder, whether or not it runs."""
    return _url(data_dir, ROLE)


def superuser_url(data_dir: Path) -> str:
    """The same with all rights, for its operator; the server does not use it."""
    return _url(data_dir, SUPERUSER)


def socket_dir(data_dir: Path) -> Path:
    """Where the socket lies: in the data folder, or below /tmp if that path would be too long for a socket address."""
    folder = data_dir.resolve() / "run"
    if len(os.fsencode(folder / SOCKET_NAME)) <= SOCKET_LIMIT:
        return folder
    return Path("/tmp") / f"verbatim-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"  # noqa: S108 - owner checked


def _url(data_dir: Path, role: str) -> str:
    # With a port, as libpq would take that of the environment (PGPORT).
    return f"postgresql://{role}@/{DATABASE}?host={quote(str(socket_dir(data_dir)), safe='')}&port={PORT}"
