"""bin/serve and bin/test where a first user may have put them: below a closed folder, with blanks, or not to be written to."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT
from responses_app.server.postgres.account import Account, run_as
from tests.support.server import closed_folders as closed
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until

NOBODY = Account(65534, 65534)
# The interpreter may lie in a folder of root's: the right to walk there changes nothing of what is tested.
WALK = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", *WALK)
IS_ROOT = os.geteuid() == 0
TEST_LIMIT_S = 900
# Makes what `python -m venv` would, and says what it is run with.
FAKE_PYTHON = """#!/bin/sh
case "$*" in
    "-m venv --clear "*) mkdir -p "$4/bin"; printf '#!/bin/sh\\necho "$0" "$@"\\n' > "$4/bin/python"; chmod +x "$4/bin/python";;
esac
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout and the package of Postgres, in a folder of mode 0700 whose name is not plain."""
    above = tmp_path / "a b" / "ü"
    above.mkdir(parents=True)
    above.chmod(0o700)
    closed.packages(above / "packages")
    return closed.checkout(above / "checkout")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="verbatim-open-"))
    folder.chmod(0o755)
    yield folder
    for path in folder.iterdir():
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_server_runs_in_a_closed_checkout(checkout: Path, tape: str) -> None:
    before = closed.modes(checkout)
    with Server(checkout / ".data", "--engine", tape, root=checkout, PYTHONPATH=str(checkout.parent / "packages")) as server:
        assert server.ready().ask().status_code == 200
        assert server.manage("signin", "--url", server.url).startswith(f"{server.url}/sign-in/")
        assert server.stop() == 0
    assert closed.modes(checkout) == before
    assert (checkout / ".data").stat().st_mode & 0o777 == 0o700
    logs = list((checkout / ".data" / "logs").iterdir())
    assert {"postgres.log", "engine.log"} <= {log.name for log in logs}
    assert {log.stat().st_mode & 0o777 for log in logs} == {0o600}


def test_modules_in_the_current_folder_are_not_imported(tmp_path: Path, tape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "own work"
    (folder / "responses_app").mkdir(parents=True)
    for name in ("responses_app/__init__", "types", "logging", "json", "django", "numpy"):
        (folder / f"{name}.py").write_text("raise AssertionError(__file__)\n")
    monkeypatch.chdir(folder)
    with Server(tmp_path / "data", "--web", "2", "--engine", tape) as server:
        assert server.ready().ask(text={"format": {"type": "json_object"}}, input="JSON").status_code == 200
        wait_until(lambda: "this host archives" in server.output)
        assert "AssertionError" not in server.output


def test_manage_py_serve_installs_nothing_and_names_the_difference(checkout: Path) -> None:
    lock = checkout / "uv.lock"
    lock.write_text(re.sub(r'(?<=^name = "django"\nversion = ")[^"]+', "4.0.9", lock.read_text(), flags=re.MULTILINE))
    command = [str(checkout / ".venv" / "bin" / "python"), "manage.py", "serve"]
    environ = {**os.environ, "PYTHONPATH": str(checkout.parent / "packages")}
    done = subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
    assert re.search(
        r"serve: the installed packages differ from uv\.lock: django is .* must be 4\.0\.9\. bin/serve installs", done.stderr
    )
    assert not (checkout / ".data" / "logs" / "install.log").exists()


def test_tests_run_in_a_closed_checkout(checkout: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(checkout.parent / "packages"), "TMPDIR": str(checkout.parent)}
    command = [str(checkout / "bin" / "test"), "tests/admin/test_actions.py", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TEST_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout)


def test_environment_is_in_the_data_folder_if_the_checkout_is_read_only(open_folder: Path) -> None:
    checkout, data = open_folder / "checkout", open_folder / "my data"
    (checkout / "bin").mkdir(parents=True)
    for name in ("serve", ".python"):
        shutil.copy2(ROOT / "bin" / name, checkout / "bin" / name)
    python = open_folder / "python"
    python.write_text(FAKE_PYTHON)
    python.chmod(0o755)
    data.mkdir(mode=0o700)
    if IS_ROOT:
        NOBODY.chown(data)
    checkout.chmod(0o555)
    environ = {"PATH": os.environ["PATH"], "PYTHON": str(python)}

    def serve(**more: str) -> subprocess.CompletedProcess[str]:
        user = run_as(NOBODY if IS_ROOT else None)
        command = [str(checkout / "bin" / "serve"), "--help"]
        return subprocess.run(command, env={**environ, **more}, capture_output=True, text=True, check=False, cwd="/", **user)

    refused = serve()
    assert refused.returncode == 1
    assert f"{checkout} cannot be written to; set RESPONSES_DATA_DIR" in refused.stderr
    done = serve(RESPONSES_DATA_DIR=str(data))
    assert f"Making a virtual environment in {data}/.venv" in done.stderr
    assert done.stdout.split(" -P ")[0] == f"{data}/.venv/bin/python"
    assert serve(RESPONSES_DATA_DIR=str(data)).stderr == ""


@pytest.mark.parametrize("program", ["serve", "test"])
def test_environment_whose_python_is_gone_is_refused_with_a_sentence(open_folder: Path, program: str) -> None:
    (open_folder / "bin").mkdir()
    (open_folder / ".venv" / "bin").mkdir(parents=True)
    for name in (program, ".python"):
        shutil.copy2(ROOT / "bin" / name, open_folder / "bin" / name)
    (open_folder / ".venv" / ".made").touch()
    (open_folder / ".venv" / "bin" / "python").symlink_to(open_folder / "removed" / "python3")
    done = subprocess.run(
        [str(open_folder / "bin" / program), "--help"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert f"{program}: this account cannot run {open_folder}/.venv/bin/python" in done.stderr
    assert f"Remove {open_folder}/.venv, and the next start makes it again" in done.stderr


@pytest.mark.skipif(not IS_ROOT, reason="needs root to become somebody else")
def test_an_ordinary_user_serves_from_a_checkout_that_cannot_be_written_to(open_folder: Path, tape: str) -> None:
    """With an environment that root has installed, and the data in the user's own folder."""
    checkout, data = closed.checkout(open_folder / "checkout"), open_folder / "data"
    for path in (checkout, *checkout.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() or os.access(path, os.X_OK) else 0o444)
    tapes = shutil.copy2(re.sub(r"^script://|\?.*", "", tape), open_folder)
    data.mkdir(mode=0o700)
    NOBODY.chown(data)
    environ = {"HOME": str(data), "PYTHONPATH": str(closed.packages(open_folder / "packages", mode=0o755))}
    with Server(data, "--engine", f"script://{tapes}?loop=1", root=checkout, before=AS_NOBODY, **environ) as server:
        assert server.ready().ask().status_code == 200
        assert data.stat().st_mode & 0o777 == 0o700
