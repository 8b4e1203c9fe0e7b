"""Pages and a real standby: reads, a late standby, a stopped standby, and a database that is no standby."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from responses_app.installation.data_dir import ROOT
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


LIMIT_S = 300
# Reads the page in several states, and prints what it said. The arguments are the URL of the superuser and the process of the standby.
SCRIPT = """
import json, os, signal, sys, time
import django
django.setup()
import psycopg
from django.core.management import call_command
from django.db import connections
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils import timezone
from responses_app.models import Response
from responses_app.server.doctor.database import check_replica
from responses_app.store.replica import PAUSE_S, reading, replica
from responses_app.web.delivery.replica_pages import reads_replica

call_command("migrate", verbosity=0)
said, add = [], 0.0
replica._clock = lambda: time.monotonic() + add

@reads_replica
def page(request):
    return HttpResponse(f"{Response.objects.db} {Response.objects.count()}")

def say(name):
    said.append([name, page(RequestFactory().get("/")).content.decode(), *[message for _, message in check_replica()]])

def make(uid):
    Response.objects.create(uid=uid, thread=uid, project="p", model="m", created_at=timezone.now())

def on_standby(sql):
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        connection.execute(sql)

make("resp_1")
say("current")
with reading():
    row = Response.objects.get(uid="resp_1")
row.error_code = "changed"
row.save()
say("changed by an object of the standby")
on_standby("SELECT pg_wal_replay_pause()")
make("resp_2")
say("late")
on_standby("SELECT pg_wal_replay_resume()")
say("caught up")
os.kill(int(sys.argv[2]), signal.SIGINT)
while True:
    try:
        psycopg.connect(sys.argv[1]).close()
    except psycopg.OperationalError:
        break
say("gone")
say("not asked again")
add = PAUSE_S + 1
say("asked again")
print(json.dumps([said, Response.objects.filter(error_code="changed").count()]))
"""


@pytest.mark.slow
def test_pages_read_a_standby_that_has_everything() -> None:
    with primary_and_standby() as (primary, standby):
        said, changed = _run(SCRIPT, primary.url, standby.url, superuser_url(standby.data_dir), str(standby.pid))
    assert changed == 1
    behind, gone = "The replica is ", "The replica does not answer ("
    expected = [
        ("current", "replica 1", "The replica has all that is committed."),
        ("changed by an object of the standby", "replica 1", "The replica has all that is committed."),
        ("late", "default 2", behind),
        ("caught up", "replica 2", "The replica has all that is committed."),
        ("gone", "default 2", gone),
        ("not asked again", "default 2", gone),
        ("asked again", "default 2", gone),
    ]
    assert [name for name, *_ in said] == [name for name, *_ in expected]
    for (name, page, message), (_, expected_page, beginning) in zip(said, expected, strict=True):
        assert (name, page) == (name, expected_page)
        assert message.startswith(beginning), (name, message)


NO_STANDBY = """
import json
import django
django.setup()
from responses_app.server.bootstrap.shared_resources import warnings
from responses_app.server.doctor.database import check_replica
from responses_app.store.replica import replica
print(json.dumps([replica.is_current(), next(warnings()), [list(finding) for finding in check_replica()]]))
"""


AWAY = """
import json
import django
django.setup()
from responses_app.server.bootstrap.shared_resources import warnings
from responses_app.server.doctor.database import check_replica
print(json.dumps([next(warnings()), [list(finding) for finding in check_replica()]]))
"""


@pytest.mark.slow
def test_database_that_is_no_standby_is_not_read() -> None:
    with primary_and_standby() as (primary, _):
        is_current, sentence, ((status, message),) = _run(NO_STANDBY, primary.url, primary.url)
        warning, finding = _run(AWAY, primary.url, "postgresql://nobody@127.0.0.1:1/none")
    assert finding == [["warning", warning]]
    assert warning.startswith("The replica does not answer (connection failed: ")
    assert "Correct RESPONSES_REPLICA_DATABASE_URL" in warning
    assert (is_current, status) == (False, "failed")
    assert "no standby" in message
    assert sentence == message


def _run(script: str, primary: str, replica: str, *arguments: str) -> Any:
    """Run a script with both databases and return the JSON of the last line."""
    env = os.environ | {
        "DJANGO_SETTINGS_MODULE": "project.settings",
        "DATABASE_URL": primary,
        "RESPONSES_REPLICA_DATABASE_URL": replica,
    }
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        cwd=ROOT,
        env=env,
        check=False,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
