"""Postgres under a separate account, with programs and data in folders that are closed to that account."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from responses_app.installation.database_url import superuser_url
from responses_app.server.postgres import account, programs
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.server.supervision.process_tree import descendants
from tests.support.server import closed_folders as closed
from tests.support.server.processes import all_named

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="root alone starts Postgres under another account")
FAST = {"fsync": "off"}
NO_CAPABILITIES = {f"Cap{kind}": "0000000000000000" for kind in ("Prm", "Eff", "Amb")}


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def uid(pid: int) -> int:
    return Path(f"/proc/{pid}").stat().st_uid


def statuses(root: int) -> dict[int, dict[str, str]]:
    """Return the status of a process and of its descendants by process id. Those that end while we read are left out."""
    statuses = {root: status(root)}
    for pid in descendants(root):
        with suppress(FileNotFoundError, ProcessLookupError):
            statuses[pid] = status(pid)
    return statuses


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the package of Postgres into a closed folder at the front of the import path."""
    folder = closed.packages(tmp_path / "closed site")
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def postgres(site: Path, tmp_path: Path) -> Iterator[Postgres]:
    with Postgres(tmp_path / "closed data", FAST) as postgres:
        yield postgres


def test_cluster_runs_where_programs_and_data_are_closed_to_its_account(postgres: Postgres, site: Path) -> None:
    assert programs._site_packages() == site
    before = closed.modes(site) | closed.modes(postgres.cluster)
    with psycopg.connect(postgres.url) as connection:
        # Postgres loads a library and a file of its programs for this statement.
        row = connection.execute("SELECT to_tsvector('english', 'dogs'), now() AT TIME ZONE 'Europe/Berlin'").fetchone()
    assert row
    assert before == closed.modes(site) | closed.modes(postgres.cluster)
    assert site.stat().st_mode & 0o777 == 0o700
    assert postgres.data_dir.stat().st_mode & 0o777 == 0o700


def test_processes_have_no_rights_of_root(postgres: Postgres) -> None:
    by_pid = statuses(postgres.pid)
    assert len(by_pid) > 1
    assert "0" not in {uid for process in by_pid.values() for uid in process["Uid"].split()}
    assert [pid for pid, process in by_pid.items() if not NO_CAPABILITIES.items() <= process.items()] == []
    assert {process["Groups"] for process in by_pid.values()} == {""}


@pytest.mark.parametrize("path", ["/etc/shadow", "../readable", "{tmp_path}/data/readable"])
def test_superuser_cannot_read_files_of_root(site: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "readable").write_text("beside the cluster")
    with (
        Postgres(tmp_path / "data", FAST),
        psycopg.connect(superuser_url(tmp_path / "data"), autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT pg_read_file(%s)", [path.format(tmp_path=tmp_path)])


def test_superuser_cannot_read_the_environment_of_the_server(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "not for databases")
    with Postgres(tmp_path / "data", FAST), psycopg.connect(superuser_url(tmp_path / "data"), autocommit=True) as connection:
        connection.execute("CREATE TABLE lines (line text); COPY lines FROM PROGRAM 'env'")
        lines = [line for (line,) in connection.execute("SELECT line FROM lines").fetchall()]
    assert [line for line in lines if line.startswith("PATH=")]
    assert not [line for line in lines if "not for databases" in line]


def test_existing_cluster_has_the_same_owner_after_a_start(tmp_path: Path) -> None:
    with Postgres(tmp_path / "data", FAST) as postgres:
        cluster = postgres.cluster
    account.Account(65534, 65534).give_tree(cluster)
    with Postgres(tmp_path / "data", FAST) as postgres:
        assert uid(postgres.pid) == 65534


def test_cluster_runs_under_an_unnamed_id_where_no_account_can_be_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "ACCOUNT", "no-such-account")
    monkeypatch.setattr(account, "SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):  # A new cluster, and an existing one.
        with Postgres(tmp_path / "data", FAST) as postgres:
            assert uid(postgres.pid) == account.UNNAMED_ID
            assert not account.Account(uid(postgres.pid), 0).has_name
            owners = {path.lstat().st_uid for path in (postgres.cluster, *postgres.cluster.rglob("*"))}
            assert owners == {account.UNNAMED_ID}
            with psycopg.connect(postgres.url) as connection:
                connection.execute("SELECT 1")


def test_useradd_is_found_outside_of_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with `su`, whose PATH has no /usr/sbin. An existing account is not created again, so that the machine is not changed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    made = account._make()
    assert made
    assert made.pw_name == account.ACCOUNT
    assert made.pw_uid != 0


def test_error_names_database_url_where_no_copy_can_be_stored(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs, "PLACES", (tmp_path / "nowhere" / "copy",))
    with pytest.raises(PostgresError, match="set DATABASE_URL") as failure:
        Postgres(tmp_path / "data", FAST).start()
    assert str(site) in str(failure.value)
    assert f"{tmp_path}/nowhere/copy: No such file or directory" in str(failure.value)


def test_program_name_is_found_by_the_process_tree(postgres: Postgres) -> None:
    assert all_named(os.getpid(), "bin/postgres")
    assert Path(f"/proc/{postgres.pid}/comm").read_text().strip() == "postgres"
