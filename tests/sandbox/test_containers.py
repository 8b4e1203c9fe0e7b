"""Containers: idle expiry, number, memory tiers, runs that wait for each other, and limits of the kernel that containers would share."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from responses_app.sandbox.base import ContainerExpired, ContainerStatus, RunResult, SandboxBusy, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.options import RunnerOptions
from responses_app.sandbox.runner import process_table
from responses_app.sandbox.runner.interpreter_process import MAX_SIGNALS, InterpreterProcess
from responses_app.sandbox.runner.live_container import LiveContainer
from responses_app.sandbox.runner.work_folder import WorkFolder
from tests.support.sandbox.runner import Runner, runner
from tests.support.waiting import eventually

LIMITS = RunnerOptions(max_containers=2, memory_mib=2048, disk_mib=16, idle_s=3, busy_wait_s=0.2)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with runner(tmp_path_factory.mktemp("small"), LIMITS) as started:
        yield started


async def begin_run(client: SandboxClient, container_id: str, project: str) -> asyncio.Task[RunResult]:
    """Create a container and begin a run without an end. Return when the code runs."""
    await client.create(container_id, project=project)
    began = asyncio.Event()
    code = "print('on', flush=True)\nwhile True: pass"
    run = asyncio.create_task(client.run(container_id, code, lambda *_: began.set()))
    await began.wait()
    return run


async def is_there(client: SandboxClient, container_id: str) -> bool:
    """Return whether the container exists."""
    try:
        await client.status(container_id)
    except ContainerExpired:
        return False
    return True


def test_container_whose_files_do_not_come_is_ended(small: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        assert await client.create_empty("empty", "1g", "")
        assert not await client.create_empty("empty", "1g", "")
        with pytest.raises(ContainerExpired):
            await client.run("empty", "1")
        assert await client.create_empty("empty", "1g", "")
        await client.note_files("empty")
        assert (await client.run("empty", "1")).value == "1"
        await client.delete("empty")

    small.use(work)


@pytest.mark.parametrize(("tier", "memory_mib"), [("1g", 1024), ("4g", 2048), ("64g", 2048)])
def test_memory_tiers_are_bounded(small: Runner, tier: str, memory_mib: int) -> None:
    async def work(client: SandboxClient) -> ContainerStatus:
        status = await client.create("tier", tier)
        await client.delete("tier")
        return status

    assert small.use(work).memory_mib == memory_mib


def test_creation_of_an_existing_container_changes_nothing(small: Runner) -> None:
    async def work(client: SandboxClient) -> tuple[str | None, int]:
        await client.create("twice", "1g")
        await client.run("twice", "x = 1")
        status = await client.create("twice", "4g")
        result = await client.run("twice", "x")
        await client.delete("twice")
        return result.value, status.memory_mib

    assert small.use(work) == ("1", 1024)


def test_new_container_ends_the_container_unused_for_longest(small: Runner) -> None:
    async def work(client: SandboxClient) -> str | None:
        await client.create("a")
        await client.create("b")
        await client.run("a", "x = 1")
        await client.create("c")
        with pytest.raises(ContainerExpired):
            await client.status("b")
        result = await client.run("a", "x")
        for one in ("a", "c"):
            await client.delete(one)
        return result.value

    assert small.use(work) == "1"


def test_number_of_containers_that_run_code_is_limited(small: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        runs = [await begin_run(client, one, project=one) for one in ("a", "b")]
        with pytest.raises(SandboxBusy, match="RESPONSES_SANDBOX_CONTAINERS"):
            await client.create("c", project="c")
        for one in ("a", "b"):
            await client.delete(one)
        await asyncio.gather(*runs)
        await client.create("c")
        await client.delete("c")

    small.use(work)


def test_endless_runs_of_a_project_leave_place_for_the_code_of_others(small: Runner) -> None:
    async def work(client: SandboxClient) -> tuple[str | None, str | None]:
        await client.create("mine", project="quiet")
        await client.run("mine", "x = 1")
        running = await begin_run(client, "a1", project="busy")
        with pytest.raises(SandboxBusy, match="RESPONSES_SANDBOX_CONTAINERS"):
            await client.create("a2", project="busy")
        own_run = await client.run("mine", "x")
        await client.delete("mine")
        # The second container of the project waits for a place, and ends for the container of another project.
        await client.create("a2", project="busy")
        with pytest.raises(SandboxBusy, match="may run code in 1 of 2 containers"):
            await client.run("a2", "print('never')")
        await client.create("mine", project="quiet")
        with pytest.raises(ContainerExpired):
            await client.status("a2")
        result = await client.run("mine", "2")
        for one in ("a1", "mine"):
            await client.delete(one)
        await running
        return own_run.value, result.value

    assert small.use(work) == ("1", "2")


def test_new_container_ends_an_own_unused_one_before_others(small: Runner) -> None:
    async def work(client: SandboxClient) -> str:
        await client.create("quiet", project="quiet")
        await client.create("old", project="busy")
        await client.create("new", project="busy")
        left = [one for one in ("quiet", "old", "new") if await is_there(client, one)]
        await client.delete("quiet")
        await client.create("second", project="busy")
        await client.create("third", project="third")
        left += [one for one in ("new", "second", "third") if await is_there(client, one)]
        for one in ("second", "third"):
            await client.delete(one)
        return " ".join(left)

    assert small.use(work) == "quiet new second third"


@pytest.mark.slow
def test_idle_containers_expire_and_used_containers_do_not(small: Runner) -> None:
    async def work(client: SandboxClient) -> None:
        await client.create("idle")
        await client.create("used")
        gate = asyncio.create_task(client.run("used", "import os\nwhile not os.path.exists('gate'): pass"))

        async def has_expired() -> bool:
            return not await is_there(client, "idle")

        await eventually(has_expired)
        await client.put_file("used", "gate", b"")
        assert (await gate).error is None
        assert (await client.status("used")).expires_in_s > 0
        await client.delete("used")

    small.use(work)


def test_runs_of_a_container_wait_for_each_other(small: Runner) -> None:
    async def work(client: SandboxClient) -> list[RunResult]:
        await client.create("queue")
        await client.run("queue", "order = []")
        runs = [client.run("queue", f"order.append({number}); len(order)") for number in range(5)]
        results = await asyncio.gather(*runs)
        await client.delete("queue")
        return results

    assert sorted(str(result.value) for result in small.use(work)) == ["1", "2", "3", "4", "5"]


def test_containers_do_not_see_each_other(small: Runner) -> None:
    async def work(client: SandboxClient) -> tuple[str | None, str | None]:
        await client.create("left")
        await client.create("right")
        await client.run(
            "left", "import subprocess; open('x', 'w'); open('/tmp/y', 'w'); subprocess.Popen(['sleep', '99']); None"
        )
        files = await client.run("right", "import os; os.listdir('.'), os.listdir('/tmp'), os.listdir('/dev/shm')")
        processes = await client.run("right", "[name for name in os.listdir('/proc') if name.isdigit()]")
        await client.delete("left")
        await client.delete("right")
        return files.value, processes.value

    assert small.use(work) == ("([], [], [])", "['1', '2']")


def test_deletion_ends_a_run(small: Runner) -> None:
    async def work(client: SandboxClient) -> RunResult:
        await client.create("deleted")
        printed = asyncio.Event()
        run = asyncio.create_task(client.run("deleted", "print(1)\nwhile True: pass", lambda _stream, _text: printed.set()))
        await printed.wait()
        await client.delete("deleted")
        return await run

    assert small.use(work).was_killed


@pytest.mark.skipif(not Path("/proc/self/autogroup").exists(), reason="the kernel has no autogroups")
def test_more_runs_of_a_project_have_a_lower_priority(tmp_path: Path) -> None:
    async def work(client: SandboxClient) -> list[object]:
        await client.create("second", project="busy")
        code = "open('/proc/self/autogroup').read().split()[-1]"
        first = await begin_run(client, "first", "busy")
        beside = await client.run("second", code, lambda *_: None)
        await client.delete("first")
        await first
        alone = await client.run("second", code, lambda *_: None)
        await client.delete("second")
        return [beside.value, alone.value]

    with runner(tmp_path, replace(LIMITS, max_containers=4)) as started:
        assert started.use(work) == ["'8'", "'5'"]


@pytest.mark.parametrize(("token", "is_reachable"), [("", False), ("wrong", False), ("right", True)])
def test_runner_with_a_token_answers_clients_with_the_token(tmp_path: Path, token: str, is_reachable: bool) -> None:
    async def work(_client: SandboxClient) -> bool:
        client = SandboxClient(started.url, token)
        try:
            await client.delete("unknown")
        except SandboxUnavailable:
            return False
        else:
            return True
        finally:
            await client.close()

    with runner(tmp_path, RunnerOptions(token="right")) as started:
        assert started.use(work) == is_reachable
        # Other accounts can read command lines, and not environments.
        assert "right" not in Path(f"/proc/{started.process.pid}/cmdline").read_text().split("--options")[-1]


def test_unreachable_runner_is_unavailable(tmp_path: Path) -> None:
    async def work() -> None:
        client = SandboxClient(f"unix:{tmp_path / 'none.sock'}")
        with pytest.raises(SandboxUnavailable, match="cannot be reached"):
            await client.create("x")
        await client.close()

    asyncio.run(work())


@pytest.mark.slow
def test_timers_are_limited_for_each_container(small: Runner) -> None:
    code = """
import ctypes
libc, timer, timers = ctypes.CDLL(None), ctypes.c_void_p(), 0
while timers < 10_000 and libc.timer_create(1, None, ctypes.byref(timer)) == 0: timers += 1
timers
"""
    assert [result.value for result in small.run("timers", code)] == [str(MAX_SIGNALS)]


def test_event_loop_goes_on_while_memory_is_counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    others_are_served = threading.Event()
    monkeypatch.setattr(process_table, "memory_in_use", lambda *_: 0 if others_are_served.wait(60) else 1 << 40)

    async def check_memory(process: subprocess.Popen[bytes]) -> None:
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours)
        container = LiveContainer("counted", "", 64, WorkFolder(tmp_path), "bwrap", RunnerOptions())
        container.interpreter = InterpreterProcess(process, reader, writer)
        check = asyncio.create_task(container.check_memory(process_table.ProcessTable([])))
        asyncio.get_running_loop().call_soon(others_are_served.set)
        await check
        writer.close()
        theirs.close()

    with subprocess.Popen(["sleep", "60"]) as process:
        asyncio.run(check_memory(process))
        assert process.poll() is None
        process.kill()
