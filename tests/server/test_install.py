"""Installing, with the real pip, of what is there already or cannot be had."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from responses_app.local.data_dir import ROOT
from responses_app.server.bootstrap import install
from responses_app.server.cli.progress import Progress

FILES = {step.file for step in (*install.CPU, *install.GPU, *install.DEV)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Requirement files of the real names that ask for what every environment has."""
    folder = tmp_path / "root"
    folder.mkdir()
    for name in FILES:
        (folder / name).write_text("pip\n")
    (folder / "requirements.txt").write_text("pip\n")
    (folder / "requirements-engine-cpu-deps.txt").write_text("-r requirements.txt\n")
    return folder


def run(root: Path, tmp_path: Path) -> str:
    """Install, and what was said."""
    prefix = tmp_path / "prefix"
    prefix.mkdir(exist_ok=True)
    out = io.StringIO()
    install.ensure(tmp_path / "install.log", Progress(out), root=root, prefix=prefix)
    return out.getvalue()


def test_it_installs_once_and_then_calls_no_pip(root: Path, tmp_path: Path) -> None:
    assert "Installing torch: " in run(root, tmp_path)
    (tmp_path / "install.log").unlink()
    assert run(root, tmp_path) == ""
    assert not (tmp_path / "install.log").exists()


def test_it_installs_again_what_comes_after_a_change(root: Path, tmp_path: Path) -> None:
    run(root, tmp_path)
    (root / "requirements.txt").write_text("pip>1\n")
    said = run(root, tmp_path)
    assert "torch" not in said
    assert "Installing the server" in said
    assert "Installing the engine" in said


def test_it_goes_on_where_it_failed_and_shows_what_pip_said(root: Path, tmp_path: Path) -> None:
    (root / "requirements-engine-cpu-deps.txt").write_text("./no-such-folder\n")
    with pytest.raises(install.InstallError, match="no-such-folder"):
        run(root, tmp_path)
    (root / "requirements-engine-cpu-deps.txt").write_text("pip\n")
    said = run(root, tmp_path)
    assert "torch" not in said, "that was done"
    assert "Installing the server" in said
    assert run(root, tmp_path) == ""


def test_every_requirement_file_of_every_step_is_there() -> None:
    for name in FILES:
        assert all(path.is_file() for path in install.files(name))
    assert ROOT / "requirements.txt" in install.files("requirements-engine-cpu-deps.txt")


def test_the_scripts_say_which_python_they_need(tmp_path: Path) -> None:
    """Copied to where there is no environment yet, with a python that is too old, or none at all."""
    for name in ("serve", ".python"):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_bytes((ROOT / "bin" / name).read_bytes())
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("bash", "dirname", "readlink", "env"):
        (tools / tool).symlink_to(f"/usr/bin/{tool}")
    command = ["/usr/bin/bash", tmp_path / "bin" / "serve"]
    done = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "needs Python 3.11" in done.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_scripts_say_that_venv_is_missing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name in ("serve", ".python"):
        (tmp_path / "bin" / name).write_bytes((ROOT / "bin" / name).read_bytes())
    python = tmp_path / "python"
    # Debian's python3 without python3-venv: there, but without ensurepip.
    python.write_text(f'#!/bin/sh\ncase "$*" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    command = ["/usr/bin/bash", tmp_path / "bin" / "serve"]
    done = subprocess.run(command, env={**os.environ, "PYTHON": str(python)}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "python3-venv" in done.stderr
    assert not (tmp_path / ".venv").exists()
