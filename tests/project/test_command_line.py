"""Command line of `manage.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from responses_app.installation.data_dir import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["at the end", "at once"])
def test_a_reader_that_has_ended_makes_no_traceback(unbuffered: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environ = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
    command = [sys.executable, str(ROOT / "manage.py"), "diffsettings"]
    done = subprocess.run(command, env=environ, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_python_without_the_packages_is_refused_with_a_sentence() -> None:
    # -S leaves the packages of the environment out.
    command = [sys.executable, "-S", str(ROOT / "manage.py"), "createkey", "mine"]
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"manage.py: {sys.executable} has no module django: use the Python of the virtual environment that bin/serve makes, "
        ".venv/bin/python manage.py\n"
    )


@pytest.mark.parametrize("program", ["manage.py", "bin/serve"])
def test_settings_of_another_project_are_refused_with_a_sentence(program: str, tmp_path: Path, tape: str) -> None:
    arguments = [sys.executable, str(ROOT / program), "createkey", "mine"]
    if program == "bin/serve":
        arguments = [str(ROOT / program), "--engine", tape, "--port", "1024"]
    environ = {**os.environ, "DJANGO_SETTINGS_MODULE": "mysite.settings", "RESPONSES_DATA_DIR": str(tmp_path)}
    done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert (
        "the settings module mysite.settings cannot be imported (No module named 'mysite'): unset DJANGO_SETTINGS_MODULE"
        in done.stderr
    )
    assert "Traceback" not in done.stderr
