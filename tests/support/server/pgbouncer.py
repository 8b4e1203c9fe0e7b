"""PgBouncer in front of an embedded Postgres, on a port of 127.0.0.1."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import psycopg

from responses_app.installation.database_url import DATABASE, PORT, ROLE, socket_dir
from responses_app.server.postgres.account import account_for, run_as
from responses_app.server.postgres.init import handed, open_folder
from tests.support.server.serve_command import free_port
from tests.support.waiting import wait_until

# Debian installs the program in a folder that `su` without `-` leaves out of PATH.
PROGRAM = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"]))
MISSING = "there is no pgbouncer; on Debian: apt-get install -y pgbouncer"
CONFIG = """
[databases]
* = host={sockets} port={postgres_port} user={role}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = {pool_size}
max_client_conn = 200
"""


@contextmanager
def pgbouncer(data_dir: Path, mode: str = "session", pool_size: int = 60) -> Iterator[str]:
    """Run PgBouncer for the Postgres of `data_dir`, and yield the URL of the database `postgres` through PgBouncer."""
    assert PROGRAM is not None, MISSING
    port, account = free_port(), account_for(data_dir / "postgres")
    sockets = open_folder(socket_dir(data_dir))
    # PgBouncer refuses to run as root, and the account of Postgres may not open the folders of the test.
    with tempfile.NamedTemporaryFile("w", suffix=".ini") as config, tempfile.TemporaryFile() as log:
        config.write(
            CONFIG.format(sockets=handed(sockets), postgres_port=PORT, role=ROLE, port=port, mode=mode, pool_size=pool_size)
        )
        config.flush()
        os.chmod(config.name, 0o644)
        process = subprocess.Popen([PROGRAM, config.name], pass_fds=[sockets], stdout=log, stderr=log, **run_as(account))
        try:
            url = f"postgresql://{ROLE}@127.0.0.1:{port}/{DATABASE}"
            wait_until(lambda: _answers(url), limit_s=120, explain=lambda: _text(log.fileno()))
            yield url
        finally:
            process.terminate()
            process.wait(60)
            os.close(sockets)


def database_url(url: str, name: str) -> str:
    """Return `url` with another database."""
    return f"{url.rpartition('/')[0]}/{quote(name)}"


def _answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


def _text(log: int) -> str:
    return os.pread(log, 10_000, 0).decode(errors="replace")
