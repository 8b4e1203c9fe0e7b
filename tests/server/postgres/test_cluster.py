"""The embedded Postgres, for real."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.installation.database_url import SOCKET_LIMIT, SOCKET_NAME, default_url, socket_dir
from responses_app.server.postgres import cluster
from responses_app.server.postgres.account import account_for, run_as
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.server.postgres.init import CannotMake, make_cluster
from tests.support.server import closed_folders as closed
from tests.support.server.processes import family, left, process_identity
from tests.support.waiting import wait_until

# Start Postgres in a process that guards it, print its pid, and wait for a signal.
OWNER = """
import signal, sys
from pathlib import Path
from responses_app.engines import orphan_guard
from responses_app.server.postgres.cluster import Postgres
orphan_guard.guard_children(sys.argv[1])
postgres = Postgres(Path(sys.argv[1]))
postgres.start()
print(postgres.pid, flush=True)
signal.pause()
"""


# For clusters that need not survive a power cut.
FAST = {"fsync": "off"}


def one(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row
    return row[0]


def test_address_is_known_without_a_server(tmp_path: Path) -> None:
    url = default_url(tmp_path)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    with Postgres(tmp_path) as postgres:
        assert postgres.url == url
        assert one(url, "SELECT 1") == 1


def test_data_is_stored_and_no_process_is_left(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        with psycopg.connect(postgres.url) as connection:
            connection.execute("CREATE TABLE stored AS SELECT 42 AS number")
        processes = family(postgres.pid)
        assert len(processes) > 3
    assert left(processes) == []
    with Postgres(tmp_path) as postgres:
        assert one(postgres.url, "SELECT number FROM stored") == 42


def test_cluster_ends_with_its_killed_owner_and_recovers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        with psycopg.connect(default_url(tmp_path)) as connection:
            connection.execute("CREATE TABLE stored AS SELECT 42 AS number")
        processes = family(owner.pid) | {process_identity(pid)}
        owner.kill()
    assert left(processes) == []
    with Postgres(tmp_path) as postgres:
        assert one(postgres.url, "SELECT number FROM stored") == 42


def test_killed_cluster_starts_again(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        processes = family(postgres.pid)
        os.kill(postgres.pid, signal.SIGKILL)
        assert left(processes) == []
        assert not postgres.running
        postgres.start()
        assert one(postgres.url, "SELECT 1") == 1


def test_cluster_starts_although_its_old_pid_is_reused(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        processes = family(postgres.pid)
        os.kill(postgres.pid, signal.SIGKILL)
        assert left(processes) == []
    locks = (tmp_path / "postgres" / "postmaster.pid", socket_dir(tmp_path) / f"{SOCKET_NAME}.lock")
    # Under the same account: Postgres ignores the process of another account.
    with subprocess.Popen(["/usr/bin/tail", "-f", "/dev/null"], **run_as(account_for(tmp_path / "postgres"))) as other:
        for lock in locks:
            lock.write_text("\n".join([str(other.pid), *lock.read_text().split("\n")[1:]]))
        try:
            with Postgres(tmp_path) as postgres:
                assert one(postgres.url, "SELECT 1") == 1
        finally:
            other.kill()


def test_start_waits_for_the_sessions_of_a_killed_server(tmp_path: Path) -> None:
    with Postgres(tmp_path, FAST) as postgres, psycopg.connect(postgres.url) as client:
        session = client.info.backend_pid
        os.kill(session, signal.SIGSTOP)  # The session cannot notice the end of the postmaster.
        os.kill(postgres.pid, signal.SIGKILL)
        wait_until(lambda: not postgres.running)
        with ThreadPoolExecutor() as pool:
            starting = pool.submit(postgres.start)
            try:
                # A start that does not wait fails within this second, since the session uses the shared memory.
                with pytest.raises(TimeoutError):
                    starting.result(1)
            finally:
                os.kill(session, signal.SIGCONT)
            starting.result()
        assert one(postgres.url, "SELECT 1") == 1


def test_second_start_on_the_same_cluster_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "PREVIOUS_LIMIT", 0.0)
    with Postgres(tmp_path, FAST) as postgres, pytest.raises(PostgresError, match="lock file"):
        Postgres(tmp_path, FAST).start()
    assert not postgres.running


def test_incomplete_cluster_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "postgres.new" / "base").mkdir(parents=True)
    with Postgres(tmp_path, FAST) as postgres:
        assert one(postgres.url, "SELECT 1") == 1
    assert not (tmp_path / "postgres.new").exists()


def test_socket_of_a_deep_folder_has_a_shorter_path(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    assert len(str(socket_dir(deep) / SOCKET_NAME)) <= SOCKET_LIMIT
    try:
        with Postgres(deep, FAST) as postgres:
            assert one(postgres.url, "SELECT 1") == 1
    finally:
        socket_dir(deep).rmdir()


def test_cluster_starts_in_a_closed_folder_with_spaces(tmp_path: Path) -> None:
    closed = tmp_path / "my own"
    closed.mkdir(mode=0o700)
    with Postgres(closed / "data", FAST) as postgres:
        assert one(postgres.url, "SELECT 1") == 1
    assert closed.stat().st_mode & 0o777 == 0o700, "the owner's modes stay as they are"


def test_only_the_owner_can_connect(tmp_path: Path) -> None:
    with Postgres(tmp_path, FAST) as postgres:
        assert postgres.sockets.stat().st_mode & 0o777 == 0o700
        assert one(postgres.url, "SHOW listen_addresses") == ""


def test_writes_are_synced(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        assert one(postgres.url, "SHOW fsync") == "on"
        assert one(postgres.url, "SHOW shared_buffers") == "128MB"


def test_error_contains_the_log(tmp_path: Path) -> None:
    with pytest.raises(PostgresError, match="max_connections"):
        Postgres(tmp_path, {**FAST, "max_connections": "many"}).start()


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can change its account")
def test_cluster_runs_as_an_ordinary_user(tmp_path: Path) -> None:
    # The interpreter may lie in a folder of root's: the right to walk there changes nothing of what is tested.
    walk = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *walk]
    with tempfile.TemporaryDirectory() as folder:
        # Not so the programs of Postgres, which initdb looks for by access(2).
        environ = {**os.environ, "PYTHONPATH": f"{closed.packages(Path(folder) / 'packages', mode=0o755)}:{ROOT}"}
        Path(folder).chmod(0o755)
        os.chown(tmp_path, 65534, 65534)
        command = [*user, sys.executable, "-c", OWNER, str(tmp_path)]
        with subprocess.Popen(command, env=environ, cwd="/", stdout=subprocess.PIPE) as owner:
            assert owner.stdout
            pid = int(owner.stdout.readline())
            assert Path(f"/proc/{pid}").stat().st_uid == 65534
            processes = family(owner.pid) | {process_identity(pid)}
            owner.terminate()
        assert left(processes) == []


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ("could not write file", r"has no room for the database, as [\d,]+ MiB are free and a new one needs 60: make room"),
        (
            "could not resize shared memory segment",
            "the shared memory of /dev/shm is too small for Postgres: start the container with --shm-size",
        ),
    ],
)
def test_the_disk_without_room_for_a_new_database_is_named(tmp_path: Path, message: str, sentence: str) -> None:
    program = tmp_path / "programs" / "initdb"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "initdb: error: {message}: {os.strerror(errno.ENOSPC)}" >&2\nexit 1\n')
    program.chmod(0o755)
    with pytest.raises(CannotMake, match=sentence):
        make_cluster(tmp_path / "postgres", program.parent, None)
