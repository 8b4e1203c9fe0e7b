"""Orphan guard: no process outlives the server, checked with real processes and SIGKILL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from responses_app.engines import orphan_guard
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow

# A server with a child, a grandchild in its own session, an orphaned process, and a process that ignores signals.
OWNER = """
import signal, subprocess, sys
from responses_app.engines import orphan_guard
orphan_guard.guard_children({data_dir!r})
subprocess.Popen(["sleep", "987"])
subprocess.Popen(["setsid", "sh", "-c", "sleep 988 & wait"])
subprocess.run(["sh", "-c", "setsid sleep 989 > /dev/null 2>&1 &"])
subprocess.Popen(["sh", "-c", "trap '' TERM INT HUP; sleep 990; sleep 991"])
{more}
print("ready", flush=True)
signal.pause()
"""


def owner(data_dir: Path, more: str = "") -> subprocess.Popen[str]:
    code = OWNER.format(data_dir=str(data_dir), more=more)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def owner_process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    process = owner(tmp_path)
    yield process
    process.kill()
    process.communicate()
    wait_until(lambda: not orphan_guard.survivors(process.pid))


def guards_of(pid: int) -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and f"guard.py\0{pid}:".encode() in _read(entry / "cmdline")
    ]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_guard_ends_all_descendants_of_a_killed_owner(owner_process: subprocess.Popen[str]) -> None:
    wait_until(lambda: len(orphan_guard.survivors(owner_process.pid)) >= 6)
    owner_process.kill()
    owner_process.wait()
    wait_until(lambda: orphan_guard.survivors(owner_process.pid) == [])
    wait_until(lambda: guards_of(owner_process.pid) == [])


def test_guard_acts_before_the_dead_owner_is_reaped(owner_process: subprocess.Popen[str]) -> None:
    assert orphan_guard.survivors(owner_process.pid)
    owner_process.kill()
    wait_until(lambda: orphan_guard.survivors(owner_process.pid) == [])


def test_guard_survives_signals_to_the_process_group(owner_process: subprocess.Popen[str]) -> None:
    (watcher,) = guards_of(owner_process.pid)
    assert os.getsid(watcher) == watcher != os.getsid(owner_process.pid)


def test_guard_cleans_up_after_an_owner_that_exits(tmp_path: Path) -> None:
    process = owner(tmp_path, more="print('ready', flush=True); sys.exit()")
    process.communicate()
    wait_until(lambda: orphan_guard.survivors(process.pid) == [])


def test_guard_leaves_other_processes_alone(owner_process: subprocess.Popen[str], tmp_path: Path) -> None:
    other = owner(tmp_path)
    try:
        wait_until(lambda: len(orphan_guard.survivors(other.pid)) >= 5)
        before = orphan_guard.survivors(other.pid)
        owner_process.kill()
        wait_until(lambda: orphan_guard.survivors(owner_process.pid) == [])
        assert set(before) <= set(orphan_guard.survivors(other.pid))
    finally:
        other.kill()
        other.communicate()
        wait_until(lambda: orphan_guard.survivors(other.pid) == [])


def test_orphans_of_a_dead_owner_and_guard_are_killed(tmp_path: Path) -> None:
    process = owner(tmp_path)
    (watcher,) = guards_of(process.pid)
    left = orphan_guard.survivors(process.pid)
    os.kill(watcher, signal.SIGKILL)
    process.kill()
    process.wait()  # Not `communicate`: the remaining processes hold the other end of the pipe.
    assert orphan_guard.kill_orphans(tmp_path / "other") == []
    assert set(left) <= set(orphan_guard.survivors(process.pid))
    assert set(left) <= set(orphan_guard.kill_orphans(tmp_path))
    assert orphan_guard.survivors(process.pid) == []
    process.communicate()


def test_processes_of_a_living_owner_stay(owner_process: subprocess.Popen[str], tmp_path: Path) -> None:
    assert orphan_guard.kill_orphans(tmp_path) == []
    assert orphan_guard.survivors(owner_process.pid)


# A child that keeps shared memory and names it in a file. Its resource tracker, which would remove it, does not know it.
SHARING = """
code = "import signal, sys; from pathlib import Path; from multiprocessing import resource_tracker, shared_memory;" \\
    " memory = shared_memory.SharedMemory(create=True, size=4096); resource_tracker.unregister(memory._name, 'shared_memory');" \\
    " Path(sys.argv[1]).write_text(memory.name); signal.pause()"
subprocess.Popen([sys.executable, "-c", code, {path!r}])
"""


def test_shared_memory_of_a_child_that_ends_with_its_owner_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orphan_guard, "SHARED_MEMORY_POLL_S", 0.01)
    process = owner(tmp_path, SHARING.format(path=str(tmp_path / "name")))
    wait_until(lambda: (tmp_path / "name").is_file() and (tmp_path / "name").read_text())
    memory = f"/dev/shm/{(tmp_path / 'name').read_text()}"  # noqa: S108 - a name that the child has drawn
    (sharing,) = [pid for pid in orphan_guard.survivors(process.pid) if memory in orphan_guard.shared_memory(pid)]
    owner_identity = orphan_guard._owner_of(sharing)
    assert owner_identity is not None
    looks: list[int] = []

    def look(owner_pid: int) -> list[int]:
        looks.append(owner_pid)
        return [sharing]

    monkeypatch.setattr(orphan_guard, "survivors", look)
    with ThreadPoolExecutor(1) as executor:
        waiting = executor.submit(orphan_guard._wait_exit, owner_identity)
        wait_until(lambda: len(looks) >= 2)
        os.kill(sharing, signal.SIGKILL)
        process.kill()
        process.communicate()
        assert memory in waiting.result()
    orphan_guard.unlink_shared_memory([memory])


def test_process_has_a_single_guard(tmp_path: Path) -> None:
    process = owner(tmp_path, more="orphan_guard.guard_children('elsewhere')")
    try:
        assert len(guards_of(process.pid)) == 1
    finally:
        process.kill()
        process.communicate()
        wait_until(lambda: orphan_guard.survivors(process.pid) == [])


def test_owner_mark_round_trips() -> None:
    mark = orphan_guard.ProcessOwner(12, 345, "4026531836", "/a:b/c d")
    assert orphan_guard.ProcessOwner.parse(str(mark)) == mark
    assert orphan_guard.ProcessOwner.parse("nonsense") is None
    assert not orphan_guard.ProcessOwner(os.getpid(), 1, "", "").is_alive(), "the same pid at another time is another process"
