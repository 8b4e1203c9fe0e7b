"""Ending of all descendants, also when listing the processes takes longer than the limit."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator

import pytest

from responses_app.engines import orphan_guard
from responses_app.server.supervision import process_tree
from tests.support.server.processes import left, process_identity

IGNORES_SIGTERM = "trap '' TERM; echo ready; sleep 600 & wait; sleep 600"


@pytest.fixture
def root() -> Iterator[subprocess.Popen[str]]:
    """Start a process with a child that ignores SIGTERM, and a grandchild."""
    command = ["sh", "-c", f'sh -c "{IGNORES_SIGTERM}"; sleep 600']
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as root:
        assert root.stdout
        assert root.stdout.readline() == "ready\n"
        yield root
        for pid in process_tree.descendants(root.pid):
            process_tree._send(pid, signal.SIGKILL)
        root.kill()


def test_end_descendants_terminates_and_then_kills(root: subprocess.Popen[str]) -> None:
    family = {process_identity(pid) for pid in process_tree.descendants(root.pid)}
    signalled = process_tree.end_descendants(root.pid, spare=())
    assert {pid for pid, _ in family} <= set(signalled)
    assert left(family) == []


def test_end_descendants_kills_when_one_round_takes_longer_than_the_limit(
    root: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    family = {process_identity(pid) for pid in process_tree.descendants(root.pid)}
    look = process_tree.descendants

    def slowly(of: int) -> list[int]:
        time.sleep(0.2)  # Real time, as the orphan guard reads the clock itself: one look takes longer than LIMIT_S.
        return look(of)

    monkeypatch.setattr(process_tree, "descendants", slowly)
    monkeypatch.setattr(process_tree, "LIMIT_S", 0.1)
    monkeypatch.setattr(orphan_guard, "GRACE_S", 0.05)
    process_tree.end_descendants(root.pid)
    assert left(family) == []
