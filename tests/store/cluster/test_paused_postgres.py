"""Postgres with paused processes: statements end, and a statement that only takes long does not."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError
from django.test import override_settings

from responses_app.server.postgres.cluster import Postgres
from responses_app.store.cluster import direct_link, notify
from responses_app.store.log.records import Append
from responses_app.store.log.rows import loop_connection
from responses_app.store.log.rows.loop_connection import LoopConnection
from responses_app.utils import watched_connection as watched
from responses_app.utils.watched_connection import WatchedConnection
from tests.support.server.processes import family, send_to_all
from tests.support.waiting import eventually

# It starts a Postgres of its own, and waits for limits of time.
pytestmark = pytest.mark.slow

SHORT_S = 0.1


class Statement(LoopConnection[Append]):
    """Connection to the cluster of a test, whose commit is a statement."""

    def __init__(self, url: str, sql: bytes) -> None:
        super().__init__()
        self._url, self._sql = url, sql

    def _connect(self) -> WatchedConnection[Any]:
        return WatchedConnection[Any].connect(self._url, autocommit=True)

    def _prepare(self, link: psycopg.Connection[Any]) -> None:
        pass

    async def _commit(self, appends: Sequence[Append]) -> None:
        self._link.send_query(self._sql)
        await self._flush()
        while await self._next_result() is not None:
            pass


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    folder: Path = tmp_path_factory.mktemp("postgres")
    with Postgres(folder) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (watched, loop_connection):
        monkeypatch.setattr(module, "SILENCE_S", SHORT_S)
    # A Postgres that works answers however slow the machine is.
    monkeypatch.setattr(watched, "ANSWER_LIMIT_S", 60)
    monkeypatch.setattr(watched, "FRESH_S", 0.0)


@contextmanager
def paused(cluster: Postgres) -> Iterator[None]:
    """Stop all processes of the cluster, which then has two seconds to answer, and let them go on at the end."""
    pids = [cluster.pid, *(pid for pid, _ in family(cluster.pid))]
    try:
        send_to_all(pids, signal.SIGSTOP)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(watched, "ANSWER_LIMIT_S", 2)
            yield
    finally:
        send_to_all(pids, signal.SIGCONT)


@contextmanager
def paused_process(pid: int) -> Iterator[None]:
    """Stop a process of the cluster."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def backend(cluster: Postgres, sql: str) -> int:
    """Return the process whose last statement matches `sql`."""
    with psycopg.connect(cluster.url) as link:
        ((pid,),) = link.execute("SELECT pid FROM pg_stat_activity WHERE state = 'idle' AND query LIKE %s", [sql]).fetchall()
    return int(pid)


def test_statement_ends_with_a_sentence_and_the_connection_is_closed(postgres: Postgres) -> None:
    with WatchedConnection[Any].connect(postgres.url, autocommit=True) as link:
        with paused(postgres), pytest.raises(psycopg.OperationalError, match="Postgres has not answered"):
            link.execute("SELECT 1")
        assert link.closed
    with WatchedConnection[Any].connect(postgres.url) as link:
        assert link.execute("SELECT 1").fetchone() == (1,)


def test_statement_ends_whose_process_alone_is_paused(postgres: Postgres) -> None:
    with WatchedConnection[Any].connect(postgres.url, autocommit=True) as link:
        with (
            paused_process(link.info.backend_pid),
            pytest.raises(psycopg.OperationalError, match="has not begun the statement"),
        ):
            link.execute("SELECT 1")
        assert link.closed


def test_long_statement_of_a_postgres_that_works_goes_on(postgres: Postgres) -> None:
    with WatchedConnection[Any].connect(postgres.url, autocommit=True) as link:
        assert link.execute("SELECT 1 FROM pg_sleep(%s)", [5 * SHORT_S]).fetchone() == (1,)


