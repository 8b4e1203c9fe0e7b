"""Supervised process that ends before it is ready."""

from __future__ import annotations

import asyncio
import errno
import signal
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from responses_app.server.supervision import supervised
from responses_app.server.supervision.child import ChildProcess
from responses_app.server.supervision.supervised import SupervisedProcess
from tests.support.waiting import eventually

# Counts its starts in a file, and ends in the first ones: by SIGKILL or with the exit code 1.
PROGRAM = """
import os, signal, sys
path, ends, how, _, descriptor = sys.argv[1:]
with open(path, "a") as file:
    file.write("x")
if os.path.getsize(path) <= int(ends):
    os.kill(os.getpid(), signal.SIGKILL) if how == "killed" else sys.exit(1)
os.write(int(descriptor), b"1")
signal.pause()
"""


@pytest.mark.parametrize(
    ("ends", "how", "is_ready", "starts"),
    [(0, "killed", True, 1), (2, "killed", True, 3), (3, "killed", False, 3), (1, "exited", False, 1)],
)
def test_killed_process_is_started_again_until_ready(tmp_path: Path, ends: int, how: str, is_ready: bool, starts: int) -> None:
    path = tmp_path / "starts"
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(path), str(ends), how]

    async def wait() -> bool:
        process = SupervisedProcess("it", lambda: ChildProcess(command), signal.SIGTERM, 5.0)
        try:
            return await process.wait_ready(restarts=2)
        finally:
            await process.stop_all()

    assert asyncio.run(wait()) == is_ready
    assert path.stat().st_size == starts


def test_process_that_the_machine_cannot_start_is_tried_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, str(tmp_path / "starts"), "1", "killed"]
    spawned: list[ChildProcess] = []
    failures = [OSError(errno.ENOMEM, "Cannot allocate memory")] * 2

    def spawn() -> ChildProcess:
        if spawned and failures:
            raise failures.pop()
        spawned.append(ChildProcess(command))
        return spawned[-1]

    async def restart() -> None:
        process = SupervisedProcess("a process", spawn, signal.SIGTERM, 5.0)
        supervising = asyncio.create_task(process.supervise())
        try:
            await eventually(lambda: len(spawned) == 2)
            assert await spawned[1].ready
            failures.append(OSError(errno.EMFILE, "Too many open files"))
            assert not await process.replace()
            assert process.child is spawned[1]
        finally:
            supervising.cancel()
            await process.stop_all()

    with patch.object(supervised, "PAUSES_S", (0.01,)):
        asyncio.run(restart())
    assert caplog.text.count("a process cannot be started: ") == 3
