"""Installation of packages in the background: code that needs none does not wait, failures are named and tried again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from responses_app.sandbox.base import RunResult
from responses_app.sandbox.client import SandboxClient
from responses_app.sandbox.installation import STATE_FILE, InstallationState
from responses_app.sandbox.launch import installer, packages
from tests.support.sandbox.runner import Runner, runner


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Runner]:
    """Start a runner whose packages are being installed."""
    packages.write_state(tmp_path, InstallationState("installing", time.time()))
    with runner(tmp_path, with_packages=True, packages=tmp_path) as started:
        yield started


def run(waiting: Runner, code: str) -> RunResult:
    async def work(client: SandboxClient) -> RunResult:
        await client.create("one")
        return await client.run("one", code)

    return waiting.use(work)


def complete(folder: Path) -> None:
    """End the installation, with a package of a single file."""
    site = packages.packages_folder(folder) / "fresh"
    site.mkdir()
    (site / "numpy.py").write_text("answer = 42")
    site.rename(packages.packages_folder(folder) / "shared" / "site")


def test_code_waits_only_for_packages_that_it_imports(waiting: Runner, tmp_path: Path) -> None:
    assert run(waiting, "import json\n6 * 7").value == "42"
    assert "being installed" not in str(run(waiting, "raise ValueError").error)
    with ThreadPoolExecutor() as pool:
        later = pool.submit(run, waiting, "import numpy\nnumpy.answer")
        # The same container answers meanwhile.
        assert run(waiting, "'quick'").value == "'quick'"
        assert not later.done()
        complete(tmp_path)
        assert later.result().value == "42"


def test_failed_installation_is_named_at_once(waiting: Runner, tmp_path: Path) -> None:
    now = time.time()
    packages.write_state(tmp_path, InstallationState("failed", now, "the package index cannot be reached", now + 60))
    error = str(run(waiting, "import numpy").error)
    assert "ModuleNotFoundError" in error
    assert "not installed: the package index cannot be reached; the next try is in" in error
    assert run(waiting, "try: import pandas\nexcept ImportError: print('none')").stdout == "none\n"


def test_installation_that_never_ended_is_not_waited_for(waiting: Runner, tmp_path: Path) -> None:
    packages.write_state(tmp_path, InstallationState("installing", time.time() - 3600))
    assert "not installed: the installation has not ended" in str(run(waiting, "import numpy").error)


def test_runner_hides_the_state_from_code(waiting: Runner) -> None:
    assert (
        run(waiting, "import os; sorted(os.listdir('/sandbox')), os.listdir('/sandbox/packages')").value
        == "(['inside', 'packages'], [])"
    )


class Stop(Exception):
    """End of the test's tries."""


@pytest.mark.slow
def test_failures_are_tried_again_with_longer_pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9/simple")
    monkeypatch.setattr(packages, "REQUIREMENTS", ("verbatim-no-such-package==1",))
    pauses: list[float] = []

    def note(pause: float) -> None:
        pauses.append(pause)
        if len(pauses) == 3:
            raise Stop

    with pytest.raises(Stop):
        installer.install(tmp_path, note)
    assert pauses == [10, 20, 40]
    state = packages.read_state(tmp_path)
    assert state is not None
    assert (state.step, state.failure) == ("failed", "the package index cannot be reached")
    assert "the next try is in" in packages.summary(tmp_path)


def test_installation_without_space_is_tried_again_and_leaves_no_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object) -> None:
        fresh = packages.packages_folder(tmp_path) / "fresh"
        fresh.mkdir()
        (fresh / "part").write_bytes(b"part")
        # No state can be written either.
        packages.packages_folder(tmp_path).joinpath(f".{STATE_FILE}").mkdir()
        raise packages.PackagesMissing("No space left on device")

    def end(_pause: float) -> None:
        raise Stop

    monkeypatch.setattr(packages, "_run", fill)
    with pytest.raises(Stop):
        installer.install(tmp_path, end)
    assert not (packages.packages_folder(tmp_path) / "fresh").exists()


def test_packages_of_an_earlier_version_stay_in_use(tmp_path: Path) -> None:
    earlier = tmp_path / packages.packages_folder(tmp_path).name.replace("containers-", "packages-")
    earlier.mkdir()
    (earlier / "numpy.py").touch()
    assert packages.is_installed(tmp_path)
    assert (packages.install(tmp_path) / "shared" / "site" / "numpy.py").exists()


def test_packages_of_a_closed_umask_become_readable(tmp_path: Path) -> None:
    site = packages.prepared_folder(tmp_path) / "shared" / "site"
    for folder in (site, site / "numpy"):
        folder.mkdir(mode=0o700)
    for name, mode in (("numpy/core.py", 0o600), ("numpy/f2py", 0o700), ("top.py", 0o600)):
        (site / name).touch(mode)
    packages.prepared_folder(tmp_path)
    modes = {
        str(path.relative_to(tmp_path)).partition("site")[2]: path.stat().st_mode & 0o777 for path in [site, *site.rglob("*")]
    }
    assert modes == {"": 0o755, "/numpy": 0o755, "/numpy/core.py": 0o644, "/numpy/f2py": 0o755, "/top.py": 0o644}