def test_refused_connection_is_a_sign_of_life(postgres: Postgres) -> None:
    with WatchedConnection[Any].connect(postgres.url, autocommit=True) as link:
        parameters = {**link.info.get_parameters(), "dbname": "no_such_database"}
        assert not watched.SignOfLife().is_missing(parameters)


def test_commit_of_the_event_loop_ends_while_postgres_is_paused(postgres: Postgres) -> None:
    async def commit() -> None:
        link = Statement(postgres.url, b"SELECT 1")
        await link.commit([])
        with paused(postgres), pytest.raises(OperationalError, match="Postgres has not answered"):
            await link.commit([])
        await link.commit([])
        link.close()

    asyncio.run(commit())


def test_commit_of_the_event_loop_ends_whose_process_alone_is_paused(postgres: Postgres) -> None:
    async def commit() -> None:
        link = Statement(postgres.url, b"SELECT 1")
        await link.commit([])
        assert link._connection
        with (
            paused_process(link._connection.info.backend_pid),
            pytest.raises(OperationalError, match="not begun the statement"),
        ):
            await link.commit([])
        await link.commit([])
        link.close()

    asyncio.run(commit())


def test_notifications_arrive_again_after_the_process_of_their_receiver_was_paused(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notify, "QUIET_S", SHORT_S)
    received: list[list[int]] = []

    async def receive() -> None:
        notifier = notify.Notifier(lambda _kind, keys: received.append(keys), 1)
        await eventually(lambda: notifier.connected)
        listening = await asyncio.to_thread(backend, postgres, "%LISTEN%")
        with paused_process(listening), monkeypatch.context() as patch:
            patch.setattr(direct_link, "ANSWER_LIMIT_S", SHORT_S)
            await eventually(lambda: not notifier.connected)
            patch.undo()
            await eventually(lambda: notifier.connected)
            notifier.notify("log", 17)
            await eventually(lambda: [17] in received)
        await notifier.close()

    with override_settings(RESPONSES_LISTEN_DATABASE_URL=postgres.url):
        asyncio.run(receive())


def test_notifications_of_other_programs_end_no_reception(postgres: Postgres, caplog: pytest.LogCaptureFixture) -> None:
    received: list[list[int]] = []

    async def receive() -> None:
        notifier = notify.Notifier(lambda _kind, keys: received.append(keys), 1)
        await eventually(lambda: notifier.connected)
        with psycopg.connect(postgres.url, autocommit=True) as other:
            for payload in ("", "log seventeen", "log 17"):
                other.execute("SELECT pg_notify(%s, %s)", [notify.CHANNEL, payload])
        await eventually(lambda: [17] in received)
        await notifier.close()

    with override_settings(RESPONSES_LISTEN_DATABASE_URL=postgres.url):
        asyncio.run(receive())
    assert caplog.text.count("a notification cannot be passed on") == 2


def test_notifications_are_sent_again_after_the_process_of_their_sender_was_paused(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: list[list[int]] = []

    async def send() -> None:
        notifier = notify.Notifier(lambda _kind, keys: received.append(keys), 1)
        await eventually(lambda: notifier.connected)
        notifier.notify("log", 1)
        await eventually(lambda: [1] in received)
        sending = await asyncio.to_thread(backend, postgres, "%pg_notify%")
        with paused_process(sending), monkeypatch.context() as patch:
            patch.setattr(direct_link, "ANSWER_LIMIT_S", SHORT_S)
            notifier.notify("log", 2)
            await eventually(lambda: not notifier._queued)
            notifier.notify("log", 3)
            await eventually(lambda: [3] in received)
        await notifier.close()

    with override_settings(RESPONSES_LISTEN_DATABASE_URL=postgres.url):
        asyncio.run(send())


def test_long_commit_of_the_event_loop_goes_on(postgres: Postgres) -> None:
    async def commit() -> None:
        link = Statement(postgres.url, b"SELECT pg_sleep(%f)" % (5 * SHORT_S))
        await link.commit([])
        link.close()

    asyncio.run(commit())
