"""Clock of the database on a host whose own clock is wrong."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from unittest import mock
from uuid import uuid4

import pytest

from responses_app.runs import maintenance
from responses_app.store.cluster import clock, leases
from responses_app.store.cluster.clock import SharedClock, database_time
from tests.support.waiting import wait_until

AHEAD = timedelta(minutes=10)


class WrongDate(datetime):
    """Clock of a host that is AHEAD of the database."""

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        del tz
        return datetime.now(UTC) + AHEAD


@pytest.fixture
def shared_clock() -> Iterator[SharedClock]:
    """The clock of a process on such a host, before its first heartbeat."""
    shared = SharedClock()
    with (
        mock.patch.object(clock, "datetime", WrongDate),
        mock.patch.object(leases, "datetime", WrongDate),
        mock.patch.object(leases, "shared_clock", shared),
        mock.patch.object(maintenance, "shared_clock", shared),
    ):
        yield shared


def is_right(now: datetime) -> bool:
    return abs(now - database_time()) < AHEAD / 2


@pytest.mark.django_db(transaction=True)
def test_heartbeat_corrects_the_time_of_maintenance(shared_clock: SharedClock) -> None:
    times: list[datetime] = []

    def work(now: datetime) -> Iterator[int]:
        times.append(now)
        yield 1

    maintenance._run_steps(work, threading.Event())
    assert not is_right(times[0])

    def is_corrected() -> bool:
        leases.heartbeat(uuid4(), "host-a:1", [])
        return is_right(shared_clock.now())

    wait_until(is_corrected)
    maintenance._run_steps(work, threading.Event())
    assert is_right(times[1])


def test_jump_of_the_clock_of_the_host_changes_nothing() -> None:
    shared, now = SharedClock(), datetime.now(UTC)
    shared.note(now, now, now)
    with mock.patch.object(clock, "datetime", WrongDate):
        assert abs(shared.now() - datetime.now(UTC)) < AHEAD / 2


def test_slow_comparison_is_ignored() -> None:
    shared, now = SharedClock(), datetime.now(UTC)
    shared.note(now - AHEAD, now - timedelta(seconds=20), now)
    assert shared.now() >= now
    shared.note(now - AHEAD, now - timedelta(milliseconds=20), now)
    assert shared.now() - datetime.now(UTC) < -AHEAD / 2
