"""Pool of worker processes: limits, cancellation, fairness, and the end of the parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.supervision.process_tree import command_line
from responses_app.workers.limits import LimitExceeded, Limits, PoolBusy, WorkerDied, WorkerFailed, WorkerNotStarted
from responses_app.workers.pool import START_PAUSES_S, Pool
from responses_app.workers.process import WorkerProcess
from tests.support.waiting import eventually, run_ready_tasks, wait_until

TARGET = "tests.support.worker_jobs:handle"
MIB = 1 << 20


def pool(size: int = 1, *, cpu_s: int = 30, wall_s: float = 30.0, per_owner: int = 1, max_waiting: int = 1000) -> Pool:
    return Pool(TARGET, Limits(cpu_s, wall_s, 256 * MIB), size=size, per_owner=per_owner, max_waiting=max_waiting)


def is_alive(pid: int) -> bool:
    return bool(command_line(pid))


def test_process_answers_jobs_in_turn() -> None:
    workers = pool()
    large = bytes(range(256)) * 4096 * 20
    assert workers.call("a", b"echo " + large) == large
    pid = workers.call("a", b"pid")
    assert workers.call("b", b"pid") == pid
    assert int(pid) != os.getpid()


@pytest.mark.slow
def test_a_job_that_computes_too_long_is_stopped_and_the_next_one_gets_a_new_process() -> None:
    workers = pool()
    pid = workers.call("a", b"pid")
    with pytest.raises(LimitExceeded, match="1 seconds of computing time"):
        workers.call("a", b"spin", cpu_s=1)
    assert workers.call("a", b"pid") != pid


@pytest.mark.slow
def test_a_job_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    workers = pool(wall_s=2.0)
    file = tmp_path / "pid"
    with pytest.raises(LimitExceeded, match="2 seconds"):
        workers.call("a", b"wait " + str(file).encode())
    assert not is_alive(int(file.read_text()))


def test_memory_is_limited() -> None:
    workers = pool()
    assert workers.call("a", f"memory {128 * MIB}".encode()) == str(128 * MIB).encode()
    assert workers.call("a", f"memory {512 * MIB}".encode()) == b"MemoryError"


def test_a_process_that_dies_is_replaced() -> None:
    workers = pool()
    with pytest.raises(WorkerDied, match="SIGSEGV"):
        workers.call("a", b"die")
    assert workers.call("a", b"echo x") == b"x"


def test_process_killed_from_outside_is_replaced_and_the_job_is_done() -> None:
    workers = pool()
    os.kill(int(workers.call("a", b"pid")), signal.SIGKILL)
    assert workers.call("a", b"echo x") == b"x"


def test_an_exception_comes_with_its_traceback_and_the_process_lives_on() -> None:
    workers = pool()
    pid = workers.call("a", b"pid")
    with pytest.raises(WorkerFailed, match="a bad job"):
        workers.call("a", b"fail")
    assert workers.call("a", b"pid") == pid


def test_a_target_that_is_not_there_fails() -> None:
    with pytest.raises(WorkerFailed, match="AttributeError"):
        Pool("tests.support.worker_jobs:nothing", Limits(1, 30, MIB), size=1).call("a", b"")


def test_secrets_of_the_environment_are_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "x")
    monkeypatch.setenv("DATABASE_URL", "x")
    names = pool().call("a", b"environ").decode().split()
    assert "PYTHONPATH" in names
    assert not {"SECRET_KEY", "DATABASE_URL"} & set(names)


def test_a_cancelled_job_ends_with_its_process_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        workers, file = pool(), tmp_path / "pid"
        task = asyncio.create_task(workers.run("a", b"wait " + str(file).encode()))
        await eventually(lambda: file.exists() and file.read_text() != "")
        pid = int(file.read_text())
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: not is_alive(pid))
        assert await workers.run("a", b"echo x") == b"x"

    asyncio.run(run())


def test_a_cancelled_job_that_waits_is_never_begun(tmp_path: Path) -> None:
    async def run() -> None:
        workers, first, second = pool(), tmp_path / "first", tmp_path / "second"
        running = asyncio.create_task(workers.run("a", b"wait " + str(first).encode()))
        await eventually(first.exists)
        waiting = asyncio.create_task(workers.run("a", b"wait " + str(second).encode()))
        await run_ready_tasks()
        waiting.cancel()
        running.cancel()
        await asyncio.wait({waiting, running})
        assert await workers.run("a", b"echo x") == b"x"
        assert not second.exists()

    asyncio.run(run())


def test_the_jobs_of_one_owner_do_not_delay_those_of_another(tmp_path: Path) -> None:
    async def run() -> None:
        workers = pool(2)
        many = [asyncio.create_task(workers.run("a", b"wait " + str(tmp_path / str(n)).encode())) for n in range(20)]
        await eventually((tmp_path / "0").exists)
        assert await workers.run("b", b"echo x") == b"x"
        assert not (tmp_path / "1").exists()
        for task in many:
            task.cancel()
        await asyncio.wait(many)

    asyncio.run(run())


def test_too_many_waiting_jobs_of_an_owner_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        workers, file = pool(max_waiting=1), tmp_path / "pid"
        first = asyncio.create_task(workers.run("a", b"wait " + str(file).encode()))
        await eventually(file.exists)
        second = asyncio.create_task(workers.run("a", b"echo x"))
        await run_ready_tasks()
        with pytest.raises(PoolBusy):
            await workers.run("a", b"echo x")
        first.cancel()
        assert await second == b"x"

    asyncio.run(run())


def test_killed_process_takes_no_further_job_even_before_its_end() -> None:
    process = WorkerProcess(TARGET, Limits(1, 30.0, 256 * MIB))
    assert process.is_usable()
    process.kill()
    assert not process.is_usable()
    process.reap()


# A race: repeated to meet both orders of the end of the process and of the check for it.
@pytest.mark.parametrize("attempt", range(5))
def test_job_after_a_cancelled_start_gets_a_new_process(attempt: int) -> None:
    async def run() -> None:
        workers = pool()
        task = asyncio.create_task(workers.run("a", b"pid"))
        await eventually(lambda: workers._threads == 1 and len(workers._queue) == 0)
        task.cancel()
        await asyncio.wait({task})
        assert await workers.run("a", b"echo x") == b"x"

    asyncio.run(run())


# An interpreter that fails while the file has lines, and removes a line each time.
INTERPRETER = """#!/bin/sh
if [ -s {failures} ]; then sed -i 1d {failures}; exit 1; fi
exec {python} "$@"
"""


def break_interpreter(monkeypatch: pytest.MonkeyPatch, folder: Path, failures: int) -> Path:
    """Let the next starts of Python fail. Return the file with a line for each failure left."""
    file, script = folder / "failures", folder / "python"
    file.write_text("x\n" * failures)
    script.write_text(INTERPRETER.format(failures=file, python=sys.executable))
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return file


def test_process_that_does_not_start_is_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = break_interpreter(monkeypatch, tmp_path, failures=2)
    assert pool().call("a", b"echo x") == b"x"
    assert file.read_text() == ""


def test_pool_goes_on_after_an_unexpected_error_of_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = pool()
    with monkeypatch.context() as patch:
        patch.setattr(WorkerProcess, "call", Mock(side_effect=subprocess.TimeoutExpired("worker", 5.0)))
        with pytest.raises(WorkerFailed, match="TimeoutExpired"):
            workers.call("a", b"echo x")
    assert workers.call("a", b"echo x") == b"x"
    assert workers._threads == 1


@pytest.mark.slow
def test_process_that_never_starts_fails_the_job_after_some_attempts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = break_interpreter(monkeypatch, tmp_path, failures=9)
    with pytest.raises(WorkerNotStarted, match="ConnectionClosed"):
        pool().call("a", b"echo x")
    assert len(file.read_text().split()) == 9 - 1 - len(START_PAUSES_S)


PARENT = f"""
import sys, threading
from responses_app.workers.limits import Limits
from responses_app.workers.pool import START_PAUSES_S, Pool
from responses_app.workers.process import WorkerProcess
pool = Pool("{TARGET}", Limits(600, 600.0, 1 << 28), size=2, per_owner=2)
print(pool.call("a", b"pid").decode(), flush=True)
threading.Thread(target=pool.call, args=("a", b"spin"), daemon=True).start()
sys.stdin.read()
"""


def test_no_process_outlives_a_parent_that_is_killed() -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert is_alive(pid)
    parent.kill()
    parent.communicate()
    wait_until(lambda: not is_alive(pid))
