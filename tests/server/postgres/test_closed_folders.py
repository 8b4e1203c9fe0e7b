"""Postgres under an account of its own, where everything lies in folders that are closed to that account."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from responses_app.local.database_url import superuser_url
from responses_app.server.postgres import account, programs
from responses_app.server.postgres.cluster import Postgres, PostgresError
from responses_app.server.processes.process_tree import descendants
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


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package of Postgres, found in a closed folder before that of the environment."""
    folder = closed.packages(tmp_path / "closed site")
    monkeypatch.syspath_prepend(folder)
    return folder


@pytest.fixture
def postgres(site: Path, tmp_path: Path) -> Iterator[Postgres]:
    with Postgres(tmp_path / "closed data", FAST) as postgres:
        yield postgres


def test_it_runs_where_programs_and_data_are_closed_to_its_account(postgres: Postgres, site: Path) -> None:
    assert programs._site_packages() == site
    before = closed.modes(site) | closed.modes(postgres.cluster)
    with psycopg.connect(postgres.url) as connection:
        # What is loaded later: a library, and a file of the programs.
        row = connection.execute("SELECT to_tsvector('english', 'dogs'), now() AT TIME ZONE 'Europe/Berlin'").fetchone()
    assert row
    assert before == closed.modes(site) | closed.modes(postgres.cluster)
    assert site.stat().st_mode & 0o777 == 0o700
    assert postgres.data_dir.stat().st_mode & 0o777 == 0o700


def test_none_of_its_processes_has_a_right_of_root(postgres: Postgres) -> None:
    for pid in (postgres.pid, *descendants(postgres.pid)):
        assert uid(pid) != 0
        assert NO_CAPABILITIES.items() <= status(pid).items()
        assert status(pid)["Groups"] == ""


def test_not_even_its_superuser_reads_files_of_root_or_our_environment(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "not for databases")
    (tmp_path / "data").mkdir(mode=0o700)
    (tmp_path / "data" / "readable").write_text("beside the cluster")
    with Postgres(tmp_path / "data", FAST), psycopg.connect(superuser_url(tmp_path / "data"), autocommit=True) as connection:
        for path in ("/etc/shadow", "../readable", f"{tmp_path}/data/readable"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("SELECT pg_read_file(%s)", [path])
        connection.execute("CREATE TABLE lines (line text); COPY lines FROM PROGRAM 'env'")
        lines = [line for (line,) in connection.execute("SELECT line FROM lines").fetchall()]
    assert [line for line in lines if line.startswith("PATH=")]
    assert not [line for line in lines if "not for databases" in line]


def test_an_existing_cluster_keeps_its_owner(tmp_path: Path) -> None:
    with Postgres(tmp_path / "data", FAST) as postgres:
        cluster = postgres.cluster
    account.Account(65534, 65534).give_tree(cluster)
    with Postgres(tmp_path / "data", FAST) as postgres:
        assert uid(postgres.pid) == 65534


def test_a_machine_where_no_account_can_be_made_runs_it_under_a_number_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "ACCOUNT", "no-such-account")
    monkeypatch.setattr(account, "SYSTEM_FOLDERS", ())
    monkeypatch.setenv("PATH", str(tmp_path))
    for _ in range(2):
        with Postgres(tmp_path / "data", FAST) as postgres:
            assert uid(postgres.pid) == account.UNNAMED_ID
            assert not account.Account(uid(postgres.pid), 0).has_name
            owners = {path.lstat().st_uid for path in (postgres.cluster, *postgres.cluster.rglob("*"))}
            assert owners == {account.UNNAMED_ID}
            with psycopg.connect(postgres.url) as connection:
                connection.execute("SELECT 1")


def test_useradd_is_found_outside_of_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As with `su`, which leaves /usr/sbin out. An account that exists is not made again, so that nothing changes here."""
    monkeypatch.setenv("PATH", str(tmp_path))
    made = account._make()
    assert made
    assert made.pw_name == account.ACCOUNT
    assert made.pw_uid != 0


def test_it_says_what_to_do_where_no_copy_can_be_kept(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "PLACES", (tmp_path / "nowhere" / "copy",))
    with pytest.raises(PostgresError, match="set DATABASE_URL") as failure:
        Postgres(tmp_path / "data", FAST).start()
    assert str(site) in str(failure.value)
    assert f"{tmp_path}/nowhere/copy: No such file or directory" in str(failure.value)


def test_the_name_of_its_program_is_known_to_those_that_end_it(postgres: Postgres) -> None:
    assert all_named(os.getpid(), "bin/postgres")
    assert Path(f"/proc/{postgres.pid}/comm").read_text().strip() == "postgres"
