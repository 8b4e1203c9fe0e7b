"""Starter of the sandbox's runner: start at the first connection, start after a kill, end."""

from __future__ import annotations

import asyncio
import errno
import stat
import subprocess
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from responses_app.sandbox import runner_failure
from responses_app.sandbox.base import ContainerExpired, SandboxUnavailable
from responses_app.sandbox.client import SandboxClient
from responses_app.server.processes.sandbox_starter import socket_url, started
from tests.support.waiting import wait_until


@pytest.fixture
def others() -> list[psutil.Process]:
    """Return the processes that earlier tests have started, among them the shared runner of another folder."""
    children: list[psutil.Process] = psutil.Process().children()
    return children


def runners(others: list[psutil.Process]) -> list[psutil.Process]:
    """Return the children of this process that are runners, without zombies and without `others`."""
    children = [child for child in psutil.Process().children() if child not in others]
    return [
        child
        for child in children
        if child.status() != psutil.STATUS_ZOMBIE and "responses_app.sandbox" in " ".join(child.cmdline())
    ]


def value_of(data_dir: Path, code: str) -> str | None:
    """Run code in a container and return the value."""

    async def main() -> str | None:
        client = SandboxClient(socket_url(data_dir))
        try:
            await client.create("starter")
            return (await client.run("starter", code)).value
        finally:
            await client.close()

    return asyncio.run(main())


def test_runner_starts_with_the_first_connection_and_ends_with_the_server(tmp_path: Path, others: list[psutil.Process]) -> None:
    data_dir = tmp_path / ("long" * 30) / "data"
    data_dir.mkdir(parents=True)
    with started(data_dir, ["--without-packages"]):
        assert runners(others) == []
        assert stat.S_IMODE((data_dir / "sandbox.sock").stat().st_mode) == 0o600
        assert value_of(data_dir, "6 * 7") == "42"
        tree = [process for runner in runners(others) for process in (runner, *runner.children(recursive=True))]
        assert len(tree) > 4
    wait_until(lambda: not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in tree))
    assert not (data_dir / "sandbox.sock").exists()


def test_killed_runner_is_started_again_without_its_containers(tmp_path: Path, others: list[psutil.Process]) -> None:
    async def lost(client: SandboxClient) -> None:
        await client.create("lost")
        printed = asyncio.Event()
        run = asyncio.create_task(client.run("lost", "print(1)\nwhile True: pass", lambda _stream, _text: printed.set()))
        await printed.wait()
        for process in runners(others):
            process.kill()
        with pytest.raises(SandboxUnavailable):
            await run
        with pytest.raises(ContainerExpired):
            await client.status("lost")
        await client.close()

    with started(tmp_path, ["--without-packages"]):
        asyncio.run(lost(SandboxClient(socket_url(tmp_path))))


def test_calls_get_the_reason_of_a_runner_that_does_not_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def refused(client: SandboxClient) -> None:
        # The first call waits for the start; the others come while the runner is not started again.
        for call in (client.create("a"), client.run_once("x", bytes(5_000_000)), client.create("b")):
            with pytest.raises(SandboxUnavailable, match=r"does not start .*JSONDecodeError"):
                await call
        await client.close()

    with started(tmp_path, ["--options", "no json"]):
        asyncio.run(refused(SandboxClient(socket_url(tmp_path))))
        assert "JSONDecodeError" in runner_failure.read(tmp_path)
        assert [record.message.partition(": ")[0] for record in caplog.records][:1] == [
            "the sandbox does not start, so its calls fail for 1 s"
        ]
    assert runner_failure.read(tmp_path) == ""


def test_calls_get_the_reason_of_a_machine_that_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(client: SandboxClient) -> None:
        for name in ("a", "b"):
            with pytest.raises(SandboxUnavailable, match=r"cannot be started: .*Cannot allocate memory"):
                await client.create(name)
        await client.close()

    monkeypatch.setattr(subprocess, "Popen", Mock(side_effect=OSError(errno.ENOMEM, "Cannot allocate memory")))
    with started(tmp_path, []):
        asyncio.run(refused(SandboxClient(socket_url(tmp_path))))
