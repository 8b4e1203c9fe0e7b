"""Hot standby of an embedded Postgres, on the same machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from responses_app.installation.database_url import PORT, SUPERUSER, superuser_url
from responses_app.server.postgres.cluster import Postgres

# Another account may run Postgres, and has to reach the socket of the primary.
REACHABLE = 0o711
NOT_COPIED = ("postmaster.pid", "postmaster.opts")


class Standby(Postgres):
    """Embedded Postgres whose cluster is a copy of a primary. The role is that of the primary."""

    def _make_role(self) -> None:
        """Do nothing: a standby changes nothing."""


@contextmanager
def primary_and_standby() -> Iterator[tuple[Postgres, Standby]]:
    """Start a primary and a standby of the primary."""
    with tempfile.TemporaryDirectory(prefix="verbatim-standby-") as name:
        folder = Path(name)
        folder.chmod(REACHABLE)
        with Postgres(folder / "primary") as primary:
            primary.data_dir.chmod(REACHABLE)
            standby = Standby(folder / "standby")
            _copy(primary, standby)
            with standby:
                yield primary, standby


def _copy(primary: Postgres, standby: Standby) -> None:
    standby.data_dir.mkdir(mode=0o700)
    with psycopg.connect(superuser_url(primary.data_dir), autocommit=True) as connection:
        connection.execute("SELECT pg_backup_start('standby', TRUE)")
        # With the owners of the files. https://www.postgresql.org/docs/current/continuous-archiving.html
        subprocess.run(["cp", "-a", str(primary.cluster), str(standby.cluster)], check=True)
        (label,) = connection.execute("SELECT labelfile FROM pg_backup_stop(wait_for_archive => FALSE)").fetchone() or ("",)
    for name in NOT_COPIED:
        (standby.cluster / name).unlink(missing_ok=True)
    follow = f"primary_conninfo = 'host={primary.sockets} port={PORT} user={SUPERUSER}'\n"
    for name, text in (("backup_label", label), ("standby.signal", ""), ("postgresql.auto.conf", follow)):
        path, owner = standby.cluster / name, (standby.cluster / "PG_VERSION").stat()
        path.write_text(text)
        os.chown(path, owner.st_uid, owner.st_gid)
