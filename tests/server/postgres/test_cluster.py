"""The embedded Postgres, for real."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from responses_app.local.data_dir import ROOT
from responses_app.local.database_url import SOCKET_LIMIT, SOCKET_NAME, default_url, socket_dir
from responses_app.server.postgres.account import account_for, run_as
from responses_app.server.postgres.cluster import Postgres, PostgresError
from tests.support.server import closed_folders as closed
from tests.support.server.processes import born, family, left

# Starts one in a process that watches over it, tells its pid, and waits to be killed.
OWNER = """
import sys, time
from pathlib import Path
from responses_app.engines import orphan_guard
from responses_app.server.postgres.cluster import Postgres
orphan_guard.guard_children(sys.argv[1])
postgres = Postgres(Path(sys.argv[1]))
postgres.start()
print(postgres.pid, flush=True)
time.sleep(60)
"""


# Where it does not matter whether a power cut would be survived.
FAST = {"fsync": "off"}


def one(url: str, query: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    assert row
    return row[0]


def test_its_address_is_known_without_a_server(tmp_path: Path) -> None:
    url = default_url(tmp_path)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    with Postgres(tmp_path) as postgres:
        assert postgres.url == url
        assert one(url, "SELECT 1") == 1


def test_it_keeps_what_was_written_and_leaves_no_process(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        with psycopg.connect(postgres.url) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
        processes = family(postgres.pid)
        assert len(processes) > 3
    assert left(processes, within=1) == []
    with Postgres(tmp_path) as postgres:
        assert one(postgres.url, "SELECT number FROM kept") == 42


def test_it_dies_with_an_owner_that_is_killed_and_recovers(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        with psycopg.connect(default_url(tmp_path)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS number")
        processes = family(owner.pid) | {born(pid)}
        owner.kill()
    assert left(processes, within=5) == []
    with Postgres(tmp_path) as postgres:
        assert one(postgres.url, "SELECT number FROM kept") == 42


def test_it_starts_again_after_it_was_killed(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        processes = family(postgres.pid)
        os.kill(postgres.pid, signal.SIGKILL)
        assert left(processes, within=5) == []
        assert not postgres.running
        postgres.start()
        assert one(postgres.url, "SELECT 1") == 1


def test_it_starts_although_its_old_number_is_anothers_by_now(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        processes = family(postgres.pid)
        os.kill(postgres.pid, signal.SIGKILL)
        assert left(processes, within=5) == []
    mark = tmp_path / "postgres" / "postmaster.pid"
    sleep = Path("/usr/bin/sleep")
    # Under the same account: Postgres knows that a stranger's process is none of its own.
    with subprocess.Popen([str(sleep), "60"], **run_as(account_for(tmp_path / "postgres"))) as other:
        mark.write_text("\n".join([str(other.pid), *mark.read_text().split("\n")[1:]]))
        try:
            with Postgres(tmp_path) as postgres:
                assert one(postgres.url, "SELECT 1") == 1
        finally:
            other.kill()


def test_a_second_one_on_the_same_cluster_is_refused(tmp_path: Path) -> None:
    with Postgres(tmp_path, FAST) as postgres, pytest.raises(PostgresError, match="lock file"):
        Postgres(tmp_path, FAST).start()
    assert not postgres.running


def test_it_makes_a_half_made_cluster_again(tmp_path: Path) -> None:
    (tmp_path / "postgres.new" / "base").mkdir(parents=True)
    with Postgres(tmp_path, FAST) as postgres:
        assert one(postgres.url, "SELECT 1") == 1
    assert not (tmp_path / "postgres.new").exists()


def test_it_finds_a_shorter_place_for_its_socket(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    assert len(str(socket_dir(deep) / SOCKET_NAME)) <= SOCKET_LIMIT
    try:
        with Postgres(deep, FAST) as postgres:
            assert one(postgres.url, "SELECT 1") == 1
    finally:
        socket_dir(deep).rmdir()


def test_it_works_in_a_folder_with_spaces_that_is_closed_to_others(tmp_path: Path) -> None:
    closed = tmp_path / "my own"
    closed.mkdir(mode=0o700)
    with Postgres(closed / "data", FAST) as postgres:
        assert one(postgres.url, "SELECT 1") == 1
    assert closed.stat().st_mode & 0o777 == 0o700, "the owner's modes stay as they are"


def test_it_lets_only_its_owner_connect(tmp_path: Path) -> None:
    with Postgres(tmp_path, FAST) as postgres:
        assert postgres.sockets.stat().st_mode & 0o777 == 0o700
        assert one(postgres.url, "SHOW listen_addresses") == ""


def test_it_syncs_its_writes(tmp_path: Path) -> None:
    with Postgres(tmp_path) as postgres:
        assert one(postgres.url, "SHOW fsync") == "on"
        assert one(postgres.url, "SHOW shared_buffers") == "128MB"


def test_it_ends_its_complaint_with_its_log(tmp_path: Path) -> None:
    with pytest.raises(PostgresError, match="max_connections"):
        Postgres(tmp_path, {**FAST, "max_connections": "many"}).start()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become somebody else")
def test_it_runs_as_an_ordinary_user(tmp_path: Path) -> None:
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
            processes = family(owner.pid) | {born(pid)}
            owner.terminate()
        assert left(processes, within=5) == []
